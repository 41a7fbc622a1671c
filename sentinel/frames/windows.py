"""From series' windows to the one frame that a detector judges all of them in."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from detectors.api import Detector
from detectors.schema import COARSE, INDEX, NEW, SERIES, SIGNAL, STEP, TIME, VALUE, WINDOW
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
    found = pl.DataFrame(
        {
            SERIES: number,
            SIGNAL: judged.gather(number),
            INDEX: index,
            STEP: step,
            TIME: time,
            NEW: index >= first[number],
            VALUE: columns[:, 0],
            **context,
        },
        schema={**WINDOW, **dict.fromkeys(context, pl.Float64())},
        nan_to_null=True,
    )
    found = found.with_columns(_text(found[s], CHOICES[s]) for s in detector.settings if s in CHOICES)
    if detector.history.coarse:
        lists = [pl.Series(n, [w.coarse[n].tolist() for _, w in series], dtype=t) for n, t in COARSE.items()]
        found = found.with_columns(s.gather(number) for s in lists)
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


def _text(codes: pl.Series, texts: Sequence[str]) -> pl.Series:
    """The texts of a setting, of which the rows hold the places."""
    return pl.Series(texts).gather(codes.cast(pl.UInt32)).alias(codes.name)
