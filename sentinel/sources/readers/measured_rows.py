"""Rows of numbers that were read line by line, their steps, and the chunks of points that they become."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from sentinel.sources.base import Chunk
from sentinel.sources.readers import records
from sentinel.sources.readers.axis import Axis
from sentinel.sources.readers.plain import plain_text

MAX_STREAMS = 256
"""Streams of a file; the rows of further ones belong to the last."""


class Row(NamedTuple):
    """The values of one line. ``unit`` is what the step counts: ``epoch``, ``step``, ``row`` ...

    ``names`` and ``values`` belong together. ``record`` is the number of what counts the steps, ``writer``
    the process that printed it, ``stamp`` the time as printed, and ``line`` the number of the line. ``label``
    says which of several trainings of the file it is of.
    """

    record: int
    writer: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    step: int
    unit: str
    stamp: str
    line: int
    label: str = ""


class Laps(msgspec.Struct, array_like=True):
    """Counts on over the epochs where a line tells only its place within the epoch."""

    before: int = 0  # steps of the epochs before
    last: int = -1
    stride: int = 1
    epoch: int = -1
    axis: Axis = msgspec.field(default_factory=Axis)  # of lines that tell the size of an epoch

    def step(self, value: int, total: int | None, epoch: int | None, is_final: bool = False) -> int:
        """Return the step of a line that tells its place, and perhaps its epoch and the size of an epoch."""
        if epoch is not None and total is not None:
            return self.axis.iteration(value, epoch, total)
        if epoch is not None and epoch < self.epoch:
            self.before = 0  # another training
        elif value > self.last:
            self.stride = value - self.last if self.last >= 0 else self.stride
        elif value < self.last or (value == total and is_final) or self._is_next_alike(value, epoch):
            is_next = total is None or self.last + self.stride > total
            if is_next if epoch is None else epoch > self.epoch:
                self.before += max(total or 0, self.last + (0 if value or total else self.stride))
        self.last = value
        self.epoch = self.epoch if epoch is None else epoch
        return self.before + value

    def _is_next_alike(self, value: int, epoch: int | None) -> bool:
        """Return whether the line is that of the next epoch at the same place, such as its size."""
        return value == self.last and epoch is not None and epoch > self.epoch >= 0


class Streams:
    """The streams of one file, given the memory of those before (``{}`` for none).

    Each writer has a stream for each of its counters. The first one has the name of the file. ``restarted``
    says that the file began anew.
    """

    def __init__(self, name: str, memory: Mapping[str, Any], restarted: bool) -> None:
        self._name = name
        self._numbers: dict[str, int] = {} if restarted else dict(memory.get("numbers", {}))
        before = [*memory.get("restarts", [])]
        self._restarts: set[int] = {*before, *memory.get("numbers", {}).values()} if restarted else {*before}

    def memory(self) -> dict[str, Any]:
        """Return what the next rows need to know of these; JSON-able."""
        return {"numbers": self._numbers, "restarts": sorted(self._restarts)}

    def chunks(self, rows: Iterable[Row]) -> list[Chunk]:
        """Return the points of the rows, a chunk for each stream."""
        by_stream: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            by_stream[self._number(f"{row.record} {row.writer}")].append(row)
        return [self._chunk(number, of_stream) for number, of_stream in by_stream.items()]

    def _number(self, key: str) -> int:
        if key not in self._numbers and len(self._numbers) >= MAX_STREAMS:
            return MAX_STREAMS - 1
        return self._numbers.setdefault(key, len(self._numbers))

    def _chunk(self, number: int, rows: list[Row]) -> Chunk:
        ids: dict[str, int] = {}
        tags = [ids.setdefault(plain_text(name), len(ids)) for row in rows for name in row.names]
        counts = [len(row.names) for row in rows]
        restarted = number in self._restarts
        self._restarts.discard(number)
        return Chunk(
            stream=f"{self._name}:{number}" if number else self._name,
            tags=list(ids),
            tag=np.array(tags, dtype=np.uint32),
            step=np.repeat(np.array([row.step for row in rows], dtype=np.int64), counts),
            time=np.repeat(np.array([seconds(row.stamp) for row in rows], dtype=np.float64), counts),
            value=np.array([value for row in rows for value in row.values], dtype=np.float64),
            restarted=restarted,
            label=rows[0].label,
        )


def seconds(stamp: str) -> float:
    """Return the time that was printed, in seconds since the epoch; NaN if it tells no day."""
    text = stamp.strip().replace("/", "-").replace(", ", " ")
    when = records.seconds(text) if text else None
    return math.nan if when is None else when
