"""Makes points of the rows of a CSV file: which step and time they have, and whether they were read before.

``CsvAxis`` and ``RowFingerprints`` hold what must be known about earlier rows. They are JSON-able and
bounded, so that reading in many pieces gives the same points as reading in one.
"""

import hashlib
import math
from functools import lru_cache
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.sources.base import Chunk
from sentinel.sources.csv.header import INDEX_NAMES, CsvRows, Header
from sentinel.sources.readers.plain import MAX_STEP, plain_times, whole
from sentinel.sources.readers.records import BATCH_KEYS, MAY_BE_LENGTHS, seconds
from sentinel.sources.readers.splits import of_part
from sentinel.sources.readers.words import counter


class CsvAxis(msgspec.Struct):
    """The step of each row, from the column of steps, else from whole epochs, else from the index that pandas
    writes, else the number of the row.

    A row without a step belongs to the last step. If an epoch is a fraction, such as 0.5, the rows are
    numbered from there on, even if later epochs are whole. So they are from where an index does not rise.
    Steps that fall wherever an epoch or an episode ends count within it, and are counted over all of them.
    """

    rows: int = 0
    last: int = 0
    numbered: bool = False
    counts_rows: bool = False  # what looked like the step fell: it is the length of an episode
    round: float | None = None  # the last epoch or episode that steps may be counted within
    highest: int = 0  # step of this round, as written
    offset: int = 0  # steps of the rounds before

    def steps(self, header: Header, rows: CsvRows) -> NDArray[np.int64]:
        """Return the steps of the next rows."""
        count = len(rows.values)
        numbers = np.arange(self.rows + 1, self.rows + count + 1)
        self.rows += count
        column = header.epoch if header.step is None else header.step
        column = header.index if column is None else column
        if column is None or self.numbered:
            return numbers
        values = rows.values[:, column]
        can_count = whole(values)
        before = self.last
        has_begun = self.rows > count
        steps = self._carried(values, can_count)
        if column == header.index:
            return self._onwards(steps, before if has_begun else int(steps[0]) - 1 if count else 0, 1)
        if header.step is not None and header.names[column].lower() in MAY_BE_LENGTHS:
            return self._onwards(steps, before if has_begun else int(steps[0]) if count else 0)
        if header.round is not None:
            is_batch = header.names[column].lower() in BATCH_KEYS
            return self._over_rounds(steps, rows.values[:, header.round], [*rows.held_out], is_batch)
        if header.step is None:
            fraction = np.flatnonzero(rows.logged[:, column] & ~can_count)
            if len(fraction):
                self.numbered = True
                steps[fraction[0] :] = numbers[fraction[0] :]
        return steps

    def _onwards(self, steps: NDArray[np.int64], before: int, rise: int = 0) -> NDArray[np.int64]:
        """Return the steps as long as each rises by ``rise`` and counts. From then on, each row is one step
        further.
        """
        falls = np.flatnonzero((np.diff(steps, prepend=before) < rise) | (steps < 0))
        if self.counts_rows or len(falls):
            first = 0 if self.counts_rows else int(falls[0])
            last = steps[first - 1] if first else before
            steps[first:] = last + np.arange(1, len(steps) - first + 1)
            self.counts_rows = True
            self.last = int(steps[-1]) if len(steps) else before
        return steps

    def _over_rounds(
        self, steps: NDArray[np.int64], rounds: NDArray[np.float64], held_out: list[int], is_batch: bool
    ) -> NDArray[np.int64]:
        """Return the steps over all rounds, if they begin anew wherever a round follows another.

        A batch may be the same one of each round. Rows of held-out data, which count for themselves, stand
        where the training does.
        """
        if not len(steps):
            return steps
        rounds = rounds.copy()
        known = np.maximum.accumulate(np.where(np.isfinite(rounds), np.arange(len(rounds)), -1))
        rounds = np.where(known >= 0, rounds[known], math.nan if self.round is None else self.round)
        starts = np.flatnonzero(np.diff(rounds, prepend=math.nan) != 0)
        for rows in np.split(np.arange(len(steps)), starts[1:]) if held_out else ():
            before = self.highest if rounds[rows[0]] == self.round else 0
            steps[rows] = _beside_training(steps[rows], np.isin(rows, held_out), before)
        highest = np.maximum.reduceat(steps, starts).tolist()
        offsets = []
        for count, first, top in zip(rounds[starts].tolist(), steps[starts].tolist(), highest, strict=True):
            if self.round is not None and count < self.round:
                self.offset = 0
            elif self.round is not None and count > self.round and first < self.highest + is_batch:
                self.offset = min(self.offset + self.highest, MAX_STEP)
            self.highest = max(top, self.highest) if count == self.round else top
            self.round = count if math.isfinite(count) else self.round
            offsets.append(self.offset)
        lengths = np.diff(starts, append=len(steps))
        return np.minimum(steps + np.repeat(np.array(offsets, np.int64), lengths), MAX_STEP)

    def _carried(self, values: NDArray[np.float64], whole: NDArray[np.bool_]) -> NDArray[np.int64]:
        if not len(values):
            return np.empty(0, dtype=np.int64)
        if whole.all():
            self.last = int(values[-1])
            return values.astype(np.int64)
        latest = np.maximum.accumulate(np.where(whole, np.arange(len(values)), -1))
        steps = np.where(latest >= 0, values[latest], 0.0).astype(np.int64)
        steps[latest < 0] = self.last
        self.last = int(steps[-1])
        return steps


def _beside_training(
    steps: NDArray[np.int64], is_held_out: NDArray[np.bool_], before: int
) -> NDArray[np.int64]:
    """Return the steps of a round whose rows of held-out data stand where the training does."""
    reached = np.maximum(np.maximum.accumulate(steps), before)
    return np.where(is_held_out, reached, steps)


class RowFingerprints(msgspec.Struct):
    """Fingerprints of all rows up to the first, second, fourth, eighth row and so on, and up to the last.

    They stay the same if the file is rewritten with more columns or with its columns in another order.
    """

    count: int = 0  # rows
    total: int = 0
    after: dict[str, int] = msgspec.field(default_factory=dict)  # by the number of rows

    def add(self, header: Header, rows: CsvRows, steps: NDArray[np.int64]) -> None:
        """Add the next rows."""
        if not len(steps):
            return
        weights = np.array([_weight(name) for name in header.names], dtype=np.uint64)
        cells = np.where(rows.logged, rows.values, 0.0) if rows.gaps else rows.values
        numbers = np.arange(self.count, self.count + len(steps), dtype=np.uint64)
        sums = np.einsum("rc,c->r", cells.view(np.uint64), weights)  # faster than @ on integers
        sums = (sums + steps.view(np.uint64)) * (2 * numbers + 1)
        totals = np.cumsum(sums, dtype=np.uint64) + np.uint64(self.total)
        for doubled in (1 << i for i in range(60)):
            if self.count < doubled <= self.count + len(steps):
                self.after[str(doubled)] = int(totals[doubled - self.count - 1])
        self.count += len(steps)
        self.total = int(totals[-1])

    def agrees(self, other: "RowFingerprints") -> bool:
        """Return whether both began with the same rows, as far as their fingerprints tell."""
        both = self.after.keys() & other.after.keys()
        whole = self.count != other.count or self.total == other.total
        return whole and all(self.after[count] == other.after[count] for count in both)


def points(header: Header, rows: CsvRows, steps: NDArray[np.int64], stream: str, restarted: bool) -> Chunk:
    """Return the points of the rows, in order. Steps and times are no points."""
    unit = "" if header.step is None else counter(header.names[header.step]) or ""
    times = np.full(len(steps), np.nan)
    logged = rows.logged
    full = not rows.gaps
    if header.time is not None:
        times = _row_times(header, rows.values[:, header.time])
        times[list(rows.times)] = [_cell_seconds(text) for text in rows.times.values()]
        logged = logged.copy()
        full = False
        logged[:, header.time] &= np.isnan(times)
    used = np.ones(len(header.names), bool) if full else np.any(logged, axis=0, keepdims=True)[0]
    used[[i for i, name in enumerate(header.names) if i == header.step or name in INDEX_NAMES]] = False
    columns = np.flatnonzero(used)
    names = [header.names[i] for i in columns]
    by_part = {part: _in_part(header, columns, part) for part in {"", *rows.held_out.values()}}
    tags = {name: i for i, name in enumerate(dict.fromkeys(chain.from_iterable(by_part.values())))}
    if full and len(tags) == len(names):
        values = rows.values[:, _consecutive(columns)]
        return Chunk.of_rows(stream, names, steps, times, values, restarted, unit)
    values = rows.values[:, columns]
    logged = logged[:, columns]
    ids = {part: [tags[name] for name in in_part] for part, in_part in by_part.items()}
    tag = np.broadcast_to(np.array(ids[""], np.uint32), logged.shape)
    if rows.held_out:
        tag = tag.copy()
        for row, part in rows.held_out.items():
            tag[row] = ids[part]
    tag = tag[logged]
    per_row = np.count_nonzero(logged, axis=1)
    step = np.repeat(steps, per_row)
    time = np.repeat(times, per_row)
    return Chunk(stream, list(tags), tag, step, time, values[logged], restarted, unit=unit)


def _in_part(header: Header, columns: NDArray[np.int64], part: str) -> list[str]:
    """Return the names of the columns in rows of a part of the data; "" is the training."""
    axes = (header.step, header.epoch, header.time)
    return [header.names[i] if i in axes or not part else of_part(header.names[i], part) for i in columns]


def _consecutive(columns: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Return the columns as a slice, which needs no copy, if they are adjacent."""
    span = slice(columns[0], columns[-1] + 1) if len(columns) else slice(0, 0)
    return span if span.stop - span.start == len(columns) else columns


def _row_times(header: Header, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return seconds since the epoch; NaN for a duration."""
    start = header.settings.get("t_start")
    if isinstance(start, (int, float)):
        return plain_times(values + start)
    return np.array([_cell_seconds(value) for value in values.tolist()], dtype=np.float64)


def _cell_seconds(value: float | str) -> float:
    when = seconds(value)
    return np.nan if when is None else when


@lru_cache(maxsize=1 << 14)
def _weight(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(errors="replace"), digest_size=8).digest()) | 1
