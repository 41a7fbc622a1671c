"""What a person could read off the plot of a series: one number each, with its unit, for many series at once.

Worse is lower in the `Curves` that these functions take. NaN means that a number cannot be measured here, and
speaks neither for nor against anything. `sentinel.detectors.reading.company` measures what other series did.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from sentinel.detectors.reading.curves import BLOCKS, LUCK, MIN_SCATTER, START_BLOCKS, Bools, Curves
from sentinel.detectors.stats import FINE, MOST_DECIMALS, OFF_GRAIN, Floats, row_median

HALF = BLOCKS // 2
THIRD = BLOCKS // 3
NONE = 1e-300
"""What a size is divided by at least."""

GUESSES = np.log([2, 3, 4, 5, 6, 8, 10, 20, 50, 100, 200, 1000])
"""Losses of guessing among so many classes, nats."""

EVENS = np.array([2 * np.log(2), np.log(2), 1 / 2, 1 / 4])
"""Losses of a discriminator that gives one half to every sample: cross-entropy and squared error, each summed
over true and false samples or averaged."""

STILL = 1e-4
"""Share of its size by which a value may move and still rests."""

SAME = 0.02
"""Share of a level within which another one is the same."""

MAX_EXCESS = 0.5
"""By how much a share of errors may exceed 1: inserted words are errors as well."""

DIGITS = 9
"""Decimals of a block, beside the largest, by which two are compared; rounding makes no two different."""

MAX_DEVIATIONS = 1000.0
"""Larger multiples of a noise say no more."""


class Measurement(msgspec.Struct, frozen=True):
    """A number that can be read off a plot. ``measure`` gives one for each series of the curves."""

    name: str
    unit: str
    measure: Callable[[Curves], Floats]

    def of(self, curves: Curves) -> Floats:
        """Return the number of each series, which is measured once."""
        if self.name not in curves.measured:
            curves.measured[self.name] = self.measure(curves)
        return curves.measured[self.name]


MEASUREMENTS: dict[str, Measurement] = {}
"""All of them by name, in the order of this file."""

Measure = Callable[[Curves], Floats]


def measurement(unit: str) -> Callable[[Measure], Measure]:
    """Declare a measurement with its unit. Its name is the function's."""

    def declare(measure: Measure) -> Measure:
        MEASUREMENTS[measure.__name__] = Measurement(measure.__name__, unit, measure)
        return measure

    return declare


# ------------------------------------------------------------------------------------------ what was lost


@measurement("share of the gain")
def lost_of_gain(c: Curves) -> Floats:
    """Measure how much of the gain from the start to the best is gone at the end.

    1 is all of it, or more: `below_start` tells how far below the start it ends.
    """
    return c.lost / np.maximum(c.gain, np.maximum(c.lost, NONE))


@measurement("share of the range")
def lost_of_range(c: Curves) -> Floats:
    """Measure how much of the way from the worst block to the best one is gone at the end.

    1 means that the run ends at its worst.
    """
    return c.lost / c.range


@measurement("share of the size")
def lost_of_size(c: Curves) -> Floats:
    """Measure the fall from the best to the end beside the largest level that the series had.

    Small for a swing of a metric about a high level, whatever its noise.
    """
    return c.lost / c.size


@measurement("share of the best")
def risen_of_best(c: Curves) -> Floats:
    """Measure by which share of its best a cost stands above it at the end.

    NaN for what is no cost, or lies below zero.
    """
    best = -c.best
    ok = c.is_cost & (best > 0)
    return np.where(ok, c.lost / np.where(ok, best, 1.0), np.nan)


@measurement("deviations of a block")
def lost_in_scatters(c: Curves) -> Floats:
    """Measure the fall from the best to the end in standard deviations of a block mean.

    The luck of the best block is taken off already.
    """
    return np.minimum(c.lost / c.scatter, MAX_DEVIATIONS)


@measurement("deviations of a block")
def lost_in_leaps(c: Curves) -> Floats:
    """Measure the fall from the best to the end in standard deviations of a block mean, as its leaps make it.

    Two great rewards among many alike are luck, and their lack no fall.
    """
    return np.minimum(c.lost / c.leaps, MAX_DEVIATIONS)


@measurement("deviations of a point")
def lost_in_points(c: Curves) -> Floats:
    """Measure the fall from the best to the end in standard deviations of a single point.

    Of a long log every fall is many standard errors; below one deviation nobody sees it in the plot.
    """
    return _in_points(c, c.lost)


@measurement("share of the run")
def low_for(c: Curves) -> Floats:
    """Measure for which last part of the run a third of the gain has been missing without a break.

    What lasts for 15 % of the run is a level, and no dip.
    """
    return _trailing(c.is_low) / BLOCKS


@measurement("share of the run")
def longer_than_healed(c: Curves) -> Floats:
    """Measure by how much the present fall has lasted longer than the longest one that healed.

    Negative where an earlier dip as deep lasted longer and healed.
    """
    return (_trailing(c.is_low) - longest_healed(c)) / BLOCKS


@measurement("share of the run")
def below_start_for(c: Curves) -> Floats:
    """Measure for which last part of the run it has been below its start without a break.

    A block counts if it lies two scatters below.
    """
    return _trailing(c.blocks < (c.start - 2 * c.scatter)[:, None]) / BLOCKS


@measurement("share of the size")
def below_start(c: Curves) -> Floats:
    """Measure by how much the end lies below the start beside the size of the larger; negative above it.

    2 at most, for an end of the other sign.
    """
    return (c.start - c.end) / np.maximum(np.maximum(np.abs(c.start), np.abs(c.end)), NONE)


@measurement("share of the range")
def below_start_of_range(c: Curves) -> Floats:
    """Measure by which share of its range the end lies below the start; negative above it.

    1 means that the run fell all the time.
    """
    return (c.start - c.end) / c.range


@measurement("share of the run")
def since_best(c: Curves) -> Floats:
    """Measure how much of the run lies behind its best block.

    0 if the last block is the best.
    """
    return 1 - (c.best_at + 1) / BLOCKS


@measurement("share of the fall")
def recovered(c: Curves) -> Floats:
    """Measure how much of its deepest fall since the best the end has made good.

    1 where nothing was lost.
    """
    after = np.where(np.arange(BLOCKS) >= c.best_at[:, None], c.blocks, np.inf)
    lowest = after.min(axis=1)
    depth = c.best - lowest
    return np.where(depth > c.scatter, (c.end - lowest) / np.maximum(depth, NONE), 1.0)


@measurement("share of the range")
def late_fall(c: Curves) -> Floats:
    """Measure by which share of the range the last tenth lies below the worst block before.

    Negative where the run was as low already.
    """
    worst = c.blocks[:, :-2].min(axis=1)
    measured: Floats = (worst - c.blocks[:, -2:].mean(axis=1)) / c.range
    return measured


@measurement("times, as a logarithm to base 10")
def grown(c: Curves) -> Floats:
    """Measure by which factor the size of the end exceeds the size of the start.

    1 is ten times.
    """
    return np.log10(np.maximum(np.abs(c.end), NONE) / np.maximum(np.abs(c.start), NONE)).clip(-12, 12)


@measurement("times, as a logarithm to base 10")
def above_best(c: Curves) -> Floats:
    """Measure by which factor a cost ends above its best.

    NaN for what is no cost, or lies below zero.
    """
    best = -c.best
    end = -c.end
    ok = c.is_cost & (best > 0) & (end > 0)
    return np.where(ok, np.log10(np.where(ok, end, 1.0) / np.where(ok, best, 1.0)), np.nan).clip(0, 12)


# --------------------------------------------------------------------------------------- what was gained


@measurement("correlation")
def trend(c: Curves) -> Floats:
    """Measure whether the blocks rise all the time (1), fall all the time (-1) or neither (0).

    It is Spearman's rank correlation with time; 0 for a constant.
    """
    return _trend(c.blocks)


@measurement("correlation")
def late_trend(c: Curves) -> Floats:
    """Measure the same of the second half.

    A run that fell and recovers rises here.
    """
    return _trend(c.blocks[:, HALF:])


@measurement("share of the start")
def gain_by_half(c: Curves) -> Floats:
    """Measure by which share of the start's size the mean of the second half lies above the start.

    A fiftieth is the least that leaves a start. Below zero it is the same question.
    """
    return _capped((c.blocks[:, HALF:].mean(axis=1) - c.start) / np.maximum(np.abs(c.start), NONE))


@measurement("deviations of a point")
def gain_by_half_in_points(c: Curves) -> Floats:
    """Measure the same in standard deviations of a single point.

    With 1,600 points a tenth of a deviation is significant, and nobody sees it.
    """
    return _in_points(c, c.blocks[:, HALF:].mean(axis=1) - c.start)


@measurement("deviations of a block")
def gain_by_half_in_scatters(c: Curves) -> Floats:
    """Measure the same in standard deviations of a block mean.

    Below two or three it is chance.
    """
    return _capped((c.blocks[:, HALF:].mean(axis=1) - c.start) / c.scatter)


@measurement("share of the start")
def gain_ever(c: Curves) -> Floats:
    """Measure by which share of the start's size the best lies above the start.

    The best of a noisy series is luck, which is taken off.
    """
    return _capped((c.best - c.start) / np.maximum(np.abs(c.start), NONE))


@measurement("deviations of a point")
def gain_ever_in_points(c: Curves) -> Floats:
    """Measure the same in standard deviations of a single point.

    Rewards of single episodes scatter by their own size.
    """
    return _in_points(c, c.best - c.start)


@measurement("deviations of a block")
def gain_of_thirds(c: Curves) -> Floats:
    """Measure how far the last third lies above the first one, in standard deviations of a block mean.

    It asks whether anything was learnt and kept.
    """
    return _capped((c.blocks[:, -THIRD:].mean(axis=1) - c.blocks[:, :THIRD].mean(axis=1)) / c.scatter)


@measurement("points of a share")
def gain_of_share(c: Curves) -> Floats:
    """Measure by how much a share between 0 and 1 rose from its start to its best, or a share of errors fell.

    NaN for what is no share.
    """
    return np.where(is_share(c), c.best - c.start, np.nan)


@measurement("share of the run")
def no_better(c: Curves) -> Floats:
    """Measure in which part of the run it was no better than at its start.

    Better means by two scatters and a fiftieth of the start.
    """
    least = np.maximum(2 * c.scatter, SAME * np.abs(c.start))
    measured: Floats = (c.blocks <= (c.start + least)[:, None]).mean(axis=1)
    return measured


@measurement("share of the run")
def at_start(c: Curves) -> Floats:
    """Measure in which part of the run it stood within a fiftieth, or two scatters, of its start.

    A run that rose and one that fell have both left it.
    """
    least = np.maximum(2 * c.scatter, SAME * np.abs(c.start))
    measured: Floats = (np.abs(c.blocks - c.start[:, None]) <= least[:, None]).mean(axis=1)
    return measured


@measurement("share of the size")
def range_of_size(c: Curves) -> Floats:
    """Measure the way from the worst block to the best one beside the larger of them.

    A loss that falls from 2.31 to 2.30 has a range of half a percent.
    """
    measured: Floats = (c.blocks.max(axis=1) - c.blocks.min(axis=1)) / c.size
    return measured


# --------------------------------------------------------------------------------------------- what rests


@measurement("share of the run")
def rests_low(c: Curves) -> Floats:
    """Measure for which last part of the run it has rested on one value, if that is no better than its start.

    A task that is solved rests, too, but above its start, and a cost in few digits may move unseen.
    """
    still = np.abs(c.units - c.units[:, -1:]) <= STILL * np.maximum(np.abs(c.units[:, -1:]), NONE)
    low = c.end <= c.start + np.maximum(2 * c.scatter, SAME * np.abs(c.start))
    low &= (not c.is_cost) | _is_fine(c.units[:, -1])
    return np.where(low & (c.units.shape[1] > 1), _trailing(still) / c.units.shape[1], 0.0)


@measurement("share of the size")
def late_range(c: Curves) -> Floats:
    """Measure the range of the second half beside its level.

    0 is one value.
    """
    late = c.blocks[:, HALF:]
    measured: Floats = (late.max(axis=1) - late.min(axis=1)) / np.maximum(
        np.abs(np.median(late, axis=1)), NONE
    )
    return measured


@measurement("share of the level")
def off_guessing(c: Curves) -> Floats:
    """Measure how far the second half of a loss lies from the loss of guessing among some classes.

    Within a hundredth it is guessing; NaN for what is no cost.
    """
    level = np.abs(c.blocks[:, HALF:].mean(axis=1))[:, None]
    return np.where(c.is_cost, np.abs(level / GUESSES - 1).min(axis=1), np.nan)


@measurement("share of the level")
def off_coin(c: Curves) -> Floats:
    """Measure how far the second half of a loss lies from ln 2, the loss of guessing among two.

    NaN for what is no cost.
    """
    level = np.abs(c.blocks[:, HALF:].mean(axis=1))
    return np.where(c.is_cost, np.abs(level / GUESSES[0] - 1), np.nan)


@measurement("share of the level")
def off_even(c: Curves) -> Floats:
    """Measure how far the second half of a discriminator's loss lies from that of giving one half to all.

    NaN for what is no cost.
    """
    level = np.abs(c.blocks[:, HALF:].mean(axis=1))
    return np.where(c.is_cost, np.abs(level / _even(c) - 1), np.nan)


@measurement("share of the level")
def better_than_even(c: Curves) -> Floats:
    """Measure by which share of that loss the best block lies below it; negative if none ever did.

    Two networks that have become equal rest there as well, but the discriminator was better before.
    """
    lowest = np.abs(c.blocks).min(axis=1)
    return np.where(c.is_cost, 1 - lowest / _even(c), np.nan)


@measurement("points of a share")
def off_half(c: Curves) -> Floats:
    """Measure how far the farthest unit of a share lies from one half, which a coin gets.

    NaN for what is no share.
    """
    return np.where(is_share(c), np.abs(np.abs(c.units) - 0.5).max(axis=1), np.nan)


@measurement("share")
def late_share(c: Curves) -> Floats:
    """Measure the level of a share between 0 and 1 in the last half; of a share of errors, that of the rest.

    NaN for what is no share.
    """
    return np.where(is_share(c), c.is_cost + c.blocks[:, HALF:].mean(axis=1), np.nan)


@measurement("points of a share")
def moved_of_share(c: Curves) -> Floats:
    """Measure by how much the last two thirds of a share between 0 and 1 moved.

    A hundredth is what one sample in a hundred does. NaN for what is no share.
    """
    late = c.blocks[:, THIRD:]
    return np.where(is_share(c), late.max(axis=1) - late.min(axis=1), np.nan)


# ------------------------------------------------------------------------------------- how it moves


@measurement("share of the range")
def swing(c: Curves) -> Floats:
    """Measure the standard deviation of the second half about its line, beside the range.

    A half that leaps from end to end has about 0.4.
    """
    late = c.units[:, c.units.shape[1] // 2 :]
    measured: Floats = _detrended(late) / _range_of_units(c)
    return measured


@measurement("share of the size")
def swing_of_size(c: Curves) -> Floats:
    """Measure the same beside the size.

    Small for a metric that trembles about a high level.
    """
    return _detrended(c.units[:, c.units.shape[1] // 2 :]) / c.size


@measurement("share of the range")
def deepest_leap(c: Curves) -> Floats:
    """Measure the deepest fall from one unit of the course to the next, beside the range.

    1 is a fall from the best to the worst at a stroke.
    """
    falls = -np.diff(c.units, axis=1, prepend=c.units[:, :1])
    measured: Floats = falls.max(axis=1) / _range_of_units(c)
    return measured


@measurement("share of the size")
def start_error(c: Curves) -> Floats:
    """Measure the standard error of the start beside the size.

    Large where the first tenth holds a few single episodes: whether the reward left it is luck.
    """
    rows = np.maximum(c.points * START_BLOCKS / BLOCKS, 1.0)
    return c.noise / np.sqrt(rows) / c.size


@measurement("share of the size")
def noise_of_size(c: Curves) -> Floats:
    """Measure how a single point scatters beside the usual block.

    A mean over many samples is smooth; a single small batch is not.
    """
    return c.noise / np.maximum(row_median(np.abs(c.blocks)), MIN_SCATTER * c.size)


@measurement("points, as a logarithm to base 10")
def points(c: Curves) -> Floats:
    """Measure how many points there are.

    Five evaluations prove little.
    """
    return np.log10(np.maximum(c.points, 1))


# ----------------------------------------------------------------------------------------------- helpers


def longest_healed(c: Curves) -> Floats:
    """Return the length in blocks of the longest fall by a third of the gain that healed."""
    depth = np.maximum(c.gain / 3, LUCK * c.scatter)
    low = c.blocks < np.maximum.accumulate(c.blocks, axis=1) - depth[:, None]
    number = np.arange(1, BLOCKS + 1)
    last_high = np.maximum.accumulate(np.where(low, 0, number), axis=1)
    lengths = np.where(low, number - last_high, 0)
    has_ended = number <= (BLOCKS - _trailing(low))[:, None]
    measured: Floats = np.where(has_ended, lengths, 0).max(axis=1).astype(float)
    return measured


def _range_of_units(c: Curves) -> Floats:
    measured: Floats = np.maximum(np.ptp(c.units, axis=1), c.size * MIN_SCATTER)
    return measured


def _even(c: Curves) -> Floats:
    """Return which loss of giving one half to all is the nearest to the second half."""
    level = np.abs(c.blocks[:, HALF:].mean(axis=1))[:, None]
    nearest: Floats = EVENS[np.abs(level / EVENS - 1).argmin(axis=1)]
    return nearest


def is_share(c: Curves) -> Bools:
    """Return which curves stay between 0 and 1. A share of errors may exceed 1 by a half."""
    sizes = -c.units if c.is_cost else c.units
    most = 1 + (MAX_EXCESS if c.is_cost else SAME)
    measured: Bools = (sizes.min(axis=1) >= -SAME) & (sizes.max(axis=1) <= most)
    return measured


def _is_fine(values: Floats) -> Bools:
    """Return which values have digits that are fine enough for equal ones to tell of a rest."""
    least = FINE * np.abs(values)
    with np.errstate(divide="ignore"):
        decimals = np.clip(np.floor(-np.log10(least)), 0, MOST_DECIMALS)
    scale = 10.0**decimals
    measured: Bools = np.abs(values * scale - np.round(values * scale)) > OFF_GRAIN
    return measured


def _trailing(holds: Bools) -> Floats:
    """Return for how many last columns a condition holds without a break."""
    measured: Floats = np.cumprod(holds[:, ::-1], axis=1).sum(axis=1).astype(float)
    return measured


def _in_points(c: Curves, amount: Floats) -> Floats:
    return _capped(amount / np.maximum(c.noise, c.size * MIN_SCATTER))


def _capped(deviations: Floats) -> Floats:
    return np.clip(deviations, -MAX_DEVIATIONS, MAX_DEVIATIONS)


def _trend(blocks: Floats) -> Floats:
    """Return Spearman's rank correlation of each row with time, from how often each block exceeds the others.

    Twice its rank, counted from the middle, is by how many more it exceeds than fall short.
    """
    size = np.maximum(np.abs(blocks).max(axis=1, keepdims=True), NONE)
    rounded = np.round(blocks / size, DIGITS)
    ranks = np.sign(rounded[:, :, None] - rounded[:, None, :]).sum(axis=2)
    time = np.arange(blocks.shape[1]) - (blocks.shape[1] - 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        coefficients = ranks @ time / np.sqrt((ranks * ranks).sum(axis=1) * (time @ time))
    trend: Floats = np.nan_to_num(coefficients, nan=0.0)
    return trend


def _detrended(values: Floats) -> Floats:
    """Return the standard deviation of each row about the straight line through it."""
    time = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    slope = values @ time / max(float(time @ time), NONE)
    off = values - values.mean(axis=1, keepdims=True) - slope[:, None] * time
    spread: Floats = off.std(axis=1)
    return spread
