"""From series' windows to the one frame that a detector judges all of them in."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from detectors.api import Detector
from detectors.schema import COARSE, INDEX, NEW, RAW, SERIES, SIGNAL, STEP, TIME, VALUE, window_schema
from detectors.settings import CHOICES
from sentinel.frames.coarse import Floats, Steps
from sentinel.frames.history import Kept, Window
from sentinel.frames.views import View

Judged = tuple[View, Window]


def is_due(detector: Detector, window: Window) -> bool:
    """Whether the detector judges any of the window's new rows."""
    first, last = window.first, window.first + len(window.rows)
    return last // detector.every > first // detector.every


def frame(detector: Detector, series: Sequence[Judged]) -> pl.DataFrame:
    """The WINDOW frame of some series for one detector, with no more history than it declares.

    A series' number in the frame is its place in ``series``.
    """
    parts = [_rows(detector, view, window) for view, window in series]
    number = np.repeat(np.arange(len(series), dtype=np.uint32), [len(step) for _, step, _, _ in parts])
    index, step, time, columns = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    first = np.array([window.first for _, window in series])
    judged = pl.Series([view.judged.value for view, _ in series], dtype=pl.String)
    context = {
        s.value: columns[:, 1 + i]
        for i, s in enumerate((*detector.needs, *detector.uses, *detector.settings))
    }
    value, schema = columns[:, 0], window_schema(detector)
    found = pl.DataFrame(
        {
            SERIES: number,
            SIGNAL: judged.gather(number),
            INDEX: index,
            STEP: step,
            TIME: time,
            NEW: index >= first[number],
            VALUE: np.where(np.isfinite(value), value, np.nan),
            **context,
        },
        schema_overrides={SERIES: schema[SERIES]},
        nan_to_null=True,
    )
    if detector.non_finite:
        found = found.with_columns(pl.Series(RAW, value))
    found = found.with_columns(_text(found[s], CHOICES[s]) for s in detector.settings if s in CHOICES)
    if detector.history.coarse:
        lists = [_lists(name, [window.coarse[name] for _, window in series]) for name in COARSE]
        found = found.with_columns(one.gather(number) for one in lists)
    return found


def _rows(detector: Detector, view: View, window: Window) -> tuple[Steps, Steps, Floats, Floats]:
    """Index, step, time and columns of head, recent and new rows, each row once."""
    rows, recent = window.rows, window.recent.last(detector.history.recent)
    ahead = min(detector.history.head, recent.start)  # head rows that are not among the recent ones
    kept = (window.head.first(ahead), recent, Kept(window.first, rows.step, rows.time, rows.columns))
    settings = 1 + len(view.needs + view.uses)  # a signal and a setting may share a name
    wanted = [0, *(1 + view.columns.index(s) for s in (*detector.needs, *detector.uses))]
    wanted += [settings + view.settings.index(s) for s in detector.settings]
    return (
        np.concatenate([np.arange(k.start, k.start + len(k.step)) for k in kept]),
        np.concatenate([k.step for k in kept]),
        np.concatenate([k.time for k in kept]),
        np.concatenate([k.columns for k in kept])[:, wanted],
    )


def _lists(name: str, values: Sequence[Floats]) -> pl.Series:
    """What is known of each of some arrays, as lists."""
    return pl.Series(name, [one[np.isfinite(one)].tolist() for one in values], dtype=COARSE[name])


def _text(codes: pl.Series, texts: Sequence[str]) -> pl.Series:
    """The texts of a setting, of which the rows hold the places."""
    return pl.Series(texts).gather(codes.cast(pl.UInt32)).alias(codes.name)
