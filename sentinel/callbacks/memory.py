"""A source whose points a training adds, from any thread."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sentinel.sources.base import Chunk, Cursor, PollResult
from sentinel.sources.readers.plain import flat

_MAX_LOGGED_ROWS = 100_000  # that wait; a training that logs faster than it is judged loses the oldest


class LoggedRow(NamedTuple):
    """What a training logged at once. ``time`` is in seconds since the epoch."""

    step: int
    time: float
    metrics: Mapping[str, float]


class Memory:
    """Returns each row once, so there is no going back to an earlier cursor."""

    def __init__(self) -> None:
        self._settings: deque[Mapping[str, object]] = deque()
        self._rows: deque[LoggedRow] = deque(maxlen=_MAX_LOGGED_ROWS)

    def configure(self, settings: Mapping[str, object]) -> None:
        """Add settings of the run."""
        self._settings.append(settings)

    def add(self, row: LoggedRow) -> None:
        """Add a row. This takes well below a microsecond and never waits."""
        self._rows.append(row)

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the rows that were added since the last poll, about as many points as the limit."""
        rows = []
        points = 0
        while self._rows and points < limit:
            rows.append(self._rows.popleft())
            points += len(rows[-1].metrics)
        numbers: dict[str, int] = {}
        logged = [
            (numbers.setdefault(tag, len(numbers)), row.step, row.time, value)
            for row in rows
            for tag, value in row.metrics.items()
        ]
        kinds = np.uint32, np.int64, np.float64, np.float64
        columns = zip(*logged, strict=True) if logged else [()] * 4
        tag, step, time, value = (np.array(column, kind) for column, kind in zip(columns, kinds, strict=True))
        chunk = Chunk("", list(numbers), tag, step, time, value)
        config: dict[str, object] = {}
        while self._settings:
            config |= flat(self._settings.popleft())
        total = cursor.get("points", 0) + points
        return PollResult({"points": total}, [chunk], more=bool(self._rows), config=config)
