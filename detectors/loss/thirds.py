"""The thirds of a loss compared: has it fallen since its start, and does it stand still now?

A third has ``most`` points at most. A level is the mean of a third, and its error allows for autocorrelation.
Each ``with_...`` keeps the rows that are due, as `stats.with_arrays` does, and adds columns, which are null
where there are too few points. Those that a
reader may see are described in the mapping beside it.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, STEP, VALUE
from sentinel.detectors.stats import (
    PRECISION,
    Floats,
    Ints,
    last_values,
    of_buckets,
    start_value,
    was_resumed,
    with_arrays,
)

SURELY = 1.645
"""Standard errors of a one-sided confidence of 95 %."""

CLEARLY = 3
"""Standard errors of a fall that no run of noise explains."""

EARLY = 5, 20
"""First points whose mean may show a fall that is over long before the first third of a series is."""

FIRST = 2
"""First points that are a tenth of a short series, or nearly so."""

SHORT = 50
"""Points that a longer series has."""

LEAST = max(EARLY)
"""Points that a comparison of thirds needs."""

SLIGHT = 0.02
"""A fall from the first points by less than this share of them is none."""

CRAWL = 0.005, 0.035
"""Shares of the start between which a fall is too small for a training."""

BACK = 0.05, 4
"""A loss came back from a fall that was larger than this share of its start and than this many scatters."""

FALL = {
    "start": Measure("at the start", Unit.SAME),
    "now": Measure("now", Unit.SAME),
    "fall": Measure("fall since the start", Unit.SHARE),
    "most": Measure("largest fall that the noise allows", Unit.SHARE),
    "spread": Measure("scatter of the points", Unit.SHARE),
    "trained": Measure("trained for", Unit.STEPS),
}
REST = {
    "start": Measure("at the start", Unit.SAME),
    "now": Measure("now", Unit.SAME),
    "change": Measure("change over the plateau", Unit.SHARE),
    "error": Measure("standard error of the change", Unit.SHARE),
    "since": Measure("on the plateau since", Unit.STEP),
    "slide": Measure("fall since the second sixth", Unit.SHARE),
}


class Level(NamedTuple):
    """Mean of some points, its standard error if they are an AR(1) process, and their own spread."""

    mean: Floats
    error: Floats
    spread: Floats


def mean_level(values: Floats, sizes: Ints) -> Level:
    """Return the level of the first ``sizes[i]`` values of row i; at least 4 of them.

    The lag-1 autocorrelation is corrected for its bias in short series (Kendall 1954) and held below
    0.95, above which so few points do not tell how sure their mean is.
    """
    inside = np.arange(values.shape[1]) < sizes[:, None]
    mean = np.where(inside, values, 0).sum(axis=1) / sizes
    off = np.where(inside, values - mean[:, None], 0)
    squares = (off * off).sum(axis=1)
    neighbours = np.nan_to_num((off[:, 1:] * off[:, :-1]).sum(axis=1) / squares)
    correlation = ((neighbours * sizes + 1) / (sizes - 3)).clip(0, 0.95)
    spread = np.sqrt(squares / (sizes - 1))
    error = spread * np.sqrt((1 + correlation) / (1 - correlation) / sizes)
    return Level(mean, error, spread)


def with_fall(points: pl.LazyFrame, *, most: int, every: int) -> pl.LazyFrame:
    """Return the first and the last third of each series so far compared; needs coarse history.

    ``start`` and ``now`` are their means, ``low`` the lower bound of the latter. The ``fall``, its bounds
    ``least`` and ``most`` at a confidence of 95 % each, and the ``spread`` of single points are shares of the
    start. ``trained`` counts the steps since the first one. ``start`` is null in an attempt that begins later
    than a log does. Five columns are conditions: the loss is ``unmoved`` where it did not fall early or in
    between, it is ``still`` where nothing speaks for a fall, it ``crawls`` where a fall is certain and small,
    it ``fell`` where one is certain, and it ``came_back`` where it had fallen in between.
    """
    names = ("start", "now", "low", "fall", "error", "spread", "early_fall")
    with_start = points.with_columns(trained=pl.col(STEP) - start_value(STEP), resumed=was_resumed())
    compared = with_arrays(
        with_start, names, partial(_first_and_last, most=most), every=every, at_least=LEAST
    ).with_columns(start=pl.when(~pl.col("resumed")).then("start"))
    fall, error, early_fall, bound = (pl.col(column) for column in ("fall", "error", "early_fall", "most"))
    deepest = 1 - of_buckets(pl.col("coarse_mean").list.min()) / pl.col("start")
    came_back = (deepest > pl.max_horizontal(BACK[0], BACK[1] * pl.col("spread"))).fill_null(False)
    certain = fall > CLEARLY * error
    unmoved = (early_fall < SURELY) & ~came_back
    return compared.with_columns(most=fall + SURELY * error, least=fall - SURELY * error).with_columns(
        still=unmoved & (fall < error),
        crawls=unmoved & certain & (fall > CRAWL[0]) & (bound < CRAWL[1]),
        unmoved=unmoved,
        fell=(certain & (bound > CRAWL[1])) | (early_fall > CLEARLY) | came_back,
        came_back=came_back,
    )


def _first_and_last(frame: pl.DataFrame, due: pl.DataFrame, *, most: int) -> dict[str, Floats]:
    values = frame[VALUE].to_numpy()
    begin = due["begin"].to_numpy()
    third = np.minimum((due[INDEX].to_numpy() + 1) // 3, most)
    ends = begin + third - 1, due["row"].to_numpy()
    head, tail = (mean_level(last_values(values, end, most), third) for end in ends)
    early = [(last_values(values, begin + rows - 1, rows).mean(axis=1), third / rows) for rows in EARLY]
    first = last_values(values, begin + FIRST - 1, FIRST).mean(axis=1), third / FIRST
    is_short = due[INDEX].to_numpy() + 1 < SHORT
    return {
        "start": head.mean,
        "now": tail.mean,
        "low": tail.mean - SURELY * tail.error,
        "fall": 1 - tail.mean / head.mean,
        "error": np.maximum(np.hypot(head.error, tail.error) / head.mean, PRECISION),
        "spread": np.hypot(head.spread, tail.spread) / np.sqrt(2) / head.mean,
        "early_fall": np.max(
            [_early_fall(*first, tail) * is_short, *(_early_fall(*mean, tail) for mean in early)], axis=0
        ),
    }


def _early_fall(early: Floats, times: Floats, tail: Level) -> Floats:
    """Return the standard errors from an early mean, of far fewer points, to the tail's; 0 if ``SLIGHT``."""
    error = np.maximum(tail.error * np.sqrt(1 + times), PRECISION * early)
    return np.where(early - tail.mean > SLIGHT * early, (early - tail.mean) / error, 0)


def with_rest(points: pl.LazyFrame, *, most: int, every: int, at_least: int) -> pl.LazyFrame:
    """Return the last third of each series so far compared with the one before it; needs coarse history.

    ``change`` is the fall from one to the other and ``error`` its standard error, both shares of the level
    before. ``since`` is the first step of the two thirds. ``start`` is the mean of the first points, null in
    an attempt that begins later than a log does. ``earlier`` is the mean of the second sixth of the series.
    ``slide`` is the fall from it to the last third, which has no most, so it shows a fall that is too slow
    for ``change``. It and its standard error ``slide_error`` are shares of ``earlier``.
    """
    names = ("earlier", "start", "now", "now_error", "change", "error", "since")
    with_start = points.with_columns(resumed=was_resumed())
    compared = with_arrays(
        with_start, names, partial(_last_and_before, most=most), every=every, at_least=at_least
    )
    buckets = pl.col("coarse_mean").list
    sixth = buckets.len() // 6
    second = buckets.slice(sixth, sixth).list
    last = buckets.tail(2 * sixth).list
    last_error = pl.coalesce(of_buckets(last.std() / (2 * sixth).sqrt()), "now_error")
    earlier = pl.coalesce(of_buckets(second.mean()), "earlier")
    return compared.with_columns(
        pl.col("since").cast(pl.Int64),
        start=pl.when(~pl.col("resumed")).then("start"),
        earlier=earlier,
        slide=1 - pl.coalesce(of_buckets(last.mean()), "now") / earlier,
        slide_error=np.sqrt(3) * last_error / earlier.abs(),  # a sixth has half the points of a third
    )


def _last_and_before(frame: pl.DataFrame, due: pl.DataFrame, *, most: int) -> dict[str, Floats]:
    values = frame[VALUE].to_numpy()
    row = due["row"].to_numpy()
    begin = due["begin"].to_numpy()
    third = np.minimum((due[INDEX].to_numpy() + 1) // 3, most)
    before, now = (mean_level(last_values(values, end, most), third) for end in (row - third, row))
    sixth = np.minimum((due[INDEX].to_numpy() + 1) // 6, most)
    second = last_values(values, begin + 2 * sixth - 1, most)
    return {
        "earlier": np.where(np.arange(most) < sixth[:, None], second, 0).sum(axis=1) / sixth,
        "start": last_values(values, begin + EARLY[0] - 1, EARLY[0]).mean(axis=1),
        "now": now.mean,
        "now_error": now.error,
        "change": 1 - now.mean / before.mean,
        "error": np.hypot(before.error, now.error) / np.abs(before.mean),
        "since": frame[STEP].to_numpy()[row - 2 * third + 1].astype(float),
    }
