"""From series' windows to the one frame that a detector judges all of them in."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from detectors.api import Detector
from detectors.schema import COARSE, INDEX, NEW, SERIES, SIGNAL, STEP, VALUE, WINDOW
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
    lengths = [len(step) for _, step, _ in parts]
    number = np.repeat(np.arange(len(series), dtype=np.uint32), lengths)
    index = np.concatenate([i for i, _, _ in parts])
    columns = np.concatenate([c for _, _, c in parts])
    first = np.array([window.first for _, window in series])
    judged = pl.Series([view.judged.value for view, _ in series], dtype=pl.String)
    context = {s.value: columns[:, 1 + i] for i, s in enumerate((*detector.needs, *detector.uses))}
    found = pl.DataFrame(
        {
            SERIES: number,
            SIGNAL: judged.gather(number),
            INDEX: index,
            STEP: np.concatenate([s for _, s, _ in parts]),
            NEW: index >= first[number],
            VALUE: columns[:, 0],
            **context,
        },
        schema={**WINDOW, **dict.fromkeys(context, pl.Float64())},
        nan_to_null=True,
    )
    if detector.history.coarse:
        lists = [pl.Series(n, [w.coarse[n].tolist() for _, w in series], dtype=t) for n, t in COARSE.items()]
        found = found.with_columns(s.gather(number) for s in lists)
    return found


def _rows(detector: Detector, view: View, window: Window) -> tuple[Steps, Steps, Floats]:
    """Index, step and columns of head, recent and new rows, each row once."""
    recent = _last(window.recent, window.first, detector.history.recent)
    ahead = min(detector.history.head, recent.start)  # head rows that are not among the recent ones
    head = Kept(0, window.head.step[:ahead], window.head.columns[:ahead])
    wanted = [0, *(1 + view.columns.index(s) for s in (*detector.needs, *detector.uses))]
    kept = (head, recent, Kept(window.first, window.rows.step, window.rows.columns))
    index = [np.arange(k.start, k.start + len(k.step)) for k in kept]
    return (
        np.concatenate(index),
        np.concatenate([k.step for k in kept]),
        np.concatenate([k.columns for k in kept])[:, wanted],
    )


def _last(kept: Kept, end: int, count: int) -> Kept:
    """The last ``count`` of the kept rows, which end before row ``end``."""
    drop = max(0, len(kept.step) - count)
    return Kept(end - len(kept.step) + drop, kept.step[drop:], kept.columns[drop:])
