"""From series' windows to the one frame that a detector judges all of them in."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from detectors.api import Detector
from detectors.context import lists, numbers
from detectors.schema import COARSE, ENDED, INDEX, NEW, RAW, SERIES, SIGNAL, STEP, TIME, VALUE
from detectors.settings import CHOICES
from sentinel.frames.coarse import Floats, Steps
from sentinel.frames.history import Rows, Window
from sentinel.frames.views import View

Judged = tuple[View, Window]


def is_due(detector: Detector, window: Window) -> bool:
    """Whether the detector judges any of the window's new rows."""
    if window.ended:
        return detector.at_end
    first, last = window.first, window.first + len(window.rows)
    return last // detector.every > first // detector.every


def frame(detector: Detector, series: Sequence[Judged]) -> pl.DataFrame:
    """The WINDOW frame of some series for one detector, with no more history than it declares.

    A series' number in the frame is its place in ``series``.
    """
    shown = [_shown(detector, view, window) for view, window in series]
    rows, index = Rows.joined([part for part, _ in shown]), np.concatenate([number for _, number in shown])
    number = np.repeat(np.arange(len(series), dtype=np.uint32), [len(part) for part, _ in shown])
    first = np.array([window.first for _, window in series])
    judged = pl.Series([view.judged.value for view, _ in series], dtype=pl.String)
    value, *beside = rows.columns.T
    names = [*detector.needs, *(use.column for use in numbers(detector.uses)), *detector.settings]
    found = pl.DataFrame(
        {
            SERIES: number,
            SIGNAL: judged.gather(number),
            INDEX: index,
            STEP: rows.step,
            TIME: rows.time,
            NEW: index >= first[number],
            VALUE: np.where(np.isfinite(value), value, np.nan),
            **{str(name): column for name, column in zip(names, beside, strict=True)},
        },
        nan_to_null=True,
    )
    more = [_text(found[s], CHOICES[s]) for s in detector.settings if s in CHOICES]
    more += [_list(use.column, part) for use, part in zip(lists(detector.uses), rows.lists, strict=True)]
    if detector.non_finite:
        more.append(pl.Series(RAW, value))
    if detector.at_end:
        ended = pl.Series(ENDED, [window.ended for _, window in series])
        more.append(ended.gather(number) & found[NEW])
    found = found.with_columns(more)
    if detector.history.coarse:
        coarse = (_coarse(name, [window.coarse[name] for _, window in series]) for name in COARSE)
        due = found.select(pl.when(detector.due).then(SERIES)).to_series()
        found = found.with_columns(column.gather(due) for column in coarse)
    return found


def _shown(detector: Detector, view: View, window: Window) -> tuple[Rows, Steps]:
    """All that the detector may see, each row once, with what it asks to stand beside them; their index."""
    recent, earlier = (
        window.recent.last(detector.history.recent),
        window.earlier.last(detector.history.earlier),
    )
    start = window.first - len(recent)
    head = window.head[: min(detector.history.head, start)]  # those that are not among the recent ones
    rows = Rows.joined([earlier, head, recent, window.rows])
    index = np.arange(-len(earlier), len(head)), np.arange(start, window.first + len(window.rows))
    used = [view.columns.index(n) for n in (*detector.needs, *(use.column for use in numbers(detector.uses)))]
    settings = len(view.columns) - len(view.settings)  # a signal and a setting may share a name
    stated = [settings + view.settings.index(setting) for setting in detector.settings]
    columns = rows.columns[:, [0, *(1 + place for place in (*used, *stated))]]
    wanted = tuple(rows.lists[view.lists.index(use)] for use in lists(detector.uses))
    return replace(rows, columns=columns, lists=wanted), np.concatenate(index)


def _list(name: str, values: Floats) -> pl.Series:
    """A list for each row of the values, up to the last one that is known."""
    places = np.arange(1, values.shape[1] + 1)
    lengths = pl.Series((places * ~np.isnan(values)).max(axis=1, initial=0))
    rows = pl.Series(name, values, pl.Array(pl.Float64(), values.shape[1]), nan_to_null=True)
    return pl.select(pl.lit(rows.arr.to_list()).list.head(pl.lit(lengths))).to_series()


def _coarse(name: str, values: Sequence[Floats]) -> pl.Series:
    """What is known of each of some arrays, as lists."""
    return pl.Series(name, [one[np.isfinite(one)].tolist() for one in values], dtype=COARSE[name])


def _text(codes: pl.Series, texts: Sequence[str]) -> pl.Series:
    """The texts of a setting, of which the rows hold the places."""
    return pl.Series(texts).gather(codes.cast(pl.UInt32)).alias(codes.name)
