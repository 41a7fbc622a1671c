"""One stream: turns logged chunks into rows that detectors can judge.

The framework is recognised once, from the first points of the stream. These points wait until there are
enough of them. The positions of points decide this as well, so it does not depend on polls.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from sentinel.detectors.run_checks import Absence, Expected, Inventory
from sentinel.detectors.signals import Signal
from sentinel.series.attempt import Attempt
from sentinel.series.attempts import Attempts, Points
from sentinel.series.derived import SHARES, SUMMED, Units
from sentinel.series.first_points import POINT_FIELDS, counts, joined, prologue_end
from sentinel.series.history import Window
from sentinel.series.missing_tags import InventoryTaker, MissingTags
from sentinel.series.naming import Meaning, Naming, Profile, is_of_histogram, profiles, recognise
from sentinel.series.plan import KnownOfStream, Plans
from sentinel.series.specs import SeriesSpec, SeriesSpecs
from sentinel.series.state_schema import StreamState
from sentinel.series.tag_context import TagContext
from sentinel.series.unmapped_nonfinite import JUDGED_THEMSELVES, LOSSES, UnmappedNonFinite
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


class Extension(NamedTuple):
    """What a chunk brought to a stream: rows, and what is no row."""

    rows: Sequence[SeriesRows] = ()  # those that it completes, in order within each series
    inventories: Sequence[Inventory] = ()
    absences: Sequence[Absence] = ()


@dataclass(slots=True)
class Stream:
    """The state of one stream of the run with the id ``run``.

    ``format`` is the format of the source, on which some names depend. ``part`` is the part of the training
    to which all of the stream belongs, if the directory tells it: Keras logs the same tags in `train/` and in
    `validation/`.
    """

    run: str
    name: str
    format: str
    part: str
    naming: Naming
    specs: SeriesSpecs
    position: int = 0  # of the next point
    first_points: Chunk | None = None
    named: bool = False
    profile: Profile | None = None
    tag_context: TagContext = field(default_factory=TagContext)
    attempts: Attempts = field(default_factory=Attempts)
    attempt: Attempt = field(default_factory=lambda: Attempt(1))
    meanings: dict[str, Meaning | None] = field(default_factory=dict)
    judged: dict[str, Sequence[Meaning]] = field(default_factory=dict)  # a view or the plan asks for these
    plans: Plans = field(default_factory=Plans)
    signals: dict[str, int] = field(default_factory=dict)  # position of the first point of each
    units: Units = field(default_factory=Units)
    inventory_taker: InventoryTaker = field(default_factory=InventoryTaker)
    expected: dict[str, Sequence[Expected]] = field(default_factory=dict)  # by tag
    missing_tags: MissingTags = field(default_factory=MissingTags)
    unmapped_nonfinite: UnmappedNonFinite = field(default_factory=UnmappedNonFinite)
    unmapped_shape: UnmappedShape = field(default_factory=UnmappedShape)

    @property
    def begun(self) -> bool:
        """Whether the stream has a point."""
        return self.position > 0 or self.first_points is not None

    @property
    def planned_steps(self) -> float | None:
        """The planned last step, if the log or the settings state it."""
        logged = self.attempt.last(Signal.TOTAL_STEPS)
        total = self.plans.now.get(Signal.TOTAL_STEPS) if logged is None else logged
        return total or None

    def extend(self, chunk: Chunk, read_at: float = math.nan) -> Extension:
        """Add the points of a chunk. ``read_at`` is the time awake of the watch that read it."""
        waiting = 0 if self.first_points is None or chunk.restarted else len(self.first_points.step)
        self.plans.hold(self.position + waiting, chunk.config)
        if not len(chunk.step):
            return Extension()
        if not self.named:
            chunk = self.first_points = joined(self.first_points, chunk)
            end = prologue_end(chunk)
            if end is None:
                return Extension()
            self._name(counts(chunk, end))
        return self._extend(chunk, read_at)

    def end(self) -> Iterator[SeriesRows]:
        """Yield the rows that are left when the run is over: points that wait for names, then last rows."""
        if self.first_points is not None:
            waiting = self.first_points
            self._name(counts(waiting))
            yield from self._extend(waiting, math.nan).rows
        yield from self._series_rows(self.attempt.end(self.specs), self.known)

    def _series_rows(
        self, windows: Iterable[tuple[SeriesSpec, str, Window]], known: KnownOfStream
    ) -> Iterator[SeriesRows]:
        """Yield the windows of the present attempt with all that tells where they come from."""
        for spec, tag, window in windows:
            yield SeriesRows(self.run, self.name, spec, self.attempt.number, tag, window, known)

    def _name(self, tags: Mapping[str, int]) -> None:
        """Decide for good what the tags mean, given how often each of the first tags was logged."""
        self.profile, self.tag_context = self._recognised(tags)
        self.named = True
        self.first_points = None
        for tag in sorted(tags):
            meaning = self._meaning(tag)
            if meaning is not None and meaning.signal in SUMMED:
                self.attempt.sums.setdefault(meaning.signal, []).append(tag)

    def _extend(self, chunk: Chunk, read_at: float) -> Extension:
        """Add points that no longer wait for their names."""
        for tag in chunk.tags:
            if tag not in self.meanings:
                self._learn(tag)
        self._record_signals(chunk)
        known = self.known
        surveys = self.inventory_taker.survey(self.name, chunk, self.position, known)
        expected = {
            wish: [tag for tag in chunk.tags if wish in self.expected[tag]] for wish in self.specs.expected
        }
        absences = [*self.missing_tags.extend(chunk, self.position, expected, read_at)]
        telling = np.array([self._tells_attempts(tag) for tag in chunk.tags], dtype=bool)
        rows: list[SeriesRows] = []
        for number, part in self.attempts.split(chunk, telling):
            if number != self.attempt.number:
                self.attempt = self.attempt.next(number, self.specs)
            arrived = [*self._points(chunk, part), *self._odd(chunk, part)]
            rows += self._series_rows(self.attempt.windows(arrived, self.specs, self.plans), known)
        self.position += len(chunk.step)
        return Extension(rows, surveys, absences)

    def _record_signals(self, chunk: Chunk) -> None:
        """Remember the positions of the first points of signals."""
        meanings = [self.meanings[tag] for tag in chunk.tags]
        if all(m is None or m.signal in self.signals for m in meanings):
            return
        codes, first = np.unique(chunk.tag, return_index=True)
        for place, code in sorted(zip(first.tolist(), codes.tolist(), strict=True)):
            if (meaning := meanings[code]) is not None:
                self.signals.setdefault(meaning.signal.value, self.position + place)

    @property
    def known(self) -> KnownOfStream:
        """What the stream tells of its run."""
        return KnownOfStream(self.profile.name if self.profile else None, self.signals, self.plans)

    def explained(self) -> tuple[Profile | None, dict[str, Meaning | None]]:
        """Return the framework and the meaning of every tag. They may change while the stream is short."""
        if self.named or self.first_points is None:
            return self.profile, self.meanings
        profile, company = self._recognised(counts(self.first_points))
        named = partial(self._named, profile)
        return profile, {tag: company.meaning(tag, named) for tag in self.first_points.tags}

    def _recognised(self, tags: Mapping[str, int]) -> tuple[Profile | None, TagContext]:
        """Return what the first tags say, given how often each was logged."""
        profile = recognise({self._full(tag) for tag in tags if not is_of_histogram(tag)}, self.format)
        return profile, TagContext.from_tags(tags, partial(self._named, profile))

    def _meaning(self, tag: str) -> Meaning | None:
        return self.tag_context.meaning(tag, partial(self._named, self.profile))

    def _named(self, profile: Profile | None, tag: str) -> Meaning | None:
        return self.naming.meaning(profile, self._full(tag))

    def own(self, tag: str) -> list[Meaning]:
        """Return the meanings of a tag for the user's own rules."""
        return self.naming.own(self._full(tag))

    def _learn(self, tag: str) -> None:
        """Decide for good what a tag means."""
        meaning = self.meanings[tag] = self._meaning(tag)
        asked = self.specs.signals | {Signal.TOTAL_STEPS}
        all_of_it = [*([meaning] if meaning else ()), *self.own(tag)]
        self.judged[tag] = tuple(view for view in all_of_it if view.signal in asked)
        signals = {view.signal for view in all_of_it}
        self.expected[tag] = tuple(wish for wish in self.specs.expected if wish.signal in signals)

    def _full(self, tag: str) -> str:
        return f"{self.part}/{tag}" if self.part and not tag.startswith(f"{self.part}/") else tag

    def _tells_attempts(self, tag: str) -> bool:
        meaning = self.meanings[tag]
        return meaning is not None and meaning.signal not in _OF_THE_MACHINE and not is_of_histogram(tag)

    def _points(self, chunk: Chunk, part: slice) -> list[Points]:
        """Return the points of tags that a view or the plan asks for, in the unit and sign of their
        signals.
        """
        asked = np.array([bool(self.judged[tag]) for tag in chunk.tags], dtype=bool)
        at = np.flatnonzero(asked[chunk.tag[part]]) + part.start
        at = at[order_by_tag(chunk.tag[at])]
        code, step, time, value = (getattr(chunk, name)[at] for name in POINT_FIELDS)
        position = self.position + at
        arrived = []
        for of_series in of_each_tag(code):
            tag = chunk.tags[code[of_series.start]]
            for meaning in self.judged[tag]:
                points = Points(
                    tag,
                    meaning.signal,
                    step[of_series],
                    time[of_series],
                    position[of_series],
                    value[of_series],
                )
                arrived.append(self._converted(points, meaning))
        return arrived

    def _odd(self, chunk: Chunk, part: slice) -> list[Points]:
        """Return the points that tell of numbers that no detector judges, if a view asks for them."""
        signals = [meaning.signal if (meaning := self.meanings[tag]) else None for tag in chunk.tags]
        free = [not is_of_histogram(tag) and not self.naming.ignores(self._full(tag)) for tag in chunk.tags]
        unnamed = [is_free and signal is None for is_free, signal in zip(free, signals, strict=True)]
        odd = []
        if Signal.OTHER_METRIC in self.specs.signals:
            unjudged = [
                is_free and s not in JUDGED_THEMSELVES for is_free, s in zip(free, signals, strict=True)
            ]
            losses = [signal in LOSSES for signal in signals]
            odd += self.unmapped_nonfinite.extend(chunk, part, self.position, unjudged, losses)
        if not self.specs.signals.isdisjoint(ODD):
            odd += self.unmapped_shape.extend(chunk, part, self.position, unnamed)
        return odd

    def _converted(self, points: Points, meaning: Meaning) -> Points:
        """Return the points in the unit and sign of their signal, without values that the signal cannot
        have.
        """
        if meaning.factor != 1.0:
            points = points.with_value(points.value * meaning.factor)
        if meaning.signal in SHARES:
            value, is_share = self.units.shares(points.tag, points.value)
            return points.with_value(value).take(is_share)
        if meaning.either_sign:
            return points.with_value(self.units.positive(points.tag, points.value))
        return points

    def dump(self) -> StreamState:
        """Return everything `restore` needs."""
        first = self.first_points
        waiting = first and [[*first.tags], *(getattr(first, name) for name in POINT_FIELDS)]
        return StreamState(
            position=self.position,
            waiting=waiting or None,
            named=self.named,
            profile=self.profile.name if self.profile else None,
            attempts=self.attempts.dump(),
            attempt=self.attempt.dump(),
            tags=list(self.meanings),
            plans=self.plans.dump(),
            units=self.units.factors,
            signals=self.signals,
            surveyor=self.inventory_taker.dump(),
            presence=self.missing_tags.dump(),
            company=self.tag_context.dump(),
            unnamed=self.unmapped_nonfinite.dump(),
            oddities=self.unmapped_shape.dump(),
        )

    @staticmethod
    def attempt_in(state: Sequence[Any]) -> Attempt:
        """Return the present attempt in what `dump` gave."""
        return Attempt.load(StreamState(*state).attempt)

    def restore(self, state: Sequence[Any]) -> None:
        """Go on where `dump` was called."""
        kept = StreamState(*state)
        self.position = kept.position
        self.named = kept.named
        self.signals = kept.signals
        self.first_points = Chunk(self.name, *kept.waiting) if kept.waiting else None
        self.profile = profiles()[kept.profile] if kept.profile else None
        self.attempts = Attempts.load(kept.attempts)
        self.attempt = Attempt.load(kept.attempt)
        self.plans = Plans(*kept.plans)
        self.units = Units(kept.units)
        self.inventory_taker = InventoryTaker.load(kept.surveyor)
        self.missing_tags = MissingTags.load(kept.presence)
        self.tag_context = TagContext.load(kept.company)
        self.unmapped_nonfinite = UnmappedNonFinite.load(kept.unnamed)
        self.unmapped_shape = UnmappedShape.load(kept.oddities)
        for tag in kept.tags:
            self._learn(tag)
