"""What other series of a run did while its outcome went its way: one number each, with its unit.

Series are set side by side by parts of the run, so both must have been logged all along. A companion is
turned over where less of it is better, as an outcome is: its training loss, its critic's loss.
"""

from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from sentinel.detectors.reading.curves import BLOCKS, Curves
from sentinel.detectors.reading.measurements import (
    MAX_DEVIATIONS,
    NONE,
    STILL,
    THIRD,
    late_share,
    lost_of_gain,
)
from sentinel.detectors.reading.measurements import trend as trend_of
from sentinel.detectors.stats import Floats, Ints

POOR = 0.5
"""A share of right answers below which a task metric excuses nothing."""

KEPT = 0.9
"""What is left of a share of successes that an agent keeps, as a share of its start."""

NEAR_GUESS = 0.15
"""Share by which each block of an accuracy may miss that of guessing."""

FAR_COST = 1.15
"""Times the cost of guessing above which a loss is none."""


class CompanionMeasurement(msgspec.Struct, frozen=True):
    """A number about a companion beside an outcome; of several of one ``role`` the largest counts."""

    name: str
    unit: str
    role: str
    measure: Callable[[Curves, Curves], Floats]


COMPANY: dict[str, CompanionMeasurement] = {}
"""All of them by name, in the order of this file."""

Measure = Callable[[Curves, Curves], Floats]


def beside(role: str, unit: str, name: str = "") -> Callable[[Measure], Measure]:
    """Declare a measurement of a companion of a role. It is named by its role and its function."""

    def declare(measure: Measure) -> Measure:
        full_name = name or f"{role}_{measure.__name__}"
        COMPANY[full_name] = CompanionMeasurement(full_name, unit, role, measure)
        return measure

    return declare


@beside("training_loss", "share of its value at the outcome's best")
@beside("train_metric", "share of its value at the outcome's best")
def better_since_best(outcome: Curves, companion: Curves) -> Floats:
    """Measure by which share a companion has become better since the outcome was at its best.

    A training loss that fell by a tenth since is what makes a rise on held-out data memorising.
    """
    level = _at(companion, outcome.best_at)
    return _share(companion.end - level, level)


@beside("training_loss", "share of its value at the outcome's best")
def worse_since_best(outcome: Curves, companion: Curves) -> Floats:
    """Measure by which share a companion has become worse since the outcome was at its best.

    Where the training loss rises as well, nothing is memorised.
    """
    return -better_since_best(outcome, companion)


@beside("training_loss", "share of its start")
@beside("train_metric", "share of its start")
@beside("held_out_loss", "share of its start")
def better(outcome: Curves, companion: Curves) -> Floats:
    """Measure by which share of its start a companion is better at the end.

    Something was learnt although the outcome does not show it.
    """
    del outcome
    return _share(companion.end - companion.start, companion.start)


@beside("training_loss", "share of its start")
def stands(outcome: Curves, companion: Curves) -> Floats:
    """Measure how near its start a companion ends: 1 where it has not moved.

    A model whose training loss stands still has memorised nothing.
    """
    return 1 - np.abs(better(outcome, companion))


@beside("train_metric", "deviations of a block")
@beside("metric", "deviations of a block")
@beside("reward", "deviations of a block")
def rose(outcome: Curves, companion: Curves) -> Floats:
    """Measure by how many standard deviations of a block mean a companion ends above its start.

    Another return that rises speaks against trouble with the first.
    """
    del outcome
    return np.clip((companion.end - companion.start) / companion.scatter, -MAX_DEVIATIONS, MAX_DEVIATIONS)


@beside("metric", "share of its gain")
@beside("reward", "share of its gain")
@beside("held_out_loss", "share of its gain")
def loses_gain(outcome: Curves, companion: Curves) -> Floats:
    """Measure how much of its own gain a companion has lost at the end.

    A fifth of the task metric's gain is what memorising may cost before it is a page.
    """
    del outcome
    return lost_of_gain(companion)


@beside("metric", "share of its gain")
@beside("held_out_loss", "share of its gain")
@beside("training_loss", "share of its gain")
def keeps_gain(outcome: Curves, companion: Curves) -> Floats:
    """Measure how much of its own gain a companion has at the end, where it gained surely.

    A classifier that becomes too sure of itself loses on held-out data while its accuracy holds.
    """
    del outcome
    sure = companion.gain > 3 * companion.scatter
    return np.where(sure, np.clip((companion.end - companion.start) / companion.gain, -1, 1), np.nan)


@beside("metric", "share of its gain")
@beside("train_metric", "share of its gain")
def holds_gain(outcome: Curves, companion: Curves) -> Floats:
    """Measure how much of its own gain a companion has at the end, where it gained surely; NaN of a share
    that is poor in itself.

    A loss that grows while the answers stay as good as ever tells of a classifier that grows surer.
    """
    poor = late_share(companion) < POOR
    return np.where(poor, np.nan, keeps_gain(outcome, companion))


@beside("metric", "share of its gain")
def gains_since_best(outcome: Curves, companion: Curves) -> Floats:
    """Measure which share of its own gain a companion made since the outcome was at its best; NaN of a share
    that is poor in itself.

    A task metric that goes on getting better outranks a held-out loss that rises meanwhile.
    """
    poor = late_share(companion) < POOR
    sure = (companion.gain > 3 * companion.scatter) & ~poor
    gained = (companion.end - _at(companion, outcome.best_at)) / companion.gain
    return np.where(sure, np.clip(gained, -1, 1), np.nan)


@beside("task_reward", "share of the larger")
def stays(outcome: Curves, companion: Curves) -> Floats:
    """Measure what is left of a companion at the end: 1 where it stands as at its start, or higher.

    0 is one that never was anything. A task that pays less and less is given up for something else.
    """
    del outcome
    stays: Floats = np.clip(companion.end / np.maximum(companion.start, NONE), 0.0, 1.0)
    return np.where(companion.size > STILL, stays, 0.0)


@beside("task_reward", "correlation")
def trend(outcome: Curves, companion: Curves) -> Floats:
    """Measure whether the blocks of a companion rise all the time (1), fall all the time (-1) or neither (0).

    A single bad batch at the end is no fall.
    """
    del outcome
    return trend_of(companion)


@beside("metric", "share")
def share(outcome: Curves, companion: Curves) -> Floats:
    """Measure the level of a task metric between 0 and 1 in the last half; NaN for another one.

    A model that was good before it was tuned has little to gain.
    """
    del outcome
    return late_share(companion)


@beside("success", "share")
def held(outcome: Curves, companion: Curves) -> Floats:
    """Measure the level of a share of successes in the last half; NaN of one that ends a tenth lower.

    An agent that succeeded from the first episode on, and still does, has little to gain.
    """
    del outcome
    falls = companion.end < KEPT * companion.start
    return np.where(falls, np.nan, late_share(companion))


@beside("metric", "share of the cost of guessing")
@beside("train_metric", "share of the cost of guessing")
def below_guess(outcome: Curves, companion: Curves) -> Floats:
    """Measure by which share the best block of a loss lies below the cost of guessing.

    An accuracy of 1/n tells that n classes are guessed among. NaN if it is none, if it ever was another one,
    or if the loss is that of something else.
    """
    level = late_share(companion)
    classes = np.round(1 / np.maximum(level, NONE))
    cost = np.log(np.maximum(classes, 2))
    off = np.abs(companion.blocks * classes[:, None] - 1).max(axis=1)
    late = np.abs(outcome.blocks[:, -THIRD:].mean(axis=1)) / cost
    guesses = (classes >= 2) & (off < NEAR_GUESS) & (late < FAR_COST) & ~companion.is_cost
    return np.where(guesses, 1 - np.abs(outcome.blocks).min(axis=1) / cost, np.nan)


@beside("training_loss", "share of its level")
def moved(outcome: Curves, companion: Curves) -> Floats:
    """Measure by which share of its level the last two thirds of a companion moved.

    A training loss that moves by a hundredth learns nothing more.
    """
    del outcome
    late = companion.blocks[:, THIRD:]
    level = np.maximum(np.abs(np.median(late, axis=1)), NONE)
    measured: Floats = (late.max(axis=1) - late.min(axis=1)) / level
    return measured


@beside("train_metric", "points of a share")
def agrees(outcome: Curves, companion: Curves) -> Floats:
    """Measure how near a companion stands to the outcome in the last third: 1 where their levels are equal.

    A model that is as poor on the data that it trains on has memorised nothing.
    """
    levels = [curves.blocks[:, -THIRD:].mean(axis=1) for curves in (outcome, companion)]
    measured: Floats = 1 - np.abs(np.abs(levels[0]) - np.abs(levels[1]))
    return measured


@beside("reward_spread", "1 or 0")
def ranks(outcome: Curves, companion: Curves) -> Floats:
    """Measure whether rewards differ within a group although their mean is always the same: 1 if so.

    A ranking makes such a mean.
    """
    rests = np.ptp(outcome.units, axis=1) <= STILL * outcome.size
    measured: Floats = np.where(rests & (companion.size > STILL), 1.0, 0.0)
    return measured


@beside("value_loss", "times beyond the square of the return, as a logarithm to base 10")
def excess(outcome: Curves, companion: Curves) -> Floats:
    """Measure by which factor a critic's loss grew beyond the square of the return's size.

    A critic that follows rising returns has a rising loss, and that is no trouble.
    """
    measured: Floats = _growth(companion) - 2 * np.maximum(0.0, _growth(outcome))
    return measured


@beside("value_loss", "times, as a logarithm to base 10")
@beside("grad_norm", "times, as a logarithm to base 10")
def peak(outcome: Curves, companion: Curves) -> Floats:
    """Measure how far the largest unit of a companion exceeds its usual size.

    One leap to a thousand times the level is a broken update.
    """
    del outcome
    sizes = np.abs(companion.units)
    measured: Floats = np.log10(
        np.maximum(sizes.max(axis=1), NONE) / np.maximum(np.median(sizes, axis=1), NONE)
    ).clip(0, 12)
    return measured


@beside("policy_loss", "times, as a logarithm to base 10")
@beside("kl", "times, as a logarithm to base 10")
@beside("approx_kl", "times, as a logarithm to base 10")
@beside("grad_norm", "times, as a logarithm to base 10")
@beside("completion_length", "times, as a logarithm to base 10")
def growth(outcome: Curves, companion: Curves) -> Floats:
    """Measure by which factor the last third of a companion exceeds its first third in size.

    1 is ten times.
    """
    del outcome
    return _growth(companion)


@beside("entropy", "share of its start")
def gone(outcome: Curves, companion: Curves) -> Floats:
    """Measure which share of the entropy at the start is gone.

    1 is a policy that always does the same.
    """
    del outcome
    start = np.where(companion.start > 0, companion.start, np.nan)
    measured: Floats = (1 - companion.end / start).clip(-10, 1)
    return measured


@beside("kl", "nats, as a logarithm to base 10")
@beside("approx_kl", "nats, as a logarithm to base 10")
def late(outcome: Curves, companion: Curves) -> Floats:
    """Measure the level of a divergence in the last third.

    0 is one nat.
    """
    del outcome
    return np.log10(np.maximum(np.abs(np.median(companion.blocks[:, -THIRD:], axis=1)), 1e-9))


@beside("clip_fraction", "share of the samples")
@beside("cut_completions", "share of the completions")
@beside("groups_without_spread", "share of the groups")
@beside("explained_variance", "share of the variance")
def level(outcome: Curves, companion: Curves) -> Floats:
    """Measure the level of a share in the last third.

    1 is all of them.
    """
    del outcome
    return np.median(companion.blocks[:, -THIRD:], axis=1)


@beside("learning_rate", "share of its peak")
def left(outcome: Curves, companion: Curves) -> Floats:
    """Measure which share of its peak the learning rate has in the second half.

    A loss that rests because its rate is near 0 does not rest by itself.
    """
    del outcome
    highest = np.maximum(companion.blocks.max(axis=1), NONE)
    measured: Floats = np.median(companion.blocks[:, BLOCKS // 2 :], axis=1) / highest
    return measured


def largest(values: Mapping[int, float]) -> float:
    """Return the largest that could be measured of several companions of a role; NaN if none could."""
    measured = [value for value in values.values() if not np.isnan(value)]
    return max(measured, default=float("nan"))


def _at(companion: Curves, block: Ints) -> Floats:
    """Return the level of a companion about a block of the run: of three blocks, fewer at its ends."""
    number = np.arange(BLOCKS)
    near = np.abs(number - block[:, None]) <= 1
    level: Floats = np.where(near, companion.blocks, 0.0).sum(axis=1) / near.sum(axis=1)
    return level


def _share(change: Floats, level: Floats) -> Floats:
    return np.clip(change / np.maximum(np.abs(level), NONE), -10.0, 10.0)


def _growth(curves: Curves) -> Floats:
    first = np.abs(np.median(curves.blocks[:, :THIRD], axis=1))
    last = np.abs(np.median(curves.blocks[:, -THIRD:], axis=1))
    return np.log10(np.maximum(last, 1e-12) / np.maximum(first, 1e-12)).clip(-12, 12)
