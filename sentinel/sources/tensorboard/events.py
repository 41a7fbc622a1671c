"""What the records of a TensorBoard event file mean: scalars, and the numbers that stand for histograms.

Protobuf can read any event, but only one at a time. For many records of one length there is a faster way. The
bytes outside their holes (see `sentinel.sources.tensorboard.layouts`) tell exactly which records are alike,
and numpy then reads the holes of all alike records at once.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentinel.sources.readers.plain import plain_times
from sentinel.sources.readers.problems import Problem, summed
from sentinel.sources.tensorboard.layouts import WORTH_A_PROOF, Layout, find_layout, recognise
from sentinel.sources.tensorboard.settings import settings_in
from sentinel.sources.tensorboard.tfrecord import MAX_ROW, Frames
from sentinel.sources.tensorboard.values import values

_SAMPLES = (0.5, 0.1, 0.9, 0.3, 0.7, 0.0)  # where among the unknown records of a length to look for a layout
_KINDS = (np.int64, np.uint32, np.int64, np.float64, np.float64)  # of number, tag, step, time and value
_MIX = np.full(MAX_ROW // 8, 0x9E3779B97F4A7C15, np.uint64).cumprod(dtype=np.uint64)  # a polynomial hash


@dataclass(frozen=True)
class ScalarPoints:
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


def decode(frames: Frames, most: int) -> ScalarPoints:
    """Decode the records that hold the first ``most`` points, but at least one record.

    A record that is no event becomes a problem and is skipped.
    """
    tags: dict[str, int] = {}
    parts = []
    single = list(frames.single)
    for group in frames.alike:
        number = group.number
        rows = group.rows
        for place in _SAMPLES:
            if len(rows) < WORTH_A_PROOF:
                break
            layout = find_layout(bytes(rows[int(place * len(rows))]))
            if layout is None:
                continue
            names, which = _recognise(rows, group.varying, layout)
            known = which >= 0
            if not known.any():
                continue
            ids = np.array([[tags.setdefault(tag, len(tags)) for tag in event] for event in names], np.uint32)
            step, time, value = layout.read(rows if known.all() else rows[known])
            of_events = number[known], ids[which[known]], step, time, value
            spread = (np.broadcast_to(c.reshape(len(value), -1), value.shape).ravel() for c in of_events)
            parts.append(tuple(spread))
            number = number[~known]
            rows = rows[~known]
        single += zip(number.tolist(), map(bytes, rows), strict=True)
    single.sort()
    part, told, broken = _read_singly(single, tags, sys.maxsize if parts else most)
    columns = part
    if parts:
        joined = [np.concatenate(column) for column in zip(part, *parts, strict=True)]
        order = np.argsort(joined[0], kind="stable")
        columns = tuple(column[order] for column in joined)
    number, tag, step, time, value = columns
    records = len(frames.starts)
    if len(number) > most:
        records = max(int(number[most]), 1)
        end = int(np.searchsorted(number, records))
        tag = tag[:end]
        step = step[:end]
        time = time[:end]
        value = value[:end]
    settings = [(int(np.searchsorted(number, at)), told[at]) for at in sorted(told) if at < records]
    time = plain_times(np.where(time == 0, np.nan, time))  # 0 is protobuf's word for "not given"
    lost = [at for at in sorted(broken) if at < records]
    problems = summed(frames.starts[lost], "record is not a TensorBoard event and was skipped")
    return ScalarPoints(list(tags), tag, step, time, value.astype(np.float64), settings, problems, records)


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
    places = np.full(len(first), -1)
    for i in sorted(np.flatnonzero(count >= WORTH_A_PROOF), key=first.__getitem__):  # as in the log
        tags = layout.tags(bytes(rows[first[i]]))
        if tags is not None:
            places[i] = len(names)
            names.append(tags)
    equal = (words == words[first][which]).all(axis=1)
    return names, np.where(equal, places[which], -1)


def _read_singly(
    records: Sequence[tuple[int, bytes]], tags: dict[str, int], most: int
) -> tuple[tuple[NDArray[Any], ...], dict[int, Mapping[str, Any]], list[int]]:
    """Read records with protobuf, one by one, until there are more than ``most`` scalars.

    Gives the record number, tag, step, time and value of each scalar, the settings by record number, and the
    numbers of records that are no events.
    """
    broken: list[int] = []
    told: dict[int, Mapping[str, Any]] = {}
    numbers: list[int] = []
    ids: list[int] = []
    steps: list[int] = []
    times: list[float] = []
    scalars: list[float] = []
    for number, record in records:
        if (known := recognise(record)) is not None:
            layout, names = known
            step, time, read = layout.read_one(record)
        elif (event := values(record)) is not None:
            names, step, time, read = event
        else:
            broken.append(number)
            continue
        if names:
            each = len(names)
            numbers += [number] * each
            ids += [tags.setdefault(tag, len(tags)) for tag in names]
            steps += [step] * each
            times += [time] * each
            scalars += read
            if len(scalars) > most:
                break
        elif config := settings_in(record):
            told[number] = config
    columns = zip((numbers, ids, steps, times, scalars), _KINDS, strict=True)
    return tuple(np.array(column, kind) for column, kind in columns), told, broken
