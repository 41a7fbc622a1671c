"""What a log says about its run beside the series: its extent, its settings, whether the run ended, which
framework wrote it, and what its tags mean.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from sentinel.common.days import Extent, Span, spans_with
from sentinel.common.secrets import masked_settings
from sentinel.series.derived import derived
from sentinel.series.naming import summaries
from sentinel.series.stream import Stream
from sentinel.sources.base import Chunk, Ending, EndKind
from sentinel.sources.identity import NO_LABEL, Label
from sentinel.sources.readers.plain import MAX_KEYS, Plain

_MAX_PARTS = 100  # of a rotated log that are remembered, the last ones
_MAX_PAUSES = 100  # that are remembered, the last ones
_MAX_STEP_INTERVALS = 8  # that are remembered, the last ones
_MIN_LOST_SECONDS = 600.0  # an evaluation or a checkpoint may keep a log silent for minutes
_MAX_UNMAPPED_TAGS = 200  # that are named

DONE = "done"
"""The tag by which a plain loop says, with the value 1, that it is done."""

LONG_INTERVALS = 10
"""How many long intervals a log may be silent before that is unusual."""


class FoundSetting(NamedTuple):
    """A setting of a run and its origin: the format of the log, or the name of a file beside it."""

    value: Plain
    origin: str


class RunMetadata(msgspec.Struct):
    """The facts about one run. Steps and times are None before the first point. Times use the log's clock."""

    points: int = 0
    first_step: int | None = None
    last_step: int | None = None
    first_time: float | None = None
    last_time: float | None = None
    days: list[Span] = []  # that have points
    pauses: list[float] = []  # seconds, the last ones
    step_intervals: list[int] = []  # between the last steps that have points
    config: dict[str, FoundSetting] = {}
    plan: dict[str, float] = {}  # planned values by signal, for streams that begin from now on
    logged_ending: Ending | None = None  # by a record of the log
    last_words: Ending | None = None  # stated by other means than records of the log, once it is silent
    exit: Ending | None = None  # of the process that wrote the log
    process_gone: str = ""  # that this process ended, and how is not known
    output: str = ""  # the file in which this process printed its end
    step_elsewhere: int | None = None  # the last one in any other log of this process
    writers: list[str] = []  # the process that writes the log, and the one that launched the ranks
    working_directory: str = ""  # of this process
    parts: list[dict[str, Any]] = []  # marks of the files that a rotation put aside, the last ones
    original: str = ""  # id of the run of which it is a copy
    heard: int = 0  # checksum of the files with the last words, when these were read
    goes_on: str = ""  # why more is to come; known once it was silent for long
    summary_step: int | None = None
    done_step: int | None = None
    label: Label = NO_LABEL  # by which a tracker shows the run

    def undo_finalize(self, chunk: Chunk) -> None:
        """Forget all that a silence suggested, and count a chunk with points that was logged since."""
        self.last_words = None
        self.heard = 0
        self.goes_on = ""
        self.exit = None
        self.process_gone = self.output = ""
        self.step_elsewhere = None
        self.count(chunk)

    def put_aside(self, marks: Sequence[Mapping[str, Any]]) -> None:
        """Remember the marks of files that others have replaced."""
        marks_to_store = [
            {name: mark[name] for name in ("head", "offset", "tail") if name in mark} for mark in marks
        ]
        self.parts = [*self.parts, *marks_to_store][-_MAX_PARTS:]

    def count(self, chunk: Chunk) -> None:
        self.points += len(chunk.step)
        low = int(chunk.step.min())
        high = int(chunk.step.max())
        if self.last_step is None or high > self.last_step:
            steps = np.unique(chunk.step)
            finite = (
                steps if self.last_step is None else np.append(self.last_step, steps[steps > self.last_step])
            )
            self.step_intervals = (self.step_intervals + np.diff(finite).tolist())[-_MAX_STEP_INTERVALS:]
        self.first_step = low if self.first_step is None else min(self.first_step, low)
        self.last_step = high if self.last_step is None else max(self.last_step, high)
        time = chunk.time[np.isfinite(chunk.time)]
        if len(time):
            self.days = spans_with(self.extent.whole, time)
            self.first_time = float(time[0]) if self.first_time is None else self.first_time
            clock = time if self.last_time is None else np.append(self.last_time, time)
            pauses = clock[1:] - clock[:-1]
            self.pauses = (self.pauses + pauses[pauses > 0][-_MAX_PAUSES:].tolist())[-_MAX_PAUSES:]
            self.last_time = max(self.last_time or 0.0, float(time.max()))
        summary_codes = [i for i, tag in enumerate(chunk.tags) if tag.endswith(summaries())]
        if summary_codes:
            is_summary = np.isin(chunk.tag, summary_codes)
            if is_summary.any():
                self.summary_step = int(chunk.step[is_summary].max())
        done_codes = [i for i, tag in enumerate(chunk.tags) if tag.rpartition("/")[2].casefold() == DONE]
        if done_codes:
            is_done = np.isin(chunk.tag, done_codes) & (chunk.value == 1)
            if is_done.any():
                self.done_step = int(chunk.step[is_done].max())

    def record(self, settings: Mapping[str, Plain], origin: str) -> None:
        """Add at most `MAX_KEYS` settings without their secrets. A later value replaces an earlier one."""
        for key, value in masked_settings(settings).items():
            if key in self.config or len(self.config) < MAX_KEYS:
                self.config[key] = FoundSetting(value, origin)

    def ending(self, planned_steps: float | None) -> Ending | None:
        """Return how the run ended; None if its log does not say that it ended."""
        if self.logged_ending is not None:
            return self.logged_ending
        if self.exit is not None and self.exit.outcome is not EndKind.FINISHED:
            return self.exit
        if self.last_step is None:
            return self.last_words or self.exit
        if self.last_step == self.summary_step:
            return Ending(EndKind.FINISHED, f"its log ends with a summary at step {self.last_step}", True)
        if self.last_step == self.done_step:
            return Ending(
                EndKind.FINISHED, f"its last row, at step {self.last_step}, says that it is done", True
            )
        counted_from_zero = self.first_step == 0 and self.last_step + 1 == planned_steps
        if self.last_step == planned_steps or counted_from_zero:
            return Ending(EndKind.FINISHED, f"step {self.last_step} is the last one planned", True)
        return self.last_words or self.exit

    def seconds_to_go(self, planned_steps: float | None) -> float | None:
        """Return how long the run would take to its planned end at its mean pace; None if unknown."""
        if planned_steps is None or self.lasted_seconds is None or self.last_step is None:
            return None
        past_steps = self.last_step - (self.first_step or 0)
        steps_to_go = planned_steps - self.last_step
        if past_steps <= 0 or steps_to_go <= 0:
            return None
        return self.lasted_seconds * steps_to_go / past_steps

    @property
    def extent(self) -> Extent:
        """When the log has points."""
        return Extent(self.first_time, self.last_time, self.days)

    @property
    def lasted_seconds(self) -> float | None:
        """Seconds from the first point to the last one by the log's clock; None if it has none."""
        if self.first_time is None or self.last_time is None:
            return None
        return self.last_time - self.first_time

    @property
    def lost_after_seconds(self) -> float:
        """How long the log may be silent before the run counts as lost, by the log's own clock."""
        return lost_after_seconds(self.pauses)


def lost_after_seconds(intervals: Sequence[float]) -> float:
    """Return how long a log may be silent, given the seconds between its arrivals, in any order."""
    if not intervals:
        return _MIN_LOST_SECONDS
    long_interval = sorted(intervals)[math.ceil(0.95 * len(intervals)) - 1]
    return max(LONG_INTERVALS * long_interval, _MIN_LOST_SECONDS)


class Understanding(msgspec.Struct, frozen=True):
    """What a run's log is taken to say: framework, tags by signal, tags that mean nothing."""

    framework: str | None
    signals: dict[str, list[str]]
    unmapped: list[str]

    @property
    def tags(self) -> set[str]:
        """All tags that are known, whether they mean something or not."""
        return {*self.unmapped, *(tag for tags in self.signals.values() for tag in tags)}


def framework(streams: Iterable[Stream]) -> str | None:
    """Return the framework that wrote most of some streams of one run; None if it is not known."""
    profiles = Counter(profile.name for stream in streams if (profile := stream.explained()[0]) is not None)
    return profiles.most_common(1)[0][0] if profiles else None


def understood(streams: Collection[Stream]) -> Understanding:
    """Return the framework, the signals and the unmapped tags of some streams of one run."""
    signals: dict[str, dict[str, None]] = {}
    unmapped: dict[str, None] = {}
    for stream in streams:
        _, meanings = stream.explained()
        stream_signals: dict[str, list[str]] = {}
        for tag, meaning in meanings.items():
            if meaning is not None:
                stream_signals.setdefault(meaning.signal.value, []).append(tag)
            elif len(unmapped) < _MAX_UNMAPPED_TAGS:
                unmapped[tag] = None
            for rule_meaning in stream.rule_meanings(tag):
                stream_signals.setdefault(rule_meaning.signal.value, []).append(tag)
        for signal, tag in derived(stream_signals):
            stream_signals.setdefault(signal.value, []).append(tag)
        for name, tags in stream_signals.items():
            signals.setdefault(name, {}).update(dict.fromkeys(tags))
    return Understanding(
        framework=framework(streams),
        signals={signal: list(tags) for signal, tags in sorted(signals.items())},
        unmapped=list(unmapped),
    )
