"""Counts the steps of metric lines that do not tell them."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from sentinel.sources.console.pairs import is_of_training
from sentinel.sources.console.printed import Record, kept, restored
from sentinel.sources.readers.records import TIME_KEYS, Records

_MIN_ALIKE = 5  # lines with the same names that prove a log of metrics
_MAX_WAITING_LINES = 64  # lines


class Laps:
    """Counts the batches over all epochs where each line tells only the batch within its epoch.

    ``memory`` is that of the lines before (``{}`` for none).
    """

    def __init__(self, memory: Mapping[str, int]) -> None:
        self._before: int = memory.get("before", 0)  # batches of the epochs before
        self._last: int = memory.get("last", -1)
        self._stride: int = memory.get("stride", 1)  # between the last two lines

    def memory(self) -> dict[str, int]:
        """Return what the next lines need to know of these; JSON-able."""
        return {"before": self._before, "last": self._last, "stride": self._stride}

    @property
    def begun(self) -> bool:
        """Whether a batch was counted."""
        return self._last >= 0

    def step(self, batch: int, batches: int | None) -> int:
        """Return the step of a line that tells its batch and perhaps the number of batches in an epoch.

        A batch that falls belongs to the next epoch, unless the epoch was not over. Then the training was
        resumed, and the step falls as well.
        """
        if batch > self._last:
            self._stride = batch - self._last
        elif batch < self._last and (batches is None or self._last + self._stride > batches):
            self._before += self._last if batches is None else batches
        self._last = batch
        return self._before + batch


class CountedRows:
    """The metric lines of one process that tell no step at all. Their rows are counted.

    A row ends where a name comes again, so losses of the training and the validation that stand on lines of
    their own have one step. The lines wait until enough of them have the same names, because a single one may
    be a result or a setting. ``memory`` is that of the lines before (``{}`` for none).
    """

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self.records = Records(memory.get("records", {}))
        self.restarted: bool = memory.get("restarted", False)  # no point was read since then
        self.count: int = memory.get("count", 0)
        self._names: set[str] = set(memory.get("names", []))  # of the last row
        waiting = map(restored, memory.get("waiting", []))
        self._waiting: deque[Record] = deque(waiting, _MAX_WAITING_LINES)

    def memory(self) -> dict[str, Any]:
        """Return what the next lines need to know of these; JSON-able."""
        return {
            "records": self.records.memory(),
            "restarted": self.restarted and not self.records,
            "count": self.count,
            "names": sorted(self._names),
            "waiting": [kept(record) for record in self._waiting],
        }

    @property
    def waits(self) -> bool:
        """Whether some lines wait."""
        return bool(self._waiting)

    def add(self, record: Record) -> bool:
        """Add the metrics of a line. True if it counts, and false if it waits."""
        self._waiting.append(record)
        if not self.count and not self._are_proof(record):
            return False
        for row in self._waiting:
            names = row.keys() - TIME_KEYS
            if not self.count or not names.isdisjoint(self._names):
                self.count += 1
                self._names.clear()
            self._names |= names
            self.records.add(row, self.count)
        self._waiting.clear()
        return True

    def _are_proof(self, record: Record) -> bool:
        """Return whether enough lines have this record's names, and these are surely of a training."""
        if not any(map(is_of_training, record)):
            return False
        return sum(row.keys() == record.keys() for row in self._waiting) >= _MIN_ALIKE
