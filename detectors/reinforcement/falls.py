"""How far a series has fallen below its best level, in blocks of the whole run."""

from collections.abc import Mapping

import numpy as np

from sentinel.detectors.blocks import rolling
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.stats import Floats, Ints, row_quantile, row_quantiles

OUTLIERS = 0.05
"""Share of the points before the last tenth that may be as low. Among 40 points, chance does so in 1 of 6,000
logs."""

FALLS = {
    "best": Measure("best level", Unit.SAME),
    "now": Measure("now", Unit.SAME),
    "start": Measure("at the start", Unit.SAME),
    "scatter": Measure("scatter of the points", Unit.SAME),
    "error": Measure("standard error of a level", Unit.SAME),
    "held": Measure("share of the run that it has been low", Unit.SHARE),
    "last": Measure("over the last tenth", Unit.SAME),
    "below": Measure("of the range, how far below all before", Unit.SHARE),
    "apart": Measure("from the best of the last tenth to the worst before but for outliers", Unit.SAME),
}
"""What `levels` measures."""

MEASURES = tuple(FALLS)


def levels(means: Floats) -> Mapping[str, Floats]:
    """Return the columns of ``MEASURES`` for `blocks.with_blocks`: levels are means of eighths of the run."""
    eighth = max(5, means.shape[1] // 8)
    tenth = max(1, means.shape[1] // 10)
    tenths = rolling(means, tenth)
    span = tenths.max(axis=1) - tenths.min(axis=1)
    last = tenths[:, -1]
    before = tenths[:, :-tenth]
    return {
        **_fall(means, eighth),
        "last": last,
        "below": _of_span(before.min(axis=1) - last, span),
        "apart": row_quantile(means[:, :-tenth], OUTLIERS) - means[:, -tenth:].max(axis=1),
    }


def _of_span(difference: Floats, span: Floats) -> Floats:
    """Return a difference as a share of the range of a run, 0 where it has none."""
    share: Floats = np.where(span > 0, difference / span, 0.0)
    return share


def _fall(means: Floats, width: int) -> dict[str, Floats]:
    """Return the level now and the best before. A fall counts once the last eighth is nearer its end."""
    count = means.shape[1]
    eighths = rolling(means, width)
    now = eighths[:, -1]
    start = np.median(means[:, :width], axis=1)
    # The mean of a window that fills begins with few episodes, so one lucky row at the start is no level.
    best = np.maximum(start, eighths[:, 1:-width].max(axis=1, initial=-np.inf))
    low = means < ((best + now) / 2)[:, None]
    low_rows = np.cumprod(low[:, ::-1], axis=1).sum(axis=1)
    scatter = _scatter(means, eighths, count - low_rows)
    return {
        "best": best,
        "now": np.where(low_rows >= width, now, best),
        "start": start,
        "scatter": scatter,
        "error": scatter * np.sqrt(2 / width),
        "held": low_rows / count,
    }


def _scatter(means: Floats, levels: Floats, fell_at: Ints) -> Floats:
    """Return the standard deviation of the blocks about their level, and of changes without the fall."""
    width = means.shape[1] - levels.shape[1] + 1
    about = means[:, width // 2 :][:, : levels.shape[1]] - levels
    begin = np.arange(levels.shape[1])
    astride = (begin < fell_at[:, None]) & (fell_at[:, None] < begin + width)
    changes = np.diff(means, axis=1)
    near = np.abs(np.arange(changes.shape[1]) + 1 - fell_at[:, None]) <= width // 2
    scatter: Floats = np.maximum(
        _spread(np.where(astride, np.nan, about)) / np.sqrt(1 - 1 / width),
        _spread(np.where(near, np.nan, changes)) / np.sqrt(2),
    )
    return scatter


def _spread(values: Floats) -> Floats:
    """Return the standard deviation of each row without NaN, from its 5 % and 95 % quantiles."""
    low, high = row_quantiles(values, 0.05, 0.95)
    return (high - low) / (2 * 1.645)
