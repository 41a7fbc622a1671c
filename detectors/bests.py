"""How far an evaluation loss stands above its best level so far."""

import numpy as np
import polars as pl

from detectors.evidence import Measure, Unit
from detectors.schema import INDEX, SERIES, STEP, VALUE
from detectors.signals import Signal
from detectors.stats import Floats, Ints, last_values, recent_noise, with_arrays

REACH = 240
"""Evaluations in which the best one is looked for; older ones are in the coarse view."""

SHORT, LONG = 3, 10
"""Evaluations whose level is compared with the best, while there are few of them and later."""

LONG_FROM = 40
"""Evaluations from which on there are many."""

LOOKS = 10, 30
"""Where there are many, the levels over a tenth of them must all stand above the noise, over 30 at most.

Noise with a memory lifts a median of ten for some dozen evaluations, and a fault lifts it for good.
"""

FEW = 3
"""Second differences at which the noise that they tell counts twice: their median may be far too small."""

BROAD = pl.element().rolling_mean(3)
"""Buckets of the coarse view have four rows at least, and a level is one of ten. The last one is not full."""

LEAST_NOISE = 0.002
"""Share of its level that an evaluation loss is taken to scatter by, if it scatters by less."""

GAP = {
    "best": Measure("best so far", Unit.SAME),
    "level": Measure("now", Unit.SAME),
    "rise": Measure("rise above the best", Unit.SHARE),
    "noises": Measure("rise in standard deviations of the noise", Unit.NONE),
    "trend": Measure("trend since the best in standard deviations", Unit.NONE),
    "since": Measure("evaluations since the best", Unit.COUNT),
    "metric": Measure("accuracy now", Unit.SHARE),
    "metric_then": Measure("accuracy at the best", Unit.SHARE),
    "train": Measure("training loss now", Unit.NONE),
    "train_then": Measure("training loss at the best", Unit.NONE),
}
"""The columns of `with_gap` that a reader may see."""

_THEN_AND_NOW = "metric", "metric_then", "train", "train_then"


def with_gap(points: pl.LazyFrame) -> pl.LazyFrame:
    """The evaluations, from the fourth on with the columns of ``GAP``, ``best_step`` and ``short``.

    The present level is the lowest of three, or the median of ten where there are many evaluations; `short`
    says which. The best level is a median of as many. The noise comes from second differences. What stands
    above it is the lowest of several levels where there are many evaluations.
    """
    log = pl.when(pl.col(VALUE) > 0).then(pl.col(VALUE).log())
    buckets = pl.col("coarse_mean").list
    context = points.with_columns(
        short=pl.col(INDEX) < LONG_FROM,
        log=log,
        older=buckets.head(buckets.len().clip(1) - 1).list.eval(BROAD).list.min().log(),
        low=log.rolling_min(SHORT).over(SERIES),
        mid=log.rolling_median(LONG).over(SERIES),
        trio=log.rolling_median(SHORT, min_samples=1).over(SERIES),
    )
    names = "best", "level", "held", "since", "best_step", "trend", *_THEN_AND_NOW
    gap = pl.col("held") - pl.col("best").log()
    noise = pl.max_horizontal("noise", pl.lit(LEAST_NOISE)) * (1 + FEW / (pl.col(INDEX) - 1))
    return with_arrays(
        context.with_columns(noise=recent_noise("log", 64)), names, _compare, every=1, at_least=SHORT + 1
    ).with_columns(
        rise=pl.col("level") / pl.col("best") - 1,
        noises=gap / noise * pl.when("short").then(1.0).otherwise((LONG / 2) ** 0.5),
    )


def _compare(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """The best level so far and the present one, and what else was logged at both."""
    row, count, begin = (due[n].to_numpy() for n in ("row", INDEX, "begin"))
    short = count < LONG_FROM
    age = np.arange(REACH)
    past = (age >= np.where(short, SHORT, LONG)[:, None]) & (age < np.minimum(count + 1, REACH)[:, None])
    trio, mid, low = (frame[n].fill_null(np.nan).to_numpy() for n in ("trio", "mid", "low"))
    levels = np.where(short[:, None], last_values(trio, row, REACH), last_values(mid, row, REACH))
    levels = np.where(past & np.isfinite(levels), levels, np.inf)
    since = levels.argmin(axis=1)
    older = due["older"].fill_null(np.inf).to_numpy()
    recent = age <= (count // LOOKS[0]).clip(0, LOOKS[1])[:, None]
    held = np.where(recent, last_values(mid, row, REACH), np.inf).min(axis=1)
    near = np.maximum(row[:, None] - np.arange(SHORT), begin[:, None])
    then = np.minimum(near - since[:, None] + 1, near)
    found = {
        "best": np.exp(np.minimum(levels.min(axis=1), np.where(short, np.inf, older))),
        "level": np.exp(np.where(short, low[row], mid[row])),
        "held": np.where(short, low[row], held),
        "since": since.astype(float),
        "trend": _trend(frame, row, np.minimum(since + 2, count + 1)),
        "best_step": frame[STEP].to_numpy()[row - since].astype(float),
    }
    for name, signal in (("metric", Signal.EVAL_ACCURACY), ("train", "loss_mean")):
        column = frame[signal].fill_null(np.nan).to_numpy()
        found |= {name: np.median(column[near], axis=1), f"{name}_then": np.median(column[then], axis=1)}
    return found


def _trend(frame: pl.DataFrame, row: Ints, many: Ints) -> Floats:
    """The Mann-Kendall statistic of the last ``many`` evaluations at each row; of 40 at most."""
    values = last_values(frame[VALUE].to_numpy(), row, LONG_FROM)[:, ::-1]
    many = np.minimum(many, LONG_FROM)
    counts = np.arange(LONG_FROM)[::-1] < many[:, None]
    rises = np.sign(values[:, None, :] - values[:, :, None]) * (counts[:, None, :] & counts[:, :, None])
    score = np.triu(rises, 1).sum(axis=(1, 2))
    found: Floats = (score - np.sign(score)) / np.sqrt(many * (many - 1) * (2 * many + 5) / 18)
    return found
