"""What a stream logs, once it has gone on long enough to show it, and the tags that it stops logging later.

Every point decides at its own place in the stream, so the result is the same however the log was cut into
polls. Times are those of the log; for a log without times, those at which a watch read it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.run_checks import Absence, Expected, Inventory
from sentinel.detectors.settings import Setting
from sentinel.series.plan import KnownOfStream
from sentinel.sources.base import Chunk

STEPS = 100  # from the first point on
ROWS = 20  # points with a step of their own; a run that logs each 2048th step has seen little after 100


@dataclass(slots=True)
class InventoryTaker:
    """Waits for the position at which its stream is surveyed, which happens once."""

    first: int | None = None  # step of the first point
    last: int = 0  # step of the last point
    rows: int = 0
    done: bool = False

    def survey(self, stream: str, chunk: Chunk, position: int, known: KnownOfStream) -> Sequence[Inventory]:
        """Return the survey, if the stream gets there in this chunk, whose first point has this position."""
        if self.done or not len(chunk.step):
            return ()
        self.first = int(chunk.step[0]) if self.first is None else self.first
        rows = self.rows + np.cumsum(np.diff(chunk.step, prepend=self.last) != 0)
        there = np.flatnonzero((chunk.step >= self.first + STEPS) & (rows >= ROWS))
        self.last = int(chunk.step[-1])
        self.rows = int(rows[-1])
        self.done = len(there) > 0
        if not self.done:
            return ()
        place = int(there[0])
        at = position + place
        step = int(chunk.step[place])
        time = float(chunk.time[place])
        told = {setting.value: known.setting(setting, at, step) for setting in Setting}
        return [
            Inventory(
                stream=stream,
                step=step,
                time=None if math.isnan(time) else time,
                framework=known.framework,
                signals=frozenset(signal for signal, begun in known.begun.items() if begun < at),
                settings={name: value for name, value in told.items() if value is not None},
            )
        ]

    def dump(self) -> list[Any]:
        """Return everything `load` needs."""
        return [self.first, self.last, self.rows, self.done]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        return cls(*state)


MAX_TAGS = 128
"""How many tags of one rule are expected. Further ones are left out."""


@dataclass(frozen=True)
class _LastPoint:
    """The last point of a tag. ``since`` is when its absence began to count; ``missed`` is true once the
    absence was told.
    """

    step: int
    time: float  # NaN where the log has no times
    since: float
    missed: bool


@dataclass(slots=True)
class MissingTags:
    """When each expected tag was last logged, by rule and by tag. A tag that never was cannot be missed."""

    newest: float = math.nan  # time of the last point of the stream
    last: dict[str, dict[str, _LastPoint]] = field(default_factory=dict)

    def extend(
        self, chunk: Chunk, position: int, expected: Mapping[Expected, Sequence[str]], read_at: float
    ) -> Iterator[Absence]:
        """Yield what is missed, or logged again, within the chunk, whose first point has this position.

        ``expected`` names the tags of the chunk that each rule is about. ``read_at`` is the time awake of the
        watch that read the chunk, NaN in a replay. A pause of the whole stream that is longer than a rule
        allows, such as a restart or a clock that was set, begins the count anew.
        """
        if not expected or not len(chunk.step):
            return
        time = np.where(np.isnan(chunk.time), read_at, chunk.time)
        pauses = np.abs(np.diff(time, prepend=self.newest))
        self.newest = float(time[-1])
        for rule, tags in expected.items():
            last = self.last.setdefault(rule.key, {})
            breaks = np.flatnonzero(pauses > rule.within_seconds)
            for tag in [*dict.fromkeys([*last, *tags])][:MAX_TAGS]:
                logged = np.flatnonzero(chunk.tag == chunk.tags.index(tag)) if tag in tags else _NOWHERE
                if len(logged) or tag in last:
                    yield from self._of_tag(rule, tag, logged, breaks, time, chunk, position)

    def _of_tag(
        self,
        rule: Expected,
        tag: str,
        logged: NDArray[np.intp],
        breaks: NDArray[np.intp],
        time: NDArray[np.float64],
        chunk: Chunk,
        position: int,
    ) -> Iterator[Absence]:
        """Yield the same for one tag, which is logged at the places ``logged`` of the chunk."""
        known = self.last[rule.key]
        last = known.get(tag) or _LastPoint(0, math.nan, math.nan, missed=False)
        begins = np.union1d(logged, breaks[breaks > logged[0]] if tag not in known else breaks)
        since = np.append(last.since, time[begins])
        age = time - since[np.searchsorted(begins, np.arange(len(time)), side="right")]
        late = np.flatnonzero(age > rule.within_seconds)
        numbers, firsts = np.unique(np.searchsorted(logged, late, side="right"), return_index=True)
        missed = dict(zip(numbers.tolist(), late[firsts].tolist(), strict=True))  # by points logged before

        def absence(at: int, begun: _LastPoint, *, over: bool) -> Absence:
            return Absence(
                rule=rule,
                tag=tag,
                index=position + at,
                step=int(chunk.step[at]),
                time=_known(chunk.time[at]),
                seconds=0.0 if over else float(age[at]),
                last_step=begun.step,
                last_time=_known(begun.time),
                over=over,
            )

        for number in sorted({*missed, *([0] if last.missed else [])}):
            begun = last if number == 0 else _at(chunk, logged[number - 1])
            if number or not last.missed:
                yield absence(missed[number], begun, over=False)
            if number < len(logged):
                yield absence(int(logged[number]), begun, over=True)
        newest = _at(chunk, logged[-1]) if len(logged) else last
        still = len(logged) in missed or (last.missed and not len(logged))
        known[tag] = _LastPoint(newest.step, newest.time, float(since[-1]), missed=still)

    def dump(self) -> list[Any]:
        """Return everything `load` needs."""
        return [self.newest, {rule: {t: astuple(p) for t, p in of.items()} for rule, of in self.last.items()}]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        newest, last = state
        return cls(newest, {rule: {t: _LastPoint(*p) for t, p in of.items()} for rule, of in last.items()})


_NOWHERE = np.empty(0, np.intp)


def _at(chunk: Chunk, place: int) -> _LastPoint:
    return _LastPoint(int(chunk.step[place]), float(chunk.time[place]), math.nan, missed=False)


def _known(time: float) -> float | None:
    return None if math.isnan(time) else float(time)
