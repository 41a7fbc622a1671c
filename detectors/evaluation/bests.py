"""How far an evaluation loss stands above its best level so far."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
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
    "lost": Measure("rise above the best, of all that was gained until then", Unit.SHARE),
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

LOG = "log"
"""The scale of a loss that is above zero: its logarithm, since it is judged by ratios."""

LINEAR = "linear"
"""The scale of a loss that has been below zero, as that of a density: its zero means nothing."""

SCALES = LOG, LINEAR

TASK_METRIC = "task_metric"
"""The column of the accuracy, or of a score that is a share or a percentage where there is none."""

PERCENT = 100
"""Of a score that has been above 1."""

_THEN_AND_NOW = "metric", "metric_then", "train", "train_then"


def with_gap(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return the evaluations, from the fourth on with the columns of ``GAP``, ``short`` and ``steady``, the
    trend less what a memory of the noise makes of it, and ``kept``, what is left of the training loss at the
    best, as a share.

    The present level is the lowest of three, or the median of ten where there are many evaluations; `short`
    says which. The best level is a median of as many. The noise comes from second differences: of single
    evaluations, and of levels where there are many. What stands above it is the lowest of several levels
    where there are many evaluations, and no more than the last third allows where there are few.

    A loss that has been below zero is ``signed``. It has no ``rise`` and no ``gained``, but ``lost``.
    ``worse`` is whichever of ``rise`` and ``lost`` there is, and ``stays`` is in the same unit.
    """
    accuracy = pl.col(TASK_METRIC)
    buckets = pl.col("coarse_mean").list
    value = pl.col(VALUE)
    context = (
        points.with_columns(_task_metric().alias(TASK_METRIC))
        .with_columns(
            short=pl.col(INDEX) < LONG_FROM,
            first=start_value(VALUE),
            metric_best=accuracy.cum_max().over(SERIES),
            metric_off=accuracy.cum_max().over(SERIES) - recent_max(accuracy, SHORT, at_least=1),
            train_first=start_value("loss_mean"),
            older=of_buckets(buckets.head(buckets.len().clip(1) - 1).list.eval(BROAD).list.min()),
            log=pl.when(value > 0).then(value.log()),
            linear=value,
        )
        .with_columns(signed=(pl.min_horizontal(value.cum_min().over(SERIES), "older") < 0).fill_null(False))
    )
    for scale in SCALES:
        context = _with_levels(context, scale)
    names = "best", "level", "gap", "clear_gap", "since", "trend", *_THEN_AND_NOW
    gain = pl.when(pl.col("first") > pl.col("best")).then(pl.col("first") - pl.col("best"))
    ratio = pl.when(~pl.col("signed"))
    difference = pl.when("signed")
    return (
        with_arrays(context, names, _compare, every=1, at_least=SHORT + 1)
        .with_columns(
            rise=ratio.then(pl.col("gap").exp() - 1),
            lost=difference.then(pl.col("gap") / gain),
            stays=difference.then(pl.col("clear_gap") / gain).otherwise(pl.col("clear_gap").exp() - 1),
            noises=difference.then(_noises(LINEAR, MIN_NOISE * gain)).otherwise(_noises(LOG, MIN_NOISE)),
            steady=difference.then(_steady(LINEAR)).otherwise(_steady(LOG)),
            gained=ratio.then(1 - pl.col("best") / pl.col("first")),
            at_first=pl.when(pl.col("train_first") > 0).then(pl.col("first") / pl.col("train_first")),
            kept=pl.when(pl.col("train_then") > 0).then(pl.col("train") / pl.col("train_then")),
        )
        .with_columns(worse=pl.coalesce("rise", "lost"), lost=pl.min_horizontal("lost", 1.0))
    )


def _task_metric() -> pl.Expr:
    """Return the accuracy, or where none is logged a score as a share: an F1 of 0.9, or of 90."""
    score = pl.col(Signal.EVAL_SCORE)
    highest = score.cum_max().over(SERIES)
    share = (
        pl.when(score.cum_min().over(SERIES) < 0)
        .then(None)
        .when(highest <= 1)
        .then(score)
        .when(highest <= PERCENT)
        .then(score / PERCENT)
    )
    return pl.coalesce(Signal.EVAL_ACCURACY, share)


def _with_levels(points: pl.LazyFrame, scale: str) -> pl.LazyFrame:
    """Return the levels of the evaluations in a scale, and their noise."""
    value = pl.col(scale)
    return points.with_columns(
        value.rolling_min(SHORT).over(SERIES).alias(f"{scale}_low"),
        value.rolling_median(LONG).over(SERIES).alias(f"{scale}_mid"),
        *(
            value.rolling_median(rows, min_samples=1 if rows == SHORT else rows)
            .over(SERIES)
            .alias(f"{scale}_third_{rows}")
            for rows in THIRDS
        ),
    ).with_columns(
        recent_noise(scale, NOISE).alias(f"{scale}_noise"),
        recent_noise(scale, NOISE, apart=2).alias(f"{scale}_noise_apart"),
        recent_noise(f"{scale}_mid", REACH, apart=LONG, at_least=NOISE).alias(f"{scale}_noise_of_levels"),
    )


def _noises(scale: str, least: pl.Expr | float) -> pl.Expr:
    """Return how many standard deviations of the noise a level stands above the best one."""
    noise = _noise(scale, least) * (1 + FEW / (pl.col(INDEX) - 1))
    of_levels = pl.max_horizontal(noise * (2 / LONG) ** 0.5, OF_BLOCKS * pl.col(f"{scale}_noise_of_levels"))
    clear = pl.col("clear_gap")
    return pl.when("short").then(pl.min_horizontal("gap", TWICE * clear) / noise).otherwise(clear / of_levels)


def _noise(scale: str, least: pl.Expr | float) -> pl.Expr:
    return pl.max_horizontal(f"{scale}_noise", least)


def _steady(scale: str) -> pl.Expr:
    """Return the trend, less what a memory of the noise makes of it.

    The memory is the share by which evaluations that are two apart scatter more than neighbours.
    """
    noise = _noise(scale, MIN_NOISE if scale == LOG else 0.0)
    memory = (pl.col(f"{scale}_noise_apart") / noise - 1).clip(0, MAX_MEMORY)
    return pl.col("trend") / (1 + OF_MEMORY * memory.fill_nan(0).fill_null(0))


def ends_above() -> pl.Expr:
    """Return whether a run with few evaluations stands above its best, by `with_gap`, as it must not end.

    The accuracy, if there is one, is off its best.
    """
    off_best = (pl.col("metric_off") > OFF_BEST).fill_null(True)
    above = [pl.col(name) > least for name, least in ENDS.items()]
    return pl.all_horizontal("short", *above, pl.col("kept") < FELL, off_best).fill_null(False)


def _compare(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Return the best level so far and the present one, and what else was logged at both."""
    signed = due["signed"].to_numpy()
    compared = _compare_in(LOG, frame, due)
    if signed.any():
        differences = _compare_in(LINEAR, frame, due)
        compared = {name: np.where(signed, differences[name], compared[name]) for name in compared}
    return compared


def _compare_in(scale: str, frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Compare in one of the scales."""
    row = due["row"].to_numpy()
    count = due[INDEX].to_numpy()
    short = count < LONG_FROM
    mid, low, trio = (
        frame[f"{scale}_{measure}"].fill_null(np.nan).to_numpy()
        for measure in ("mid", "low", f"third_{SHORT}")
    )
    size = np.where(short, SHORT, LONG)
    levels = np.where(short[:, None], _past(trio, row, count, size), _past(mid, row, count, size))
    since = levels.argmin(axis=1)
    older = due["older"].fill_null(np.inf).to_numpy()
    older = np.where(short, np.inf, np.log(older) if scale == LOG else older)
    best = np.minimum(levels.min(axis=1), older)
    level = np.where(short, low[row], mid[row])
    clear_gap = np.where(
        short, _rise_of_thirds(scale, frame, row, count), _lowest_lately(mid, row, count) - best
    )
    return {
        "best": np.exp(best) if scale == LOG else best,
        "level": np.exp(level) if scale == LOG else level,
        "gap": level - best,
        "clear_gap": clear_gap,
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
    """Return the medians of what else was logged beside the evaluations of the present and the best level.

    A row knows of the accuracy what was logged before its step, so the next row has that of an evaluation.
    """
    row = due["row"].to_numpy()
    begin = due["begin"].to_numpy()
    near = np.maximum(row[:, None] - np.arange(LONG), begin[:, None])
    earlier_rows = np.clip(near - since[:, None] + 1, begin[:, None], near)
    medians = {}
    for name, logged in (("metric", TASK_METRIC), ("train", "loss_mean")):
        column = frame[logged].fill_null(np.nan).to_numpy()
        then = np.minimum(earlier_rows + 1, row[:, None]) if name == "metric" else earlier_rows
        for when, at in (("", near), ("_then", then)):
            few, many = (np.median(column[at[:, :rows]], axis=1) for rows in (SHORT, LONG))
            medians[name + when] = np.where(short, few, many)
    return medians


def _past(levels: Floats, row: Ints, count: Ints, size: Ints) -> Floats:
    """Return the levels before those of the last ``size`` evaluations, newest first: rows x REACH."""
    age = np.arange(REACH)
    earlier = last_values(levels, row, REACH)
    past = (age >= size[:, None]) & (age < np.minimum(count + 1, REACH)[:, None])
    return np.where(past & np.isfinite(earlier), earlier, np.inf)


def _rise_of_thirds(scale: str, frame: pl.DataFrame, row: Ints, count: Ints) -> Floats:
    """Return how far the median of the last third stands above the lowest third before it, in a scale."""
    rise = np.empty(len(row))
    for size, begin in THIRDS.items():
        at = count >= begin
        levels = frame[f"{scale}_third_{size}"].fill_null(np.nan).to_numpy()
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
