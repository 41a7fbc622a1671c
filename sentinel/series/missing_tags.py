"""What a stream logs, once it has gone on long enough to show it, and the tags that it stops logging later.

Every point decides at its own place in the stream, so the result is the same however the log was cut into
polls. Times are those of the log; for a log without times, those at which a watch read it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.run_checks import Absence, Expected, Inventory
from sentinel.detectors.settings import Setting
from sentinel.series.plan import KnownOfStream
from sentinel.sources.base import Chunk

STEPS = 100
"""Steps from the first point on, after which a stream has shown what it logs."""

ROWS = 20
"""Steps with points that it needs as well: a run that logs each 2048th step has shown little after 100."""


class InventoryTaker(msgspec.Struct, array_like=True):
    """Takes the inventory of its stream, once the stream has gone on long enough."""

    first: int | None = None  # step of the first point
    last: int = 0  # step of the last point
    rows: int = 0
    finished: bool = False

    def survey(
        self, stream: str, chunk: Chunk, position: int, stream_facts: KnownOfStream
    ) -> Sequence[Inventory]:
        """Return the inventory, if it is due in this chunk, whose first point has this position."""
        if self.finished or not len(chunk.step):
            return ()
        self.first = int(chunk.step[0]) if self.first is None else self.first
        rows = self.rows + np.cumsum(np.diff(chunk.step, prepend=self.last) != 0)
        due_rows = np.flatnonzero((chunk.step >= self.first + STEPS) & (rows >= ROWS))
        self.last = int(chunk.step[-1])
        self.rows = int(rows[-1])
        self.finished = len(due_rows) > 0
        if not self.finished:
            return ()
        index = int(due_rows[0])
        due_position = position + index
        step = int(chunk.step[index])
        settings = {setting.value: stream_facts.setting(setting, due_position, step) for setting in Setting}
        first_positions = stream_facts.first_positions.items()
        return [
            Inventory(
                stream=stream,
                step=step,
                time=_time_or_none(chunk.time[index]),
                framework=stream_facts.framework,
                signals=frozenset(signal for signal, first in first_positions if first < due_position),
                settings={name: value for name, value in settings.items() if value is not None},
            )
        ]


MAX_TAGS = 128
"""How many tags of one rule are expected. Further ones are left out."""


class _LastPoint(msgspec.Struct, frozen=True, array_like=True):
    """A tag's last point. Its absence began to count at ``since``, and was reported if ``is_missed``."""

    step: int
    time: float  # NaN where the log has no times
    since: float
    is_missed: bool


class MissingTags(msgspec.Struct, array_like=True):
    """When each expected tag was last logged, by rule and by tag. A tag that never was cannot be missed."""

    newest: float = math.nan  # time of the last point of the stream
    last: dict[str, dict[str, _LastPoint]] = msgspec.field(default_factory=dict)

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
                logged = np.flatnonzero(chunk.tag == chunk.tags.index(tag)) if tag in tags else _NO_POINTS
                if len(logged) or tag in last:
                    yield from self._absences(rule, tag, logged, breaks, time, chunk, position)

    def _absences(
        self,
        rule: Expected,
        tag: str,
        logged: NDArray[np.intp],
        breaks: NDArray[np.intp],
        time: NDArray[np.float64],
        chunk: Chunk,
        position: int,
    ) -> Iterator[Absence]:
        """Yield the same for one tag, which is ``logged`` at these indices of the chunk.

        The clock of its absence starts anew at each of its points and at each of the ``breaks``.
        """
        last_by_tag = self.last[rule.key]
        last = last_by_tag.get(tag) or _LastPoint(0, math.nan, math.nan, is_missed=False)
        begins = np.union1d(logged, breaks[breaks > logged[0]] if tag not in last_by_tag else breaks)
        since = np.append(last.since, time[begins])
        age = time - since[np.searchsorted(begins, np.arange(len(time)), side="right")]
        late = np.flatnonzero(age > rule.within_seconds)
        # Absences by the number of points of the tag that precede them in the chunk.
        numbers, firsts = np.unique(np.searchsorted(logged, late, side="right"), return_index=True)
        missed_at = dict(zip(numbers.tolist(), late[firsts].tolist(), strict=True))

        def absence(index: int, last_point: _LastPoint, *, over: bool) -> Absence:
            return Absence(
                rule=rule,
                tag=tag,
                index=position + index,
                step=int(chunk.step[index]),
                time=_time_or_none(chunk.time[index]),
                seconds=0.0 if over else float(age[index]),
                last_step=last_point.step,
                last_time=_time_or_none(last_point.time),
                over=over,
            )

        for number in sorted({*missed_at, *([0] if last.is_missed else [])}):
            last_point = last if number == 0 else _point_at(chunk, logged[number - 1])
            if number or not last.is_missed:
                yield absence(missed_at[number], last_point, over=False)
            if number < len(logged):
                yield absence(int(logged[number]), last_point, over=True)
        newest = _point_at(chunk, logged[-1]) if len(logged) else last
        is_missed = len(logged) in missed_at or (last.is_missed and not len(logged))
        last_by_tag[tag] = _LastPoint(newest.step, newest.time, float(since[-1]), is_missed=is_missed)


_NO_POINTS = np.empty(0, np.intp)


def _point_at(chunk: Chunk, index: int) -> _LastPoint:
    return _LastPoint(int(chunk.step[index]), float(chunk.time[index]), math.nan, is_missed=False)


def _time_or_none(time: float) -> float | None:
    return None if math.isnan(time) else float(time)
