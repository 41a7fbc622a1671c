"""What the records of a TensorBoard event file mean: scalars, and the numbers that stand for histograms.

Protobuf can read any event, but only one at a time. For many records of one length there is a faster way. The
bytes outside their holes (see `sentinel.sources.tensorboard.layouts`) tell exactly which records are alike,
and numpy then reads the holes of all alike records at once.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.sources.readers.plain import plain_times
from sentinel.sources.readers.problems import Problem, summed
from sentinel.sources.tensorboard.layouts import WORTH_A_PROOF, Layout, find_layout, recognise
from sentinel.sources.tensorboard.settings import settings_in
from sentinel.sources.tensorboard.tfrecord import MAX_ROW, Frames, RecordGroup
from sentinel.sources.tensorboard.values import values

_SAMPLES = (0.5, 0.1, 0.9, 0.3, 0.7, 0.0)  # where among the unknown records of a length to look for a layout
_COLUMN_TYPES = (
    np.int64,
    np.uint32,
    np.int64,
    np.float64,
    np.float64,
)  # of number, tag, step, time and value
_MIX = np.full(MAX_ROW // 8, 0x9E3779B97F4A7C15, np.uint64).cumprod(dtype=np.uint64)  # a polynomial hash


_Columns = tuple[NDArray[Any], ...]
"""The number of the record, the tag, the step, the time and the value of each scalar."""


class _SingleRecords(msgspec.Struct, frozen=True):
    """What records that were read one by one hold."""

    columns: _Columns
    settings: Mapping[int, Mapping[str, Any]]  # of the run, by the number of the record
    broken: Sequence[int]  # numbers of records that are no events


class ScalarPoints(msgspec.Struct, frozen=True):
    """The scalars of some records, in order, with arrays as in `sentinel.sources.base.Chunk`.

    ``settings`` holds settings of the run, each with the number of points that precede it. Points and
    problems come from the first ``records`` records.
    """

    tags: Sequence[str]
    tag: NDArray[np.uint32]
    step: NDArray[np.int64]
    time: NDArray[np.float64]
    value: NDArray[np.float64]
    settings: Sequence[tuple[int, Mapping[str, Any]]]
    problems: Sequence[Problem]
    records: int


def decode(frames: Frames, max_points: int) -> ScalarPoints:
    """Decode the records that hold the first ``max_points`` points, but at least one record.

    A record that is no event becomes a problem and is skipped.
    """
    tags: dict[str, int] = {}
    columns_of_groups: list[_Columns] = []
    other_records = list(frames.single)
    for group in frames.groups:
        columns, unread_records = _read_group(group, tags)
        columns_of_groups += columns
        other_records += unread_records
    other_records.sort()
    singly = _read_singly(other_records, tags, sys.maxsize if columns_of_groups else max_points)
    number, tag, step, time, value = _scalars_in_order(singly.columns, columns_of_groups)
    records = max(int(number[max_points]), 1) if len(number) > max_points else len(frames.starts)
    end = int(np.searchsorted(number, records))
    settings = [at for at in sorted(singly.settings) if at < records]
    broken = [at for at in sorted(singly.broken) if at < records]
    return ScalarPoints(
        list(tags),
        tag[:end],
        step[:end],
        plain_times(np.where(time == 0, np.nan, time)[:end]),  # 0 is protobuf's word for "not given"
        value[:end].astype(np.float64),
        [(int(np.searchsorted(number, at)), singly.settings[at]) for at in settings],
        summed(frames.starts[broken], "record is not a TensorBoard event and was skipped"),
        records,
    )


def _scalars_in_order(columns: _Columns, columns_of_groups: Sequence[_Columns]) -> _Columns:
    """Return the scalars of all columns in the order of their records."""
    if not columns_of_groups:
        return columns
    joined = [np.concatenate(parts) for parts in zip(columns, *columns_of_groups, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return tuple(column[order] for column in joined)


def _read_group(group: RecordGroup, tags: dict[str, int]) -> tuple[list[_Columns], list[tuple[int, bytes]]]:
    """Read the records of a group whose layouts can be proved, and return them and the other records."""
    columns: list[_Columns] = []
    number = group.number
    rows = group.rows
    for fraction in _SAMPLES:
        if len(rows) < WORTH_A_PROOF:
            break
        layout = find_layout(bytes(rows[int(fraction * len(rows))]))
        if layout is None:
            continue
        lists_of_tags, which = _recognise(rows, group.varying, layout)
        has_layout = which >= 0
        if not has_layout.any():
            continue
        ids = np.array(
            [[tags.setdefault(tag, len(tags)) for tag in event] for event in lists_of_tags], np.uint32
        )
        step, time, value = layout.read(rows if has_layout.all() else rows[has_layout])
        of_events = number[has_layout], ids[which[has_layout]], step, time, value
        # A time and a step for each event become one for each of its scalars.
        columns.append(
            tuple(np.broadcast_to(c.reshape(len(value), -1), value.shape).ravel() for c in of_events)
        )
        number = number[~has_layout]
        rows = rows[~has_layout]
    return columns, [*zip(number.tolist(), map(bytes, rows), strict=True)]


def _recognise(
    rows: NDArray[np.uint8], varying: NDArray[np.bool_], layout: Layout
) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
    """Find the tags of events whose holes lie as in ``layout``.

    Gives the known lists of tags, and for each row the index of its list, or -1 if the row is unknown.
    """
    columns = np.flatnonzero(varying & (layout.mask > 0))
    outside = np.zeros((len(rows), -(-len(columns) // 8) * 8), np.uint8)
    outside[:, : len(columns)] = rows[:, columns] & layout.mask[columns]
    words = outside.view(np.uint64)
    mixed = words @ _MIX[: words.shape[1]] >> 48  # 16 bits are sorted fast; equal hashes are compared below
    _, first, which, count = np.unique(
        mixed.astype(np.uint16), return_index=True, return_inverse=True, return_counts=True
    )
    names: list[tuple[str, ...]] = []
    tag_indices = np.full(len(first), -1)
    for i in sorted(np.flatnonzero(count >= WORTH_A_PROOF), key=first.__getitem__):  # as in the log
        tags = layout.tags(bytes(rows[first[i]]))
        if tags is not None:
            tag_indices[i] = len(names)
            names.append(tags)
    equal = (words == words[first][which]).all(axis=1)
    return names, np.where(equal, tag_indices[which], -1)


def _read_singly(records: Sequence[tuple[int, bytes]], tags: dict[str, int], most: int) -> _SingleRecords:
    """Read records with protobuf, one by one, until there are more than ``most`` scalars."""
    broken: list[int] = []
    settings: dict[int, Mapping[str, Any]] = {}
    numbers: list[int] = []
    ids: list[int] = []
    steps: list[int] = []
    times: list[float] = []
    scalars: list[float] = []
    for number, record in records:
        if (match := recognise(record)) is not None:
            layout, names = match
            step, time, numbers_of_event = layout.read_one(record)
        elif (event := values(record)) is not None:
            names, step, time, numbers_of_event = event
        else:
            broken.append(number)
            continue
        if names:
            count = len(names)
            numbers += [number] * count
            ids += [tags.setdefault(tag, len(tags)) for tag in names]
            steps += [step] * count
            times += [time] * count
            scalars += numbers_of_event
            if len(scalars) > most:
                break
        elif config := settings_in(record):
            settings[number] = config
    columns = zip((numbers, ids, steps, times, scalars), _COLUMN_TYPES, strict=True)
    return _SingleRecords(tuple(np.array(column, kind) for column, kind in columns), settings, broken)
