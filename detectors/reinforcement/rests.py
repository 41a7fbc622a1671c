"""How long a reward has rested on one value, and whether that is what a policy that explores meets."""

import polars as pl

from sentinel.detectors.schema import ENDED, INDEX, SERIES, STEP
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import is_of, moved, recent_max, resting, start_median, start_value

LEAST = 20
"""First rows whose changes count, whatever came later; the rule needs a head of them."""

EPISODES = 100
"""Episodes that a policy of control is given. Libraries log the mean over the last so many."""

APART = 200
"""Episodes after which two such means share none: two levels."""

RANDOM = 0.2
"""Share of random actions from which on a reward is not the policy's."""

SETTLED = 0.2
"""Share of its training for which a policy must have acted mostly by itself before it has had its chance."""

MOSTLY_RANDOM = 1 / 3
"""The same of a run that is over, whose policy will not act more by itself."""

OWN_RATE = 0.5
"""Largest share of random actions that may be how a policy acts for good, where it has never moved."""

SPARSE = 0.6
"""Fraction of the points at which a reward changes that is seldom met."""

GAPS = 5
"""Times the usual gap of such a reward that a rest by chance lasts. It changes twice when it is met."""

EARLY = 1 / 3
"""Share of the plan before which a policy of control may still have to explore."""

LANGUAGE = Signal.COMPLETION_LENGTH, Signal.ENTROPY, Signal.REWARD_FUNCTION, Signal.TASK_REWARD
"""Signals of a language model, which begins with a policy that can do something."""

OF_TRAINING = (
    *(Signal.REWARD, Signal.EXPLORATION_RATE, Signal.POLICY_ENTROPY, Signal.TOTAL_STEPS, Signal.EPOCH),
    *(Signal.LOSS, Signal.POLICY_LOSS, Signal.VALUE_LOSS),
)
"""What stands beside an evaluation of a policy that is trained."""

USED = (Signal.EPISODE_LENGTH, Signal.EXPLORATION_RATE, *LANGUAGE)
"""What a rule has to list in ``uses``."""


def with_rests(points: pl.LazyFrame, *, most: int) -> pl.LazyFrame:
    """Return a frame of rewards with five columns more. The rule needs ``most`` recent rows.

    ``still`` counts the rows on the present value, at most ``most``; ``rests_from`` is the step of the first,
    if it is among these. ``changes`` counts those among the last or the first rows. Two are conditions: a
    policy of control ``explores`` while it has had few episodes or acts much at random, though never at the
    end, and a reward that is seldom met rests ``by_chance``.
    """
    rows = pl.col(INDEX) + 1
    moves = moved().cast(pl.Int64)
    at_start = pl.when(rows <= LEAST).then(moves).cum_sum().forward_fill()
    changes = pl.max_horizontal(at_start, moves.rolling_sum(most, min_samples=1))
    marked = points.with_columns(mark=pl.when(moved().fill_null(True)).then(rows).forward_fill().over(SERIES))
    measured = marked.with_columns(
        still=resting(pl.col("mark"), most),
        rests_from=recent_max(pl.when(moved().fill_null(True)).then(STEP), most, at_least=1),
        changes=changes.over(SERIES),
    )
    return measured.with_columns(by_chance=_by_chance(), explores=_explores())


def _by_chance() -> pl.Expr:
    still = pl.col("still")
    changes = pl.col("changes")
    moving = pl.col(INDEX) + 1 - still
    return changes.is_between(1, SPARSE * moving) & (still * changes < 2 * GAPS * moving)


def _explores() -> pl.Expr:
    """Return where the length of an episode is not known, steps that count by one are episodes."""
    gone = pl.col(STEP) - start_value(STEP)
    counted = pl.when(gone <= pl.col(INDEX)).then(gone)
    few = pl.min_horizontal(gone / pl.col(Signal.EPISODE_LENGTH), counted) < EPISODES - 1
    return is_of_control() & (few.fill_null(False) | acts_at_random()) & ~pl.col(ENDED)


def may_yet_learn() -> pl.Expr:
    """Return whether the rewards so far say little of a policy of control, by what is known of its training.

    So many actions are random, or a run that goes on has done too little of its plan.
    """
    is_early = is_of_control() & (pl.col(STEP) < EARLY * pl.col(Signal.TOTAL_STEPS))
    is_random = _at_random(MOSTLY_RANDOM)
    return pl.when(ENDED).then(is_random).otherwise(acts_at_random() | is_early.fill_null(False))


def is_of_few_episodes() -> pl.Expr:
    """Return whether a policy of control that goes on has had too few episodes for two means that share none.

    A log that counts its episodes by one does not tell how many steps they took.
    """
    gone = pl.col(STEP) - start_value(STEP)
    few = gone < APART * pl.col(Signal.EPISODE_LENGTH)
    return is_of_control() & (few & (gone > pl.col(INDEX))).fill_null(False) & ~pl.col(ENDED)


def is_of_control() -> pl.Expr:
    """Return whether nothing tells of a language model, whose policy begins with what it was taught."""
    return pl.all_horizontal(pl.col(signal).is_null() for signal in LANGUAGE)


def tests_one_policy() -> pl.Expr:
    """Return whether these are the episodes of one policy: an evaluation beside which nothing of a training
    stands, and that counts by one from the first on.
    """
    first = start_value(STEP)
    counts = (pl.col(STEP) - first == pl.col(INDEX)) & (first <= 1)
    alone = pl.all_horizontal(pl.col(signal).is_null() for signal in OF_TRAINING)
    return is_of(Signal.EVAL_REWARD) & counts & alone


def acts_at_random() -> pl.Expr:
    """Return whether so many actions are random that the reward is not the policy's."""
    return _at_random(RANDOM)


def _at_random(share: float) -> pl.Expr:
    """Return whether a larger share of actions is random, and not by a rate that has never moved."""
    rate = pl.col(Signal.EXPLORATION_RATE)
    is_own = (rate == start_median(Signal.EXPLORATION_RATE, LEAST)) & (rate <= OWN_RATE)
    return (rate > share).fill_null(False) & ~is_own.fill_null(False)


def acted_at_random_lately(most: int) -> pl.Expr:
    """Return whether a policy that goes on has acted mostly by itself for too short a share of its training,
    as far as ``most`` recent rows tell.
    """
    last_random = recent_max(pl.when(acts_at_random()).then(STEP), most, at_least=1)
    trained = pl.col(STEP) - start_value(STEP)
    is_recent = pl.col(STEP) - last_random < SETTLED * trained
    return is_recent.fill_null(False) & ~pl.col(ENDED)
