"""How far an evaluation loss stands above its best level so far."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import ENDED, INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    Floats,
    Ints,
    last_values,
    of_buckets,
    recent_max,
    recent_noise,
    start_value,
    with_arrays,
)

REACH = 240
"""Evaluations in which the best one is looked for; older ones are in the coarse view."""

SHORT = 3
"""Evaluations whose level is compared with the best while there are few of them."""

LONG = 10
"""Evaluations whose level is compared with the best once there are many."""

LONG_FROM = 40
"""Evaluations from which on there are many."""

LOOKS = 10, 100
"""Where there are many, the levels over a tenth of them must all stand above the noise, over 100 at most.

Noise with a memory lifts a median of ten for some dozen evaluations, and a fault lifts it for good.
"""

THIRDS = {3: 0, 4: 11, 5: 14, 7: 19, 9: 25, 12: 33}
"""Where there are few, medians of about a third of them are compared as well: its size, and from when on.

A dip in noise with a memory makes a low best and a rise after it, but it does not lower a third of the run.
"""

TWICE = 2
"""Few evaluations have risen no further than twice the way from the best third to the last one."""

NOISE = 64
"""Evaluations whose differences tell the noise, and levels that must."""

OF_BLOCKS = 0.45
"""Standard deviations of independent points that one of the noise between levels of ten counts as."""

FEW = 3
"""Second differences at which the noise that they tell counts twice: their median may be far too small."""

BROAD = pl.element().rolling_mean(3)
"""Buckets of the coarse view have four rows at least, and a level is one of ten. The last one is not full."""

MAX_MEMORY = 0.4
"""By how much more evaluations that are two apart scatter than neighbours, at most. They scatter alike
where the noise has no memory."""

OF_MEMORY = 3
"""By so many times that share, a trend in noise with a memory looks clearer than it is."""

MIN_NOISE = 0.002
"""Share of its level that an evaluation loss is taken to scatter by, if it scatters by less."""

ENDS = {"rise": 0.08, "trend": 1.5, "noises": 1.2}
"""What the columns of a run that is over exceed if its few evaluations ended above the best."""

FELL = 0.9
"""Fraction of its training loss at the best that such a run has left at most."""

OFF_BEST = 0.02
"""Fall of the accuracy of such a run, at least."""

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
    "gained": Measure("fall from the first evaluation to the best", Unit.SHARE),
    "at_first": Measure("first evaluation, of the training loss until then", Unit.SHARE),
}
"""The columns of `with_gap` that a reader may see."""

_THEN_AND_NOW = "metric", "metric_then", "train", "train_then"


def with_gap(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return the evaluations, from the fourth on with the columns of ``GAP``, ``short`` and ``steady``, the
    trend less what a memory of the noise makes of it, and ``kept``, what is left of the training loss at the
    best, as a share.

    The present level is the lowest of three, or the median of ten where there are many evaluations; `short`
    says which. The best level is a median of as many. The noise comes from second differences: of single
    evaluations, and of levels where there are many. What stands above it is the lowest of several levels
    where there are many evaluations, and no more than the last third allows where there are few.
    """
    log = pl.when(pl.col(VALUE) > 0).then(pl.col(VALUE).log())
    accuracy = pl.col(Signal.EVAL_ACCURACY)
    buckets = pl.col("coarse_mean").list
    context = points.with_columns(
        short=pl.col(INDEX) < LONG_FROM,
        first=start_value(VALUE),
        metric_off=accuracy.cum_max().over(SERIES) - recent_max(accuracy, SHORT, at_least=1),
        train_first=start_value("loss_mean"),
        log=log,
        older=of_buckets(buckets.head(buckets.len().clip(1) - 1).list.eval(BROAD).list.min()).log(),
        low=log.rolling_min(SHORT).over(SERIES),
        mid=log.rolling_median(LONG).over(SERIES),
        **{
            f"third_{n}": log.rolling_median(n, min_samples=1 if n == SHORT else n).over(SERIES)
            for n in THIRDS
        },
    ).with_columns(
        noise=pl.max_horizontal(recent_noise("log", NOISE), pl.lit(MIN_NOISE)),
        noise_apart=recent_noise("log", NOISE, apart=2),
        noise_of_levels=recent_noise("mid", REACH, apart=LONG, at_least=NOISE),
    )
    # The share by which evaluations that are two apart scatter more than neighbours.
    memory = (pl.col("noise_apart") / pl.col("noise") - 1).clip(0, MAX_MEMORY).fill_null(0)
    names = "best", "level", "stays", "since", "trend", *_THEN_AND_NOW
    return with_arrays(context, names, _compare, every=1, at_least=SHORT + 1).with_columns(
        rise=pl.col("level") / pl.col("best") - 1,
        noises=_noises(),
        steady=pl.col("trend") / (1 + OF_MEMORY * memory),
        gained=1 - pl.col("best") / pl.col("first"),
        at_first=pl.col("first") / pl.col("train_first"),
        kept=pl.when(pl.col("train_then") > 0).then(pl.col("train") / pl.col("train_then")),
    )


def _noises() -> pl.Expr:
    """Return how many standard deviations of the noise a level stands above the best one."""
    gap = pl.col("stays").log1p()
    rise = (pl.col("level") / pl.col("best")).log()
    noise = pl.col("noise") * (1 + FEW / (pl.col(INDEX) - 1))
    of_levels = pl.max_horizontal(noise * (2 / LONG) ** 0.5, OF_BLOCKS * pl.col("noise_of_levels"))
    return pl.when("short").then(pl.min_horizontal(rise, TWICE * gap) / noise).otherwise(gap / of_levels)


def ends_above() -> pl.Expr:
    """Return whether a run with few evaluations is over and ended above its best, by `with_gap`.

    The accuracy, if there is one, is off its best.
    """
    off_best = (pl.col("metric_off") > OFF_BEST).fill_null(True)
    above = [pl.col(name) > least for name, least in ENDS.items()]
    return pl.all_horizontal(pl.col(ENDED), "short", *above, pl.col("kept") < FELL, off_best).fill_null(False)


def _compare(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Return the best level so far and the present one, and what else was logged at both."""
    row = due["row"].to_numpy()
    count = due[INDEX].to_numpy()
    short = count < LONG_FROM
    mid, low, trio = (frame[n].fill_null(np.nan).to_numpy() for n in ("mid", "low", f"third_{SHORT}"))
    size = np.where(short, SHORT, LONG)
    levels = np.where(short[:, None], _past(trio, row, count, size), _past(mid, row, count, size))
    since = levels.argmin(axis=1)
    older = np.where(short, np.inf, due["older"].fill_null(np.inf).to_numpy())
    best = np.minimum(levels.min(axis=1), older)
    above = _lowest_lately(mid, row, count) - best
    return {
        "best": np.exp(best),
        "level": np.exp(np.where(short, low[row], mid[row])),
        "stays": np.expm1(np.where(short, _rise_of_thirds(frame, row, count), above)),
        "since": since.astype(float),
        "trend": _trend(frame, row, np.minimum(since + 2, count + 1)),
        **_beside(frame, due, since, short),
    }


def _lowest_lately(levels: Floats, row: Ints, count: Ints) -> Floats:
    """Return the lowest level over the last tenth of the evaluations."""
    recent = np.arange(REACH) <= (count // LOOKS[0]).clip(0, LOOKS[1])[:, None]
    lowest: Floats = np.where(recent, last_values(levels, row, REACH), np.inf).min(axis=1)
    return lowest


def _beside(
    frame: pl.DataFrame, due: pl.DataFrame, since: Ints, short: NDArray[np.bool_]
) -> dict[str, Floats]:
    """Medians of what else was logged beside the evaluations of the present level and of the best one."""
    row = due["row"].to_numpy()
    begin = due["begin"].to_numpy()
    near = np.maximum(row[:, None] - np.arange(LONG), begin[:, None])
    then = np.clip(near - since[:, None] + 1, begin[:, None], near)
    medians = {}
    for name, signal in (("metric", Signal.EVAL_ACCURACY), ("train", "loss_mean")):
        column = frame[signal].fill_null(np.nan).to_numpy()
        for when, at in (("", near), ("_then", then)):
            few, many = (np.median(column[at[:, :n]], axis=1) for n in (SHORT, LONG))
            medians[name + when] = np.where(short, few, many)
    return medians


def _past(levels: Floats, row: Ints, count: Ints, size: Ints) -> Floats:
    """Return the levels before those of the last ``size`` evaluations, newest first: rows x REACH."""
    age = np.arange(REACH)
    earlier = last_values(levels, row, REACH)
    past = (age >= size[:, None]) & (age < np.minimum(count + 1, REACH)[:, None])
    return np.where(past & np.isfinite(earlier), earlier, np.inf)


def _rise_of_thirds(frame: pl.DataFrame, row: Ints, count: Ints) -> Floats:
    """Logarithm of how far the median of the last third stands above the lowest of the thirds before it."""
    rise = np.empty(len(row))
    for size, begin in THIRDS.items():
        at = count >= begin
        levels = frame[f"third_{size}"].fill_null(np.nan).to_numpy()
        past = _past(levels, row[at], count[at], np.full(at.sum(), size))
        rise[at] = levels[row[at]] - past.min(axis=1)
    return rise


def _trend(frame: pl.DataFrame, row: Ints, many: Ints) -> Floats:
    """Return the Mann-Kendall statistic of the last ``many`` evaluations at each row; of 40 at most."""
    values = last_values(frame[VALUE].to_numpy(), row, LONG_FROM)[:, ::-1]
    many = np.minimum(many, LONG_FROM)
    counts = np.arange(LONG_FROM)[::-1] < many[:, None]
    rises = np.sign(values[:, None, :] - values[:, :, None]) * (counts[:, None, :] & counts[:, :, None])
    score = np.triu(rises, 1).sum(axis=(1, 2))
    z: Floats = (score - np.sign(score)) / np.sqrt(many * (many - 1) * (2 * many + 5) / 18)
    return z
