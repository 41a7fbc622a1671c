"""Puts the windows of many series into one frame for a detector."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.api import Detector
from sentinel.detectors.schema import (
    COARSE,
    CONTINUES,
    EARLY_ROWS,
    ENDED,
    INDEX,
    NEW,
    OVER,
    RAW,
    SERIES,
    SIGNAL,
    STAGE,
    STEP,
    SUMS_UP,
    TIME,
    VALUE,
    courses,
    lists,
    numbers,
)
from sentinel.detectors.settings import CHOICES, Setting
from sentinel.series.buckets import Floats, Steps
from sentinel.series.history import Window
from sentinel.series.rows import Rows, padded
from sentinel.series.specs import SeriesSpec

Judged = tuple[SeriesSpec, Window]
"""A series to judge."""


def is_due(detector: Detector, window: Window) -> bool:
    """Return whether the detector judges any of the window's new rows."""
    if window.ended:
        return detector.at_end
    if window.interim and detector.judges_whole:
        return True
    return window.first < EARLY_ROWS or window.end // detector.every > window.first // detector.every


def frame(detector: Detector, series: Sequence[Judged]) -> pl.DataFrame:
    """Return the WINDOW frame of some series for one detector, with exactly the history that it declares.

    The number of a series in the frame is its index in ``series``.
    """
    parts = [
        (number, begin, rows)
        for number, (_, window) in enumerate(series)
        for begin, rows in _visible_rows(detector, window)
    ]
    sizes = np.array([len(rows) for _, _, rows in parts])
    number = np.array([number for number, _, _ in parts], np.uint32).repeat(sizes)
    begins = np.array([begin for _, begin, _ in parts])
    index = np.arange(sizes.sum()) + (begins - sizes.cumsum() + sizes).repeat(sizes)
    rows = _joined(detector, [(series[number][0], rows) for number, _, rows in parts])
    is_new = index >= np.array([window.first for _, window in series])[number]
    signals = pl.Series([spec.judged.value for spec, _ in series], dtype=pl.String)
    value, *parts_of_columns = rows.numbers.T[1:]
    names = [*detector.needs, *(use.column for use in numbers(detector.uses)), *detector.settings]
    row_series = pl.Series(number).set_sorted()  # polars then need not search for the rows of each series
    columns: dict[str, pl.Series | NDArray[Any]] = {
        SERIES: row_series,
        SIGNAL: signals[row_series],
        INDEX: index,
        STEP: rows.step,
        TIME: _with_nulls(rows.time),
        NEW: is_new,
        CONTINUES: np.array([window.continues for _, window in series])[number],
        VALUE: _with_nulls(np.where(np.isfinite(value), value, np.nan)),
    }
    for name, column in zip(names, parts_of_columns, strict=True):
        is_text = isinstance(name, Setting) and name in CHOICES
        columns[str(name)] = (
            _setting_texts(column, CHOICES[Setting(name)]) if is_text else _with_nulls(column)
        )
    for use, part in zip(lists(detector.uses), rows.lists, strict=True):
        columns[use.column] = _list(part)
    if detector.non_finite:
        columns[RAW] = value
    if detector.at_end:
        is_over = [window.ended or (window.stage > 0 and detector.at_stages) for _, window in series]
        last = np.array([window.end - 1 for _, window in series])[number]
        columns[ENDED] = np.array(is_over)[number] & (index == last)
    if detector.judges_whole:
        last = np.array([window.end - 1 for _, window in series])[number]
        is_whole = np.array([window.ended or window.interim for _, window in series])[number]
        columns[SUMS_UP] = is_whole & (index == last)
        columns[OVER] = np.array([window.ended for _, window in series])[number] & (index == last)
        stage = np.array([window.stage for _, window in series])[number]
        columns[STAGE] = _with_nulls(np.where((stage > 0) & (index == last), stage, np.nan))
    for course_use in courses(detector.uses):
        by_series = [window.courses.get(course_use.column, np.empty(0)) for _, window in series]
        course = _coarse([*by_series, np.empty(0)])
        ended_series = [number if window.courses else None for number, (_, window) in enumerate(series)]
        columns[course_use.column] = course[pl.Series(ended_series, dtype=pl.UInt32)[row_series]]
    windows = pl.DataFrame(columns)
    if detector.history.coarse:
        is_first = detector.due & (detector.due.cum_sum() == 1).over(SERIES)
        first_rows = windows.select(pl.when(is_first).then(SERIES)).to_series()
        # Of a column with a single list, polars copies that list into every row, also into those without one.
        coarse = {
            name: _coarse([*(window.coarse[name] for _, window in series), np.empty(0)]) for name in COARSE
        }
        windows = windows.with_columns(**{name: column[first_rows] for name, column in coarse.items()})
    return windows


def _visible_rows(detector: Detector, window: Window) -> Iterator[tuple[int, Rows]]:
    """Yield all rows of a series that the detector may see, each once, in parts with their first index."""
    history = detector.history
    begin = max(window.first - history.recent, window.begin)
    if history.earlier:
        earlier = window.earlier.last(history.earlier)
        yield -len(earlier), earlier
    if history.head and begin > 0:
        yield 0, window.head[: min(history.head, begin)]  # the rows that are not among the recent ones
    yield begin, window.recent[begin - window.begin :]


def _joined(detector: Detector, parts: Sequence[tuple[SeriesSpec, Rows]]) -> Rows:
    """Concatenate the rows of all parts, with the columns and lists that the detector declares."""
    steps: list[Steps] = []
    tables: list[Floats] = []
    lists_of_groups: list[list[Floats]] = []
    for _, group in groupby(parts, lambda part: id(part[0])):
        same_spec = [*group]
        columns, list_indices = _column_indices(detector, same_spec[0][0])
        rows = Rows.joined([rows for _, rows in same_spec]).with_columns(columns)
        steps.append(rows.step)
        tables.append(rows.numbers)
        lists_of_groups.append([rows.lists[list_index] for list_index in list_indices])
    return Rows(
        step=np.concatenate(steps),
        numbers=np.concatenate(tables),
        columns=tuple(range(len(columns))),
        lists=tuple(padded(same_list) for same_list in zip(*lists_of_groups, strict=True)),
    )


def _column_indices(detector: Detector, spec: SeriesSpec) -> tuple[tuple[int, ...], list[int]]:
    """Return the indices of the columns and of the lists of the spec that the detector declares."""
    names = (*detector.needs, *(use.column for use in numbers(detector.uses)))
    signals = [spec.columns.index(name) for name in names]
    first_setting = len(spec.columns) - len(spec.settings)  # a signal and a setting may share a name
    settings = [first_setting + spec.settings.index(setting) for setting in detector.settings]
    return (*signals, *settings), [spec.lists.index(use) for use in lists(detector.uses)]


def _with_nulls(values: Floats) -> pl.Series:
    """Return a column with null for NaN. Polars is slow at that, and few columns have any."""
    return pl.Series(values, nan_to_null=bool(np.isnan(values).any()))


def _list(values: Floats) -> pl.Series:
    """Return a list for each row of the values, up to the last value that is not NaN."""
    positions = np.arange(1, values.shape[1] + 1)
    lengths = (positions * ~np.isnan(values)).max(axis=1, initial=0)
    return _lists(values, lengths)


def _coarse(values: Sequence[Floats]) -> pl.Series:
    """Return the finite values of some arrays, as lists."""
    finite = [row[np.isfinite(row)] for row in values]
    return _lists(padded([row[None, :] for row in finite]), np.array([len(row) for row in finite]))


def _lists(values: Floats, lengths: NDArray[np.int64]) -> pl.Series:
    """Return a list for each row, of its first values."""
    width = values.shape[1]
    rows = pl.Series(values, dtype=pl.Array(pl.Float64(), width), nan_to_null=True).cast(
        pl.List(pl.Float64())
    )
    if (lengths == width).all():
        return rows
    return pl.select(pl.lit(rows).list.head(pl.lit(pl.Series(lengths)))).to_series()


def _setting_texts(codes: Floats, texts: Sequence[str]) -> pl.Series:
    """Return the texts of a setting, whose indices are in the rows."""
    return pl.Series(texts)[_with_nulls(codes).cast(pl.UInt32)]
