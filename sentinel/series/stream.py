"""One stream: turns logged chunks into rows that detectors can judge.

The framework is recognised once, from the first points of the stream. These points wait until there are
enough of them. The positions of points decide this as well, so it does not depend on polls.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from sentinel.common.conversion import converter
from sentinel.detectors.run_checks import Absence, Expected, Inventory
from sentinel.detectors.signals import Signal
from sentinel.series.attempt import Attempt
from sentinel.series.attempts import Attempts, Points
from sentinel.series.derived import LOSS_OF_PERPLEXITY, SHARES, SUMMED, Units, losses_of
from sentinel.series.first_points import POINT_FIELDS, counts, joined, prologue_end
from sentinel.series.history import SeriesHistory, Window
from sentinel.series.missing_tags import InventoryTaker, MissingTags
from sentinel.series.naming import Meaning, Naming, Origin, Profile, is_of_histogram, profiles, recognise
from sentinel.series.pace import Pace
from sentinel.series.plan import KnownOfStream, Plans
from sentinel.series.roles.assignment import role_of_signal
from sentinel.series.roles.company import Series, without_label
from sentinel.series.roles.gaps import corrections, first_signals, later_signal, loss_of
from sentinel.series.roles.role import Source
from sentinel.series.roles.values import TagValues, Values
from sentinel.series.specs import SeriesSpec, SeriesSpecs
from sentinel.series.tag_context import TagContext
from sentinel.series.unmapped_nonfinite import JUDGED_THEMSELVES, LOSSES, UNDEFINED_AT_REST, UnmappedNonFinite
from sentinel.series.unmapped_shape import ODD, UnmappedShape
from sentinel.sources.base import Chunk, of_each_tag, order_by_tag

_OF_THE_MACHINE = frozenset(
    {Signal.STEP_TIME, Signal.TOKENS_PER_SECOND, Signal.THROUGHPUT, Signal.MFU, Signal.GPU_MEMORY}
)
"""Signals that a validation logs under the same tags. MMEngine logs them at the number of the epoch."""


class SeriesRows(msgspec.Struct, frozen=True, gc=False):
    """New rows of one series: the only form in which they go from the stream to the detectors."""

    run: str  # its id
    stream: str
    spec: SeriesSpec
    attempt: int
    tag: str
    window: Window  # with the rows before them
    known: KnownOfStream
    of_end: bool = False  # only the end of the log makes them sure


class Extension(NamedTuple):
    """What a chunk brought to a stream: rows, and what is no row."""

    rows: Sequence[SeriesRows] = ()  # those that it completes, in order within each series
    inventories: Sequence[Inventory] = ()
    absences: Sequence[Absence] = ()


class Stream(msgspec.Struct):
    """The state of one stream of the run with the id ``run``.

    ``format`` is the format of the source, on which some names depend. ``part`` is the part of the data to
    which all of the stream belongs, if its directory says so: Keras logs the same tags in `train/` and in
    `validation/`.
    """

    run: str
    name: str
    format: str
    part: str
    naming: Naming
    specs: SeriesSpecs
    is_beside_others: bool = False  # of the same training, which hold its other curves
    is_beside_reward: bool = False  # in one of these
    label: str = ""  # the training of which it is, in a file of several
    unit: str = ""  # what its steps count, where the log names it
    position: int = 0  # of the next point
    first_points: Chunk | None = None
    has_names: bool = False  # the tags have their meanings
    profile: Profile | None = None
    tag_context: TagContext = msgspec.field(default_factory=TagContext)
    role_signals: dict[str, Signal | None] = msgspec.field(default_factory=dict)  # where names say otherwise
    values: TagValues = msgspec.field(default_factory=TagValues)
    attempts: Attempts = msgspec.field(default_factory=Attempts)
    attempt: Attempt = msgspec.field(default_factory=lambda: Attempt(1))
    meanings: dict[str, Meaning | None] = msgspec.field(default_factory=dict)
    # a spec or the plan uses these
    used_meanings: dict[str, Sequence[Meaning]] = msgspec.field(default_factory=dict)
    plans: Plans = msgspec.field(default_factory=Plans)
    signals: dict[str, int] = msgspec.field(default_factory=dict)  # position of the first point of each
    units: Units = msgspec.field(default_factory=Units)
    inventory_taker: InventoryTaker = msgspec.field(default_factory=InventoryTaker)
    expected: dict[str, Sequence[Expected]] = msgspec.field(default_factory=dict)  # by tag
    missing_tags: MissingTags = msgspec.field(default_factory=MissingTags)
    unmapped_nonfinite: UnmappedNonFinite = msgspec.field(default_factory=UnmappedNonFinite)
    unmapped_shape: UnmappedShape = msgspec.field(default_factory=UnmappedShape)
    pace: Pace = msgspec.field(default_factory=Pace)

    @property
    def has_points(self) -> bool:
        return self.position > 0 or self.first_points is not None

    @property
    def planned_steps(self) -> float | None:
        """The planned last step; None if neither the log nor the settings state it."""
        logged = self.attempt.last(Signal.TOTAL_STEPS)
        total = self.plans.now.get(Signal.TOTAL_STEPS) if logged is None else logged
        return total or None

    def resume(self, before: "Stream") -> None:
        """Begin where another stream ended: its last rows are those of the attempt before."""
        self.attempt = Attempt(1, earlier=before.attempt.next(1, self.specs).earlier)

    def extend(self, chunk: Chunk, read_at: float = math.nan) -> Extension:
        """Add the points of a chunk. ``read_at`` is the time awake of the watch that read it."""
        self.label = self.label or chunk.label
        self.unit = self.unit or chunk.unit
        waiting = 0 if self.first_points is None or chunk.restarted else len(self.first_points.step)
        self.plans.add(self.position + waiting, chunk.config)
        if not len(chunk.step):
            return Extension()
        if not self.has_names:
            chunk = self.first_points = joined(self.first_points, chunk)
            end = prologue_end(chunk)
            if end is None:
                return Extension()
            self._name(chunk, end)
            self._learn_tags(chunk, end)
        return self._extend(chunk, read_at)

    def end(self) -> Iterator[SeriesRows]:
        """Yield the rows that are left when the run is over: points that wait for names, then last rows."""
        if self.first_points is not None:
            waiting = self.first_points
            self._name(waiting)
            self._learn_tags(waiting, len(waiting.step))
            yield from self._extend(waiting, math.nan).rows
        yield from self._series_rows(self.attempt.end(self.specs), self.known)

    def _series_rows(
        self, windows: Iterable[tuple[SeriesSpec, str, Window]], stream_facts: KnownOfStream
    ) -> Iterator[SeriesRows]:
        """Yield the windows of the present attempt as the rows of their series."""
        for spec, tag, window in windows:
            yield SeriesRows(
                run=self.run,
                stream=self.name,
                spec=spec,
                attempt=self.attempt.number,
                tag=tag,
                window=replace(window, continues=True) if self.attempts.continues else window,
                known=stream_facts,
            )

    def _name(self, first: Chunk, end: int | None = None) -> None:
        """Decide for good what the first tags mean, given the first points up to ``end``."""
        tags = counts(first, end)
        self.profile, self.tag_context = self._recognise(tags)
        self.role_signals = self._first_signals(self.profile, self.tag_context, first, end)
        self.has_names = True
        self.first_points = None
        for tag in sorted(tags):
            meaning = self._meaning(tag)
            if meaning is not None and meaning.signal in SUMMED:
                self.attempt.sums.setdefault(meaning.signal, []).append(tag)

    def _extend(self, chunk: Chunk, read_at: float) -> Extension:
        """Add points that no longer wait for their names."""
        self._learn_tags(chunk)
        self._record_signals(chunk)
        stream_facts = self.known
        inventories = self.inventory_taker.survey(self.name, chunk, self.position, stream_facts)
        expected = {
            rule: [tag for tag in chunk.tags if rule in self.expected[tag]] for rule in self.specs.expected
        }
        absences = [*self.missing_tags.extend(chunk, self.position, expected, read_at)]
        is_compared = np.array([self._has_comparable_steps(tag) for tag in chunk.tags], dtype=bool)
        rows: list[SeriesRows] = []
        meanings = [self.meanings[tag] for tag in chunk.tags]
        signals = [None if meaning is None else meaning.signal for meaning in meanings]
        for number, part in self.attempts.split(chunk, is_compared, signals):
            if number != self.attempt.number:
                self.attempt = self.attempt.next(number, self.specs, goes_on=self.attempts.goes_on)
            points = [*self._points(chunk, part), *self._odd_points(chunk, part)]
            rows += self._series_rows(self.attempt.windows(points, self.specs, self.plans), stream_facts)
        self.values = self.values.after(chunk, self._has_role)
        self.position += len(chunk.step)
        return Extension(rows, inventories, absences)

    def _record_signals(self, chunk: Chunk) -> None:
        """Remember the positions of the first points of signals."""
        meanings = [self.meanings[tag] for tag in chunk.tags]
        if all(meaning is None or meaning.signal in self.signals for meaning in meanings):
            return
        codes, first = np.unique(chunk.tag, return_index=True)
        for index, code in sorted(zip(first.tolist(), codes.tolist(), strict=True)):
            meaning = meanings[code]
            if meaning is not None:
                self.signals.setdefault(meaning.signal.value, self.position + index)

    @property
    def known(self) -> KnownOfStream:
        """What the stream says of its run."""
        return KnownOfStream(self.profile.name if self.profile else None, self.signals, self.plans)

    def explained(self) -> tuple[Profile | None, dict[str, Meaning | None]]:
        """Return the framework and the meaning of every tag. They may change while the stream is short."""
        if self.has_names or self.first_points is None:
            return self.profile, self.meanings
        profile, context = self._recognise(counts(self.first_points))
        find = partial(self._meaning_by_name, profile)
        role_signals = self._first_signals(profile, context, self.first_points)
        meanings = {tag: context.meaning(tag, find) for tag in self.first_points.tags}
        return profile, {
            tag: _with_role(meaning, role_signals[tag]) if tag in role_signals else meaning
            for tag, meaning in meanings.items()
        }

    def series(self) -> list[Series]:
        """Return all series that may have a role, with the summaries of their values."""
        values = self.values
        if not self.has_names and self.first_points is not None:
            values = values.after(self.first_points, self._has_role)
        return [self._one_series(tag, summary) for tag, summary in values.by_tag.items()]

    def _one_series(self, tag: str, values: Values) -> Series:
        return Series(self.name, tag, values, self.part, self.label, self.unit)

    def origin(self, profile: Profile | None, tag: str) -> Origin | None:
        """Return who says what a tag means; None if only its words say it."""
        return self.naming.origin(profile, self._full_tag(tag))

    def _recognise(self, tags: Mapping[str, int]) -> tuple[Profile | None, TagContext]:
        """Return the framework and the context of the first tags, given how often each was logged."""
        profile = recognise({self._full_tag(tag) for tag in tags if not is_of_histogram(tag)}, self.format)
        return profile, TagContext.from_tags(tags, partial(self._meaning_by_name, profile))

    def _first_signals(
        self, profile: Profile | None, context: TagContext, first: Chunk, end: int | None = None
    ) -> dict[str, Signal | None]:
        """Return the signals that tags get from their roles in the first points up to ``end``, or lose."""
        find = partial(self._meaning_by_name, profile)
        tag = first.tag[:end]
        value = first.value[:end]
        tags = {first.tags[code]: code for code in np.unique(tag).tolist()}
        series = [
            self._one_series(name, Values().after(value[tag == code]))
            for name, code in sorted(tags.items())
            if self._has_role(name)
        ]
        meanings = {one.tag: context.meaning(one.tag, find) for one in series}
        signals = {tag: meaning.signal for tag, meaning in meanings.items() if meaning is not None}
        stated = {
            one.key: role
            for one in series
            if one.tag in signals
            and not self._is_open(profile, one.tag)
            and (role := role_of_signal(signals[one.tag], Source.PROFILE, "it is stated")) is not None
        }
        is_beside_others = self.is_beside_others and not self.label
        corrected: dict[str, Signal | None] = {}
        if len(stated) < len(signals):
            corrected = corrections(
                series,
                signals,
                stated,
                is_beside_others=is_beside_others,
                is_beside_reward=self.is_beside_reward and not self.label,
            )
        signals |= {tag: signal for tag, signal in corrected.items() if signal is not None}
        is_open = partial(self._is_open, profile)
        given = first_signals(series, signals, is_open, is_beside_others=is_beside_others)
        return {**corrected, **given}

    def _has_role(self, tag: str) -> bool:
        """Return whether a tag may have a role."""
        return not is_of_histogram(tag) and not self.naming.ignores(self._full_tag(tag))

    def _is_open(self, profile: Profile | None, tag: str) -> bool:
        """Return whether a tag without a signal may get one from its role."""
        return not is_of_histogram(tag) and self.origin(profile, tag) is None

    def _meaning(self, tag: str) -> Meaning | None:
        meaning = self.tag_context.meaning(tag, partial(self._meaning_by_name, self.profile))
        return _with_role(meaning, self.role_signals[tag]) if tag in self.role_signals else meaning

    def _meaning_by_name(self, profile: Profile | None, tag: str) -> Meaning | None:
        return self.naming.meaning(profile, self._full_tag(tag))

    def rule_meanings(self, tag: str) -> list[Meaning]:
        """Return the meanings of a tag for the user's rules."""
        return self.naming.rule_meanings(self._full_tag(tag))

    def _learn_tags(self, chunk: Chunk, end: int = 0) -> None:
        """Decide for good what the new tags of a chunk mean.

        Their signals by roles are decided in the order of their first points; those up to ``end`` have them.
        """
        if all(tag in self.meanings for tag in chunk.tags):
            return
        present = {meaning.signal for meaning in self.meanings.values() if meaning is not None}
        by_names = {meaning.signal for tag in chunk.tags if (meaning := self._meaning(tag)) is not None}
        codes, first_index = np.unique(chunk.tag, return_index=True)
        for index, code in sorted(zip(first_index.tolist(), codes.tolist(), strict=True)):
            tag = chunk.tags[code]
            if tag in self.meanings:
                continue
            meaning = self._meaning(tag)
            if index >= end and self._is_open(self.profile, tag):
                by_words = None if meaning is None else meaning.signal
                series = self._one_series(tag, Values(points=1))
                signal = later_signal(series, by_words, present) or loss_of(by_words, present | by_names)
                if signal is not None:
                    self.role_signals[tag] = signal
                    meaning = self._meaning(tag)
            if meaning is not None:
                present.add(meaning.signal)
        for tag in chunk.tags:
            if tag not in self.meanings:
                self._learn(tag)

    def _learn(self, tag: str) -> None:
        """Decide for good what a tag means."""
        meaning = self.meanings[tag] = self._meaning(tag)
        used_signals = self.specs.signals | {Signal.TOTAL_STEPS}
        meanings = [*([meaning] if meaning else ()), *self.rule_meanings(tag)]
        self.used_meanings[tag] = tuple(one for one in meanings if one.signal in used_signals)
        signals = {one.signal for one in meanings}
        self.expected[tag] = tuple(rule for rule in self.specs.expected if rule.signal in signals)

    def _full_tag(self, tag: str) -> str:
        """Return the tag with the part of the data that the directory states, without its training."""
        tag = without_label(tag, self.label)
        return f"{self.part}/{tag}" if self.part and not tag.startswith(f"{self.part}/") else tag

    def _has_comparable_steps(self, tag: str) -> bool:
        """Return whether a step of the tag that goes back begins an attempt; see `Attempts`."""
        meaning = self.meanings[tag]
        return meaning is not None and meaning.signal not in _OF_THE_MACHINE and not is_of_histogram(tag)

    def _points(self, chunk: Chunk, part: slice) -> list[Points]:
        """Return the points of tags that a spec or the plan uses, in the unit and sign of their signals."""
        is_used = np.array([bool(self.used_meanings[tag]) for tag in chunk.tags], dtype=bool)
        index = np.flatnonzero(is_used[chunk.tag[part]]) + part.start
        index = index[order_by_tag(chunk.tag[index])]
        code, step, time, value = (getattr(chunk, name)[index] for name in POINT_FIELDS)
        position = self.position + index
        converted = []
        for tag_part in of_each_tag(code):
            tag = chunk.tags[code[tag_part.start]]
            for meaning in self.used_meanings[tag]:
                points = Points(
                    tag=tag,
                    signal=meaning.signal,
                    step=step[tag_part],
                    time=time[tag_part],
                    position=position[tag_part],
                    value=value[tag_part],
                )
                converted.append(self._converted(points, meaning))
        return converted

    def _odd_points(self, chunk: Chunk, part: slice) -> list[Points]:
        """Return the points that report odd numbers without a meaning, if a spec uses them."""
        signals = [meaning.signal if (meaning := self.meanings[tag]) else None for tag in chunk.tags]
        is_free = [
            not is_of_histogram(tag) and not self.naming.ignores(self._full_tag(tag)) for tag in chunk.tags
        ]
        tags = [*zip(is_free, signals, strict=True)]
        points: list[Points] = []
        if Signal.OTHER_METRIC in self.specs.signals:
            left_out_signals = JUDGED_THEMSELVES | UNDEFINED_AT_REST
            unjudged = [free and signal not in left_out_signals for free, signal in tags]
            losses = [signal in LOSSES for signal in signals]
            points += self.unmapped_nonfinite.extend(chunk, part, self.position, unjudged, losses)
        if not self.specs.signals.isdisjoint(ODD):
            unnamed = [free and signal is None for free, signal in tags]
            points += self.unmapped_shape.extend(chunk, part, self.position, unnamed)
        if Signal.PACE in self.specs.signals:
            is_step = [signal is Signal.LOSS for signal in signals]
            points += self.pace.extend(chunk, part, self.position, self.attempt.number, is_step)
        return points

    def _converted(self, points: Points, meaning: Meaning) -> Points:
        """Return the points in the unit and sign of their signal, without values that it cannot have."""
        if meaning.factor != 1.0:
            points = points.with_value(points.value * meaning.factor)
        if meaning.is_exponential:
            return points.with_value(losses_of(points.value))
        if meaning.signal in SHARES:
            value, is_share = self.units.shares(points.tag, points.value)
            return points.with_value(value).take(is_share)
        if meaning.signal is Signal.EVAL_ERROR_RATE:
            return points.with_value(self.units.errors(points.tag, points.value))
        if meaning.either_sign:
            return points.with_value(self.units.positive(points.tag, points.value))
        return points

    def dump(self) -> "StreamState":
        """Return everything that `restore` needs, to be encoded before the next point is added."""
        first = self.first_points
        points = None if first is None else (first.tags, *(getattr(first, name) for name in POINT_FIELDS))
        state = {field: getattr(self, field) for field in _STORED_ALIKE}
        profile = self.profile.name if self.profile else None
        return StreamState(**state, points=points, profile_name=profile, tags=list(self.meanings))

    @staticmethod
    def attempt_in(state: Any) -> Attempt:
        """Return the present attempt in the state that `dump` gave."""
        return _restored(state).attempt

    def restore(self, state: Any) -> None:
        """Undo `dump`. Raises msgspec.ValidationError for what it did not make."""
        stored = _restored(state)
        for field in _STORED_ALIKE:
            setattr(self, field, getattr(stored, field))
        self.first_points = Chunk(self.name, *stored.points) if stored.points else None
        self.profile = profiles()[stored.profile_name] if stored.profile_name else None
        for tag in stored.tags:
            self._learn(tag)


class StreamState(msgspec.Struct, array_like=True):
    """What is stored of a `Stream`."""

    label: str
    unit: str
    position: int
    has_names: bool
    attempts: Attempts
    attempt: Attempt
    plans: Plans
    units: Units
    signals: dict[str, int]
    inventory_taker: InventoryTaker
    missing_tags: MissingTags
    tag_context: TagContext
    role_signals: dict[str, Signal | None]
    values: TagValues
    unmapped_nonfinite: UnmappedNonFinite
    unmapped_shape: UnmappedShape
    pace: Pace
    points: Sequence[Any] | None  # the tags and the columns of ``first_points``
    profile_name: str | None
    tags: Sequence[str]


_STORED_ALIKE = tuple(field for field in StreamState.__struct_fields__ if field in Stream.__struct_fields__)


def _history(form: type, state: Any) -> Any:
    """Restore a history. Arrays are arrays already."""
    return SeriesHistory.load(state) if form is SeriesHistory else state


_restored = converter(StreamState, _history)


def _with_role(meaning: Meaning | None, signal: Signal | None) -> Meaning | None:
    """Return the meaning of a tag whose role gives it another signal, or none."""
    if signal is None:
        return None
    if meaning is None:
        return Meaning(signal)
    is_exponential = LOSS_OF_PERPLEXITY.get(meaning.signal) is signal
    return replace(meaning, signal=signal, is_exponential=is_exponential)
