"""Rows of numbers that were read line by line, their steps, and the chunks of points that they become."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from sentinel.common.conversion import converter
from sentinel.sources.base import Chunk
from sentinel.sources.readers import records
from sentinel.sources.readers.axis import Axis
from sentinel.sources.readers.plain import plain_text

MAX_STREAMS = 256
"""Streams of a file; the rows of further ones belong to the last."""


EPOCH = "epoch"
"""How the unit of rows that tell of a whole epoch begins."""

ABOVE = " above"
"""How the unit of rows ends that stand below a counter of their own, such as that of a round."""

ROW = "row"
"""The unit of rows that only count themselves."""

HALF = 0.5
"""The part of an epoch that is over on average."""

MAX_PACE = 2.0
"""Times the steps of an epoch, up to which two counters have the same."""

HELD = 3
"""Rows of such a counter that wait for the lines below them: a template tells its first lines late."""

MAX_HELD = 512
"""Rows that wait at most."""


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
    above: tuple[int, int] = (-1, -1)  # the first epoch that a line above told, and the last one

    def stand_below(self, epoch: int) -> None:
        """Begin anew where the lines above tell the first epoch again: of another training."""
        first, last = self.above if self.above[0] >= 0 else (epoch, epoch)
        if epoch == first < last:
            self.before = 0
            self.last = -1
        self.above = (first, epoch)

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


class _Place(msgspec.Struct, array_like=True):
    """Where the last row of a counter that shares streams stands, or of such a stream; and what it counts."""

    step: int
    writer: str
    label: str
    counts: str = EPOCH
    epoch: float = -1.0  # less than any, where the row tells none


_to_rows = converter(list[Row])
_to_places = converter(dict[str, _Place])
_to_owners = converter(dict[str, dict[str, str]])


class Streams:
    """The streams of one file, given the memory of those before (``{}`` for none).

    Each writer has a stream for each of its counters. Lines that tell the same epoch, one of the training and
    one of an evaluation, share one, so that either is known beside the other. So do lines below the same
    counter, such as that of a round, and lines without one that take turns from the beginning, as where each
    metric has a line of its own. What stands below lines that count batches, such as an evaluation, is of
    their stream. The first one has the name of the file. ``restarted`` says that the file began anew.
    """

    def __init__(self, name: str, memory: Mapping[str, Any], restarted: bool) -> None:
        self._name = name
        self._numbers: dict[str, int] = {} if restarted else dict(memory.get("numbers", {}))
        before = [*memory.get("restarts", [])]
        self._restarts: set[int] = {*before, *memory.get("numbers", {}).values()} if restarted else {*before}
        kept: Mapping[str, Any] = {} if restarted else memory
        self._of_counters = _to_places(kept.get("counters", {}))
        self._of_streams = _to_places(kept.get("streams", {}))
        self._leading = _to_places(kept.get("leading", {}))  # streams whose counters others stand below
        self._owners = _to_owners(kept.get("owners", {}))  # of the names of each stream
        self._held = _to_rows(kept.get("held", []))
        self._turns: set[str] = {*kept.get("turns", [])}  # counters of rows that take turns
        self._sums: set[str] = {*kept.get("sums", [])}  # counters of rows that sum up batches

    def memory(self) -> dict[str, Any]:
        """Return what the next rows need to know of these; JSON-able."""
        return {
            "numbers": self._numbers,
            "restarts": sorted(self._restarts),
            "counters": msgspec.to_builtins(self._of_counters),
            "streams": msgspec.to_builtins(self._of_streams),
            "leading": msgspec.to_builtins(self._leading),
            "owners": self._owners,
            "held": [*self._held],
            "turns": sorted(self._turns),
            "sums": sorted(self._sums),
        }

    def chunks(self, rows: Iterable[Row], *, is_end: bool = False) -> list[Chunk]:
        """Return the points of the rows, a chunk for each stream; with ``is_end`` also of those that wait."""
        by_stream: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            for due in self._due(row):
                self._add(due, by_stream)
        for due in self._released() if is_end else ():
            self._add(due, by_stream)
        return [self._chunk(number, of_stream) for number, of_stream in by_stream.items()]

    def _add(self, row: Row, by_stream: dict[int, list[Row]]) -> None:
        """Add a row to those of its stream. The epoch of a row that sums up batches is known from these."""
        number = self._number(row)
        by_stream[number].append(_without_epoch(row) if _key(row) in self._sums else row)

    def _due(self, row: Row) -> list[Row]:
        """Return the rows that need wait no longer.

        The first rows of counters that share streams wait until one of them has more, so that they come in
        the order of their lines. Nobody waits for a value that is no number.
        """
        key = _key(row)
        if key in self._numbers or not (_shared(row.unit) or row.unit == ROW):
            return [row]
        beside = sum(_key(other) == key for other in self._held)
        if beside < HELD and len(self._held) < MAX_HELD and all(map(math.isfinite, row.values)):
            self._held.append(row)
            return []
        return [*self._released(), row]

    def _released(self) -> list[Row]:
        rows = sorted(self._held, key=lambda row: row.line)
        self._held = []
        counts = Counter(_key(row) for row in rows if row.unit == ROW)
        self._turns |= {key for key, count in counts.items() if count >= HELD - 1}
        return rows

    def _number(self, row: Row) -> int:
        """Return the number of the stream of a row."""
        key = _key(row)
        counts = ROW if key in self._turns else _shared(row.unit)
        place = _Place(row.step, row.writer, row.label, counts or row.unit, _epoch(row))
        if not counts:
            return self._of_own_counter(key, row, place)
        number = self._numbers.get(key)
        if number is None:
            number = self._beside(key, row, place)
        if number is None:
            number = self._leader(key, row)
        if number is None or not self._fits(number, key, row):
            number = self._new(key)
        self._numbers[key] = number
        if number < MAX_STREAMS - 1:
            self._own(number, key, row)
            self._of_counters[key] = place
            if str(number) not in self._leading:
                self._of_streams[str(number)] = place
        return number

    def _of_own_counter(self, key: str, row: Row, place: _Place) -> int:
        """Return the number of the stream of a row that shares none by what it counts."""
        number = self._numbers.get(key)
        if number is None and (number := self._summed_up(key, row)) is not None:
            self._numbers[key] = number
            self._sums.add(key)
        number = self._new(key) if number is None else number
        if row.unit != ROW and number < MAX_STREAMS - 1:
            self._leading[str(number)] = place
            self._own(number, key, row)
        return number

    def _summed_up(self, key: str, row: Row) -> int | None:
        """Return the stream of the batches that a row with a count of its own sums up: both tell an epoch,
        and have as many steps in each. The batches have come as far: a template tells its first lines late.
        """
        summed = (
            int(number)
            for number, place in self._leading.items()
            if (place.writer, place.label) == (row.writer, row.label) and _has_pace(place, row)
        )
        return next((number for number in summed if self._has_room(number, key, row)), None)

    def _own(self, number: int, key: str, row: Row) -> None:
        """Remember of which counter the names of a row are in a stream."""
        owners = self._owners.setdefault(str(number), {})
        if not owners.keys() >= {*row.names}:
            owners.update(dict.fromkeys(row.names, key) | {EPOCH: EPOCH})  # which each row may have

    def _new(self, key: str) -> int:
        number = min(1 + max(self._numbers.values(), default=-1), MAX_STREAMS - 1)
        self._numbers[key] = number
        return number

    def _beside(self, key: str, row: Row, place: _Place) -> int | None:
        """Return the stream whose last row tells the same count of the same training, if there is one."""
        beside = (int(number) for number, other in self._of_streams.items() if other == place)
        return next((number for number in beside if self._fits(number, key, row)), None)

    def _leader(self, key: str, row: Row) -> int | None:
        """Return the stream of the training below whose counter a row stands, if its names are new there.

        That has come as far: a template tells its first lines late.
        """
        leading = (
            int(number)
            for number, place in self._leading.items()
            if (place.writer, place.label) == (row.writer, row.label) and place.step >= row.step
        )
        is_below = row.unit.endswith(ABOVE) and not row.unit.startswith(EPOCH)
        return next((n for n in leading if is_below and self._has_room(n, key, row)), None)

    def _fits(self, number: int, key: str, row: Row) -> bool:
        """Return whether a row goes on with a stream: its names are of no other counter there, and it does
        not go on from its own last row to a count that the others have passed, nor goes back below a counter
        that goes on.
        """
        own = self._of_counters.get(key)
        if own is None:
            return self._has_room(number, key, row)
        leading = self._leading.get(str(number))
        last = self._of_streams.get(str(number))
        strays = leading is not None and row.step < own.step <= leading.step
        lags = leading is None and last is not None and own.step < row.step < last.step
        return not (strays or lags) and self._has_room(number, key, row)

    def _has_room(self, number: int, key: str, row: Row) -> bool:
        """Return whether the names of a row are of no other counter in a stream."""
        owners = self._owners.get(str(number), {})
        return all(owners.get(name, key) in (key, EPOCH) for name in row.names)

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
            unit=rows[0].unit,
        )


def _epoch(row: Row) -> float:
    """Return the epoch that a row tells; -1 if it tells none."""
    return row.values[row.names.index(EPOCH)] if EPOCH in row.names else -1.0


def _without_epoch(row: Row) -> Row:
    pairs = [pair for pair in zip(row.names, row.values, strict=True) if pair[0] != EPOCH]
    return row._replace(names=tuple(name for name, _ in pairs), values=tuple(value for _, value in pairs))


def _has_pace(place: _Place, row: Row) -> bool:
    """Return whether a row stands at the end of an epoch, by the steps of other rows in theirs."""
    epoch = _epoch(row)
    if not 0 <= epoch <= place.epoch < place.step - 1 or row.step <= 0:  # others count no batches
        return False
    ratios = (
        row.step / (epoch + 1 - base) / (place.step / (place.epoch + HALF - base))
        for base in (0, 1)
        if epoch >= base
    )
    return any(1 / MAX_PACE <= ratio <= MAX_PACE for ratio in ratios)


def _key(row: Row) -> str:
    """Return what tells the counter of a row from others."""
    return f"{row.record} {row.writer}"


def _shared(unit: str) -> str:
    """Return by which count rows of a unit share a stream with others; "" if by none."""
    return EPOCH if unit.startswith(EPOCH) else unit if unit.endswith(ABOVE) else ""


def seconds(stamp: str) -> float:
    """Return the time that was printed, in seconds since the epoch; NaN if it tells no day."""
    text = stamp.strip().replace("/", "-").replace(", ", " ")
    when = records.seconds(text) if text else None
    return math.nan if when is None else when
