"""Puts the windows of many series into one frame for a detector."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.api import Detector
from sentinel.detectors.schema import (
    COARSE,
    ENDED,
    FEW,
    INDEX,
    NEW,
    RAW,
    SERIES,
    SIGNAL,
    STEP,
    TIME,
    VALUE,
    courses,
    lists,
    numbers,
)
from sentinel.detectors.settings import CHOICES
from sentinel.series.buckets import Floats
from sentinel.series.history import Window
from sentinel.series.rows import Rows, padded
from sentinel.series.specs import SeriesSpec

Judged = tuple[SeriesSpec, Window]

_NOTHING = np.empty(0)


def is_due(detector: Detector, window: Window) -> bool:
    """Return whether the detector judges any of the window's new rows."""
    if window.ended:
        return detector.at_end
    return window.first < FEW or window.end // detector.every > window.first // detector.every


def frame(detector: Detector, series: Sequence[Judged]) -> pl.DataFrame:
    """Return the WINDOW frame of some series for one detector, with exactly the history that it declares.

    The number of a series in the frame is its index in ``series``.
    """
    parts = [(n, at, rows) for n, (_, window) in enumerate(series) for at, rows in _shown(detector, window)]
    sizes = np.array([len(rows) for _, _, rows in parts])
    number = np.array([n for n, _, _ in parts], np.uint32).repeat(sizes)
    index = np.arange(sizes.sum()) + (np.array([at for _, at, _ in parts]) - sizes.cumsum() + sizes).repeat(
        sizes
    )
    rows = _joined(detector, [(series[n][0], rows) for n, _, rows in parts])
    first = np.array([window.first for _, window in series])
    judged = pl.Series([view.judged.value for view, _ in series], dtype=pl.String)
    value, *beside = rows.numbers.T[1:]
    names = [*detector.needs, *(use.column for use in numbers(detector.uses)), *detector.settings]
    of_series = pl.Series(number).set_sorted()  # polars then need not search for the rows of each series
    windows = pl.DataFrame(
        {
            SERIES: of_series,
            SIGNAL: judged.gather(of_series),
            INDEX: index,
            STEP: rows.step,
            TIME: _known(rows.time),
            NEW: index >= first[number],
            VALUE: _known(np.where(np.isfinite(value), value, np.nan)),
            **{str(name): _known(column) for name, column in zip(names, beside, strict=True)},
        }
    )
    more = [_text(windows[s], CHOICES[s]) for s in detector.settings if s in CHOICES]
    more += [_list(use.column, part) for use, part in zip(lists(detector.uses), rows.lists, strict=True)]
    if detector.non_finite:
        more.append(pl.Series(RAW, value))
    if detector.at_end:
        ended = pl.Series(ENDED, [window.ended for _, window in series])
        more.append(ended.gather(of_series) & windows[NEW])
    for use in courses(detector.uses):
        course = _coarse(use.column, [*(w.courses.get(use.column, _NOTHING) for _, w in series), _NOTHING])
        of_ended = pl.Series([n if w.ended else None for n, (_, w) in enumerate(series)], dtype=pl.UInt32)
        more.append(course.gather(of_ended.gather(of_series)))
    windows = windows.with_columns(more)
    if detector.history.coarse:
        # Of a column with a single list, polars copies that list into every row, also into those without one.
        coarse = (_coarse(name, [*(w.coarse[name] for _, w in series), _NOTHING]) for name in COARSE)
        is_first = detector.due & (detector.due.cum_sum() == 1).over(SERIES)
        of_first = windows.select(pl.when(is_first).then(SERIES)).to_series()
        windows = windows.with_columns(column.gather(of_first) for column in coarse)
    return windows


def _shown(detector: Detector, window: Window) -> Iterator[tuple[int, Rows]]:
    """Yield all rows of a series that the detector may see, each once, in parts with their first index."""
    history = detector.history
    begin = max(window.first - history.recent, window.begin)
    if history.earlier:
        earlier = window.earlier.last(history.earlier)
        yield -len(earlier), earlier
    if history.head and begin > 0:
        yield 0, window.head[: min(history.head, begin)]  # the rows that are not among the recent ones
    yield begin, window.seen[begin - window.begin :]


def _joined(detector: Detector, parts: Sequence[tuple[SeriesSpec, Rows]]) -> Rows:
    """Return the rows of all parts, with the context that the detector asks for."""
    joined = []
    for _, group in groupby(parts, lambda part: id(part[0])):
        them = [*group]
        columns, wanted = _columns(detector, them[0][0])
        rows = Rows.joined([rows for _, rows in them]).with_columns(columns)
        joined.append((rows.step, rows.numbers, [rows.lists[i] for i in wanted]))
    step, numbers, own = zip(*joined, strict=True)
    as_asked = tuple(range(len(columns)))
    found_lists = tuple(padded(them) for them in zip(*own, strict=True))
    return Rows(np.concatenate(step), np.concatenate(numbers), as_asked, found_lists)


def _columns(detector: Detector, view: SeriesSpec) -> tuple[tuple[int, ...], list[int]]:
    """Return the columns and the lists of the view that the detector asks for, by their places."""
    names = [
        view.columns.index(n) for n in (*detector.needs, *(use.column for use in numbers(detector.uses)))
    ]
    settings = len(view.columns) - len(view.settings)  # a signal and a setting may share a name
    stated = [settings + view.settings.index(setting) for setting in detector.settings]
    return (*names, *stated), [view.lists.index(use) for use in lists(detector.uses)]


def _known(values: Floats) -> pl.Series:
    """Return a column with null for NaN. Polars is slow at that, and few columns have any."""
    return pl.Series(values, nan_to_null=bool(np.isnan(values).any()))


def _list(name: str, values: Floats) -> pl.Series:
    """Return a list for each row of the values, up to the last known value."""
    places = np.arange(1, values.shape[1] + 1)
    lengths = (places * ~np.isnan(values)).max(axis=1, initial=0)
    return _lists(name, values, lengths)


def _coarse(name: str, values: Sequence[Floats]) -> pl.Series:
    """Return the known values of some arrays, as lists."""
    known = [row[np.isfinite(row)] for row in values]
    return _lists(name, padded([row[None, :] for row in known]), np.array([len(row) for row in known]))


def _lists(name: str, values: Floats, lengths: NDArray[np.int64]) -> pl.Series:
    """Return a list for each row, of its first values."""
    width = values.shape[1]
    rows = pl.Series(name, values, pl.Array(pl.Float64(), width), nan_to_null=True).cast(
        pl.List(pl.Float64())
    )
    if (lengths == width).all():
        return rows
    return pl.select(pl.lit(rows).list.head(pl.lit(pl.Series(lengths)))).to_series()


def _text(codes: pl.Series, texts: Sequence[str]) -> pl.Series:
    """Return the texts of a setting, whose indices are in the rows."""
    return pl.Series(texts).gather(codes.cast(pl.UInt32)).alias(codes.name)
