"""The reward falls back far below its best and stays there.

## What it catches
A level of the reward, over the last eighth of the run, that lies far below the best level of any earlier
eighth: by several times the scatter, by a fifth of its size, for the whole of that eighth, and so far that
three quarters of what the run had gained are lost. A language model begins with a policy that can do
something, so it is also judged where it falls as clearly below its own start. What is no language model is
judged from the 150th point on, because exploration may ruin the reward at first; from the 1000th if each
point is a single episode. Nothing is said while a fifth of the actions are random, nor, while the run goes
on, of a lost gain before a policy has acted mostly by itself for a fifth of its training; but from 40 points
on of a reward as far below its start as the best was above it: random actions earned more. A run that is over
is judged from 40 points on, and also where its last tenth lies below all before by 30 % of the range (each
single episode of it below nearly all). While it goes on, a fall is told from 40 points on where the run so
far is judged as a whole: at 40, 60, 80, 120, ... points. A reward that leaps down to 100 times the largest
size of its last 50 points, for three points, is told at once. At a stage of a known plan the run is judged
as if it were over. A score card is read as well, while the run goes on and at its end: points for what a
person sees in the plot. It waits until fewer than a fifth of the actions are random (a third, once the run
is over) and, but for a language model, a third of the plan and 200 episodes are done, where their length
tells how many there were.

## Why it matters
A policy that became bad collects bad data and seldom comes back. The best checkpoint lies before the fall.

## What to do
Keep the best checkpoint and go back to it. Look at what moved first: a KL or clip fraction that rose
means too large updates, so lower the learning rate and the number of passes; an entropy that ran out
means a lack of exploration; completions that all hit the cap or shrink to nothing mean a reward that is
being gamed, or a model that no longer stops. A critic loss that grows for ever means diverging targets.

## When it is wrong
A curriculum that moves to a harder stage, a change of the reward and self-play against a better opponent
lower the reward by design. A policy whose every step costs something loses more in longer episodes, which it
has first to survive: while the run goes on, the card and a lost gain wait where episodes have become longer
by a fifth and a step earns a quarter more than at the start. So it does of an evaluation while the reward of
training stands at its best; one that has been worse for a quarter of the run is told at the end whatever the
reward of training does. Libraries log the mean of the last 100 episodes, whose first rows hold one or two:
two such means share none after 200. What a resumed run had gained before is not known, so such a run is
judged only where it falls below the start of its attempt. Rewards of single episodes scatter widely, so what
counts are means over blocks of the run, and a fall is told late in a very long log.

## Source
Catalogue R1, with the guards of its symptom. A healthy policy-gradient run may lose two thirds of its gain
for a tenth of the run and recover; a healthy DQN on CartPole lies below its start for two thirds of it. Five
times the scatter and twelve standard errors are measured on simulated returns with a long memory, whose
blocks are not independent. The blocks around the fall are left out of the scatter.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, Cause, History, Maturity, Variant, detector
from sentinel.detectors.blocks import ROWS, with_blocks
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.reading.standing import AT_BEST
from sentinel.detectors.reinforcement.falls import FALLS, MEASURES, levels
from sentinel.detectors.reinforcement.rests import (
    LANGUAGE,
    acted_at_random_lately,
    acts_at_random,
    is_of_few_episodes,
    may_yet_learn,
)
from sentinel.detectors.schema import ENDED, EXCUSED, INDEX, SERIES, STEP, SUMS_UP, VALUE, Standing
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    is_of,
    recent_max,
    recent_median,
    start_median,
    start_value,
    was_resumed,
)
from sentinel.detectors.verdict import SkipReason, verdicts

LEAST = 20  # points that suffice while the run continues
SHORT = 40  # points that suffice once it is over
EXPLORES = 150  # points in which exploration may cost reward, while the run goes on
EPISODES = 1000  # the same for a log of single episodes,
SINGLE = 0.18  # whose reward moves by more than this share of its size from one point to the next
LEAPT = 3  # points that tell a leap,
SINCE = 10  # within so many points
BEFORE = 50  # points before it, and
MIN_BEFORE = 20  # how many suffice
FAR = 100  # times the largest size of a reward before
NOW = 10  # rows whose median is a level of today
BEYOND = 1.0  # times what was gained: so far below its start a policy is worse than none
LONGER = 1.2  # times the first episodes
CHEAPER = 0.25  # of what a step first earned or cost: so much more it earns
BESIDE = Signal.KL, Signal.ENTROPY, Signal.CLIPPED_COMPLETION_RATIO

FELL = "the reward fell from {best:.4g} to {now:.4g}"
CAUSES = ("R1", "R2", "N-engine-mismatch", "A-entropy-collapse", "N-tool-failures", "N-entropy-explosion")


@detector(
    judges=(Signal.REWARD, Signal.EVAL_REWARD),
    uses=(
        *(*LANGUAGE, Signal.EXPLORATION_RATE, Signal.TOTAL_STEPS, Signal.KL, Signal.CLIPPED_COMPLETION_RATIO),
        *(Signal.EPISODE_LENGTH, Standing(Signal.REWARD)),
    ),
    history=History(recent=ROWS, head=SHORT, coarse=True),
    at_end=True,
    at_interims=True,
    at_stages=True,
    maturity=Maturity.STABLE,
    cause=Cause.REWARD,
    needs_consent=True,
    evidence={
        **FALLS,
        "usual": Measure("largest size of the 50 points before a leap", Unit.SAME),
        "lost": Measure("share of the gain that is lost", Unit.SHARE),
        **logged(*BESIDE),
    },
    variants={
        "lost": Variant(FELL + ": {lost:.0%} of what the run had gained is gone", CAUSES, (CRITICAL,)),
        "worse": Variant("the reward is {now:.4g}, far below its start of {start:.4g}", CAUSES, (CRITICAL,)),
        "leapt": Variant(
            "the reward leapt to {value:.4g}; the largest size of the 50 points before was {usual:.4g}",
            ("R3", "R1"),
            (CRITICAL,),
        ),
        "ends": Variant("the reward ends at {last:.4g}, below all levels before", CAUSES),
    },
    reads=("reward-got-worse", "second-opinion-reward-fell"),
)
def reward_collapse(
    points: pl.LazyFrame,
    *,
    most_lost: Annotated[float, "share of the gain that a collapse loses"] = 0.75,
    scatters: Annotated[float, "multiple of the scatter of a block that a fall must exceed"] = 5.0,
    sure: Annotated[float, "standard errors by which the fall must be certain"] = 12.0,
    least_fall: Annotated[float, "share of the best or first level that a fall must exceed"] = 0.2,
    most_below: Annotated[float, "share of its range by which a run may end below everything before"] = 0.3,
) -> pl.LazyFrame:
    best = pl.col("best")
    now = pl.col("now")
    start = pl.col("start")
    # By how much the first rewards move from one point to the next, in the mean.
    change = (pl.col(VALUE) - pl.col(VALUE).shift(1)).abs()
    moves = change.filter(pl.col(INDEX) < SHORT).mean().over(SERIES)
    before = pl.col(VALUE).abs().shift(SINCE).over(SERIES)
    usual = recent_max(before, BEFORE, at_least=MIN_BEFORE)
    highest = recent_max(pl.col(VALUE), LEAPT)
    waits = ~pl.col(ENDED) & (_lasts_longer_for_less() | _trains_at_best())
    context = points.with_columns(
        usual=usual,
        leapt=(highest < -FAR * usual) & (usual > 0),
        moves=moves,
        begun=~was_resumed().fill_null(False),
        waits=waits,
        early=acted_at_random_lately(ROWS) | waits,
        **{EXCUSED: may_yet_learn() | is_of_few_episodes() | waits},
    )
    measured = with_blocks(context, MEASURES, levels, every=1, at_least=LEAST).with_columns(
        lost=pl.min_horizontal((best - now) / (best - start), 1.0),
        size=pl.max_horizontal(best.abs(), start.abs()),
    )
    fell = _fell(scatters, sure, least_fall)
    least = scatters * pl.col("scatter")
    gained = pl.col("begun") & (best - start > least)
    worse = now < start - least
    far_below = now < start - BEYOND * (best - start)
    language = pl.col(Signal.COMPLETION_LENGTH).is_not_null() | pl.col(Signal.ENTROPY).is_not_null()
    explored = _has_explored()
    over = pl.col(ENDED) & has_points(SHORT) & pl.col("begun")
    # The last tenth lies below nearly all before, point by point.
    ends_apart = (pl.col("apart") > 0) & ~acts_at_random()
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(LEAST)},
        found={
            "lost": fell & gained & (pl.col("lost") > most_lost) & (language | explored) & ~pl.col("early")
            | fell & gained & has_points(SHORT) & far_below & ~pl.col("waits"),
            "leapt": pl.col("leapt"),
            "ends": over & (explored | ends_apart) & (pl.col("below") > most_below),
            "worse": fell & worse & language,
        },
        onset=_since(),
        below=pl.when(fell).then((best + now) / 2),
    )


def _fell(scatters: float, sure: float, least_fall: float) -> pl.Expr:
    """Return whether the level fell below the best by so many scatters and errors, and enough of its size."""
    fall = pl.col("best") - pl.col("now")
    clear = (fall > scatters * pl.col("scatter")) & (fall > sure * pl.col("error"))
    return clear & (fall > least_fall * pl.col("size"))


def _has_explored() -> pl.Expr:
    """Return whether there were so many points that exploration no longer ruins the reward."""
    is_mean = is_of(Signal.EVAL_REWARD) | (pl.col("moves") < SINGLE * pl.col("size"))
    is_whole = pl.col(ENDED) | (pl.col(SUMS_UP) & ~pl.col(EXCUSED))
    least = pl.when(~is_mean).then(EPISODES).when(is_whole).then(SHORT).otherwise(EXPLORES)
    return has_points(least) & ~acts_at_random()


def _lasts_longer_for_less() -> pl.Expr:
    """Return whether episodes have become longer, and a step of them earns more than at the start."""
    length = pl.col(Signal.EPISODE_LENGTH)
    first_length = start_median(Signal.EPISODE_LENGTH, NOW)
    a_step = recent_median(VALUE, NOW, at_least=1) / recent_median(Signal.EPISODE_LENGTH, NOW, at_least=1)
    first_step = start_median(VALUE, NOW) / first_length
    earns_more = a_step > first_step + CHEAPER * first_step.abs()
    return (is_of(Signal.REWARD) & (length > LONGER * first_length) & earns_more).fill_null(False)


def _trains_at_best() -> pl.Expr:
    """Return whether this is an evaluation, and the reward of training stands at its best."""
    standing = pl.col(Standing(Signal.REWARD).column)
    return (is_of(Signal.EVAL_REWARD) & (standing >= AT_BEST)).fill_null(False)


def _since() -> pl.Expr:
    """Return the step from which on the reward has been low; null where the recent rows tell it better."""
    step = pl.col(STEP)
    start_step = start_value(STEP)
    since = start_step + ((1 - pl.col("held")) * (step - start_step)).round().cast(pl.Int64)
    return pl.when(since < step.shift(ROWS).over(SERIES)).then(since)
