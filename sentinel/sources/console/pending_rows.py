"""Finds the steps of rows that tell only their epoch, from the progress bars between them.

HF's Trainer prints a row and draws its bar again, and the bar shows the step of the row. Where the output is
buffered, many rows come at once, long after their bars. Then the bar shows the step of the last row, and the
others have the steps that their epochs tell. Where a line of another form stands among them, the bar is ahead
of the rows above it, which are as far apart as those before.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from sentinel.sources.console.printed import Record, kept, restored

_MAX_PENDING_ROWS = 128  # rows; a buffer of 8 KiB holds fewer
_SUMMARY = "train_runtime"
_NOT_A_STEP = ("eval_", _SUMMARY)  # beginnings of names in records that belong to no training step
_MAX_EPOCHS = 16  # of a plan; of more it is not certain how many there are
_CERTAIN = 0.02  # of the planned epochs, by which they may miss a whole number
_ROUNDED = 0.006  # of an epoch: epochs are printed with two decimals


class Waiting:
    """The rows that wait for a bar, given the memory of the lines before (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self._rows: list[Record] = list(map(restored, memory.get("rows", ())))
        self._shown: tuple[int, int] | None = memory.get("shown")  # count and total of the last bar
        self._total: int = memory.get("total", 0)  # of the longest bar, because evaluations have bars as well
        self._count: int = memory.get("count", 0)  # of that bar
        self._of_epoch: float = memory.get("of_epoch", 0.0)  # steps; 0 if that is not known
        self._last: int = memory.get("last", 0)  # step of a row of the training
        self._stride: int = memory.get("stride", 0)  # from the row before it; 0 if that is not known
        self._last_epoch: float | None = memory.get("last_epoch")  # which that row tells

    def memory(self) -> dict[str, Any]:
        """Return what the next lines need to know of these; JSON-able."""
        return {
            "rows": list(map(kept, self._rows)),
            "shown": self._shown,
            "total": self._total,
            "count": self._count,
            "of_epoch": self._of_epoch,
            "last": self._last,
            "stride": self._stride,
            "last_epoch": self._last_epoch,
        }

    @property
    def begun(self) -> bool:
        """Whether a bar was shown."""
        return self._shown is not None

    @property
    def holds(self) -> bool:
        """Whether a row waits."""
        return bool(self._rows)

    def add(self, row: Record) -> Iterator[Record]:
        """Let a row wait. Gives those that need to wait no longer, with their steps."""
        self._rows.append(row)
        if _SUMMARY in row and len(self._rows) > 1 and (epoch := _epoch(row)):
            self._of_epoch = self._total / epoch
        if _SUMMARY in row or len(self._rows) >= _MAX_PENDING_ROWS:
            yield from self._placed()

    def bar(self, count: int, total: int) -> list[Record]:
        """Return the rows that waited for this bar, with their steps."""
        if total >= self._total:
            self._total = total
            self._count = count
        rows: list[Record] = []
        if self._rows:
            # The bar of an evaluation begins at 0, and no row has that step.
            self._shown = (count, total) if count else (self._count, self._total)
            steps = self._as_far_apart()
            rows += self._placed(steps if steps and steps[-1] == self._count else ())
        self._shown = (count, total)
        return rows

    def due(self) -> Iterator[Record]:
        """Yield the rows with their steps, now that a line follows that is none, and no bar."""
        return self._placed(self._as_far_apart())

    def _as_far_apart(self) -> list[int]:
        """Return the steps that rows have which are as far apart as those before; none if the bar is not so
        far, or a row goes back.
        """
        training = [row for row in self._rows if not _evaluates(row)]
        steps = [self._last + n * self._stride for n in range(1, len(training) + 1)]
        goes_on = training and self._last_epoch is not None and _epoch(training[0]) >= self._last_epoch
        reached = self._shown is not None and self._shown[1] == self._total and self._stride > 0
        if not goes_on or not reached or steps[-1] > self._count:
            return []
        places = iter(steps)
        step = self._last
        return [step := step if _evaluates(row) else next(places) for row in self._rows]

    def _placed(self, steps: Sequence[int] = ()) -> Iterator[Record]:
        """Yield the rows with their steps; by the bar and their epochs, where none are told. A single row has
        that of the bar.

        An evaluation that is not among other rows keeps the step before it, and one that tells the epoch of
        the row before it has the step of that row.
        """
        rows = self._rows
        self._rows = []
        if self._shown is None or not rows:
            return
        total = self._shown[1]
        if len(rows) > 1:
            total = self._total
        steps = steps or (self._steps(rows) if len(rows) > 1 else [self._shown[0]])
        for row, step in zip(rows, steps, strict=True):
            if not _evaluates(row):
                self._stride = max(0, step - self._last) if self._last else 0
                self._last = step
                self._last_epoch = _epoch(row)
                row["step"] = f"{step}/{total}"
            elif len(rows) > 1:
                row["step"] = f"{self._last if _epoch(row) == self._last_epoch else step}/{total}"
            yield row

    def _steps(self, rows: Sequence[Record]) -> list[int]:
        """Return the steps of rows that came together, by their epochs and the distance between rows."""
        first = _epoch(rows[0])
        last = _epoch(rows[-1])
        passed = max(self._count, 1)
        # The next row may have been due as well.
        latest = last + (last - first) / max(1, len(rows) - 1)
        planned = math.ceil(self._total * last / passed * (1 - _CERTAIN))
        most = min(_MAX_EPOCHS, self._total * latest / passed * (1 + _CERTAIN))
        if _CERTAIN * last > _ROUNDED and 0 < planned <= most:
            self._of_epoch = self._of_epoch or self._total / planned
        of_epoch = self._of_epoch or self._count / max(_epoch(rows[-1]), 1e-9)
        steps = [round(min(_epoch(row) * of_epoch, self._total)) for row in rows]
        training = [at for at, row in enumerate(rows) if not _evaluates(row)]
        for stride in self._strides(steps, training):
            regular = {at: round(steps[at] / stride) * stride for at in training}
            if len(set(regular.values())) < len(regular):  # epochs that are rounded alike
                first = self._before // stride + 1
                regular = {at: (first + n) * stride for n, at in enumerate(training)}
            if all(abs(steps[at] - step) <= _ROUNDED * of_epoch + 1 for at, step in regular.items()):
                return [regular.get(at, step) for at, step in enumerate(steps)]
        return steps

    @property
    def _before(self) -> int:
        return self._last if self._last < self._count else 0

    def _strides(self, steps: Sequence[int], training: Sequence[int]) -> Iterator[int]:
        """Yield how many steps may lie between two rows: such that a next row would come after the bar."""
        rows = len(training)
        passed = self._count - self._before
        if rows:
            spread = steps[training[-1]] - steps[training[0]]
            strides = chain(
                range(passed // rows, passed // (rows + 1) - 1, -1), [round(spread / max(1, rows - 1))]
            )
            yield from (stride for stride in strides if stride > 0)


def _epoch(row: Record) -> float:
    epoch = row.get("epoch")
    return max(0.0, epoch) if isinstance(epoch, float) and epoch < 1e9 else 0.0


def _evaluates(row: Record) -> bool:
    return any(name.startswith(_NOT_A_STEP) for name in row)
