"""The training loss has not moved since the training began.

## What it catches
A supervised loss whose last third (at most 200 points) stands where its first third stood: with 95 %
confidence the fall is below 2 % of the start. The errors allow for autocorrelation. A loss that rests at
the cost of guessing (ln 2, ln 10, ln 100, ln 1000, or the logarithm of the number of classes in the
settings) is flat while its fall is below 3 %. A fall that is certain but below 3.5 % is shown as a crawl. A
loss that is exactly zero from its first point on is told after 20 points.

## Why it matters
Nearly always this is wiring: weights that the optimizer does not know, a graph that is cut before the loss,
adapters that are missing or frozen, wrong labels, a learning rate that is far too small. Waiting does not
mend it.

## What to do
Take two samples, switch augmentation, dropout and weight decay off and train until the loss is about zero.
If it does not get there, compare the ids of the model's parameters with the optimizer's, and look whether a
weight changes in a step. A gradient norm of zero means that the loss does not reach the weights; a healthy
one, that the step does not reach them or is too small.

## When it is wrong
Tasks with a long plateau before they are learned (copying, parity, contrastive losses) look the same until
they fall; then the finding ends for good. The rule waits for 30 % of the planned steps, or for 4000 steps
where no plan is known. At a level of guessing, and where the gradient is zero, it waits for 15 % or 300
steps, and for half of that where the loss surely stands within 0.5 %. When a run is over after 40 points, or
after 20 and 300 steps or ten epochs, no wait is left where no plan is known and a bound of 3 % is enough, of
4 % at a level of guessing. The rule is silent while the learning rate rises or is below a tenth of its peak,
in a resumed run, and beside rewards, value losses or preference margins. Fine-tuning of a model that knows
its data looks flat where the noise of single batches hides the fall.

## Source
Catalogue O1, O2, O3, O7, O21: thirds, 2 %, AR(1) correction. The waits are measured: healthy runs, real and
simulated, stay within 2 % of their start for 60 points or 250 steps at most, unless the learning rate
rises.
"""

from math import log
from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.context import First
from detectors.evidence import Measure, Unit
from detectors.schema import ENDED, INDEX, SERIES, STEP, VALUE
from detectors.settings import Setting
from detectors.signals import Signal
from detectors.stats import last_third_begin, nearest, seen_max, start_value, was_resumed, with_fall
from detectors.verdict import verdicts

EVERY = 5
MOST = 200  # points of a third
FEW = 20  # points over which a gradient norm counts as zero, and a loss as zero from the start
CHANCE = log(2), log(10), log(100), log(1000)
NEAR = 0.015  # of a level of guessing: how far from it a loss may be
SURELY = 1.645  # standard errors: one-sided 95 %
CLEARLY = 3  # standard errors of a fall that no run of noise explains
SURE_FALL = 0.005  # below this bound a loss stands still for sure, and half the wait is enough
AT_END = 20, 0.04  # points, and the bound of a fall at a level of guessing, when nothing more will come
MANY, EPOCHS = 40, 10  # points, or passes over the data, of a run that is over and needs no further steps
CRAWL = 0.035  # bound of a fall that is certain and too small
PATIENCE = 2  # times the share of the plan, where the loss is not at a level of guessing
BACK = 0.05, 4  # a fall that was and is no more: share of the start, and times the spread of points
GRADIENT = Signal.GRAD_NORM, First(Signal.GRAD_NORM)
NOT_SUPERVISED = (Signal.REWARD, Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_MARGIN)
FLAT = "loss has not moved for {lasted}: {now:.4g}, {start:.4g} at the start"


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.LEARNING_RATE, *GRADIENT, Signal.TOTAL_STEPS, Signal.EPOCH, *NOT_SUPERVISED),
    settings=(Setting.NUM_CLASSES, Setting.VOCAB_SIZE),
    history=History(recent=MOST, head=MOST, coarse=True),
    every=EVERY,
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        "start": Measure("at the start", Unit.SAME),
        "now": Measure("now", Unit.SAME),
        "fall": Measure("fall since the start", Unit.SHARE),
        "most": Measure("largest fall that the noise allows", Unit.SHARE),
        "spread": Measure("scatter of the points", Unit.SHARE),
        "trained": Measure("trained for", Unit.STEPS),
        "gradient": Measure("gradient norm now", Unit.NONE),
        "first_gradient": Measure("gradient norm at the start", Unit.NONE),
        "chance": Measure("cost of guessing", Unit.SAME),
    },
    variants={
        "zero": Variant("loss is exactly 0 from the first point on", ("O15", "O16", "L2", "O3")),
        "no-gradient": Variant(FLAT + "; the gradient norm is zero", ("O3", "O21", "O4", "O2", "O1")),
        "crawling": Variant(
            "loss has fallen by only {fall:.2%} in {lasted}: {now:.4g}, {start:.4g} at the start",
            ("O7", "O12", "O1"),
        ),
        "at-chance": Variant(
            FLAT + "; guessing costs {chance:.4g}",
            ("O1", "O7", "L8", "O2", "O3", "O4", "O5", "O21", "O12", "GV"),
        ),
        "gradient-without-effect": Variant(
            FLAT + "; the gradient norm is {gradient:.2g}",
            ("O2", "O7", "O1", "L8", "O4", "O5", "O12", "O16", "L2"),
        ),
        "unmoved": Variant(FLAT, ("O1", "O2", "O3", "O7", "O21", "O4", "L8", "O5", "O12", "O16", "L2", "GV")),
    },
)
def flat_loss_at_init(
    points: pl.LazyFrame,
    *,
    least_points: Annotated[int, "points before anything is said"] = 20,
    least_share: Annotated[float, "share of the planned steps before a loss at guessing is told"] = 0.15,
    least_steps: Annotated[int, "steps before that where the planned number is unknown"] = 300,
    patient_steps: Annotated[int, "steps before any other flat loss is told where no plan is known"] = 4000,
    least_fall: Annotated[float, "share of the start by which a loss must fall to have moved"] = 0.02,
    least_fall_at_chance: Annotated[float, "the same for a loss at the level of guessing"] = 0.03,
) -> pl.LazyFrame:
    """See the module's page."""
    plan = pl.col(Signal.TOTAL_STEPS)
    rate, rate_before, peak = (pl.col(n) for n in (Signal.LEARNING_RATE, "rate_before", "peak"))
    context = points.with_columns(
        first=start_value(STEP),
        resumed=was_resumed(),
        wait=(least_share * plan).fill_null(least_steps),
        long_wait=(PATIENCE * least_share * plan).fill_null(patient_steps),
        gradient=pl.col(Signal.GRAD_NORM).rolling_max(FEW).over(SERIES),
        first_gradient=pl.col(GRADIENT[1].column),
        largest=seen_max(VALUE, MOST, MOST),
        rate_before=last_third_begin(Signal.LEARNING_RATE, MOST),
        peak=seen_max(Signal.LEARNING_RATE, MOST, MOST),
    )
    start, now, fall, error = (pl.col(n) for n in ("start", "now", "fall", "error"))
    classes = pl.min_horizontal(Setting.NUM_CLASSES, Setting.VOCAB_SIZE).log()
    usual = nearest(now, CHANCE)
    measured = with_fall(context, most=MOST, every=EVERY, at_least=least_points).with_columns(
        trained=pl.col(STEP) - pl.col("first"),
        most=fall + SURELY * error,
        best=(1 - pl.col("coarse_mean").list.min() / start).fill_null(0),
        chance=pl.when((now / classes - 1).abs() < NEAR).then(classes).otherwise(usual),
    )
    trained, chance, gradient, most = (pl.col(n) for n in ("trained", "chance", "gradient", "most"))
    early_fall = pl.col("early_fall")
    half = pl.when(most < SURE_FALL).then(0.5).otherwise(1.0)
    warming_up = ((rate > 1.01 * rate_before) | (rate_before < 0.1 * peak)).fill_null(False)
    no_gradient = gradient == 0
    came_back = pl.col("best") > pl.max_horizontal(BACK[0], BACK[1] * pl.col("spread"))
    certain = fall > CLEARLY * error
    has_fallen = (certain & (most > CRAWL)) | (early_fall > CLEARLY) | came_back
    rests = (early_fall < SURELY) & ~came_back
    crawls = certain & (fall > SURE_FALL) & (most < CRAWL) & rests
    at_chance = pl.max_horizontal((start / chance - 1).abs(), (now / chance - 1).abs()) < NEAR
    too_short = (trained < pl.col("wait")) & plan.is_not_null()
    rows = pl.col(INDEX) + 1
    long_enough = (
        (rows >= MANY) | (trained >= least_steps) | (pl.col(Signal.EPOCH) >= EPOCHS).fill_null(False)
    )
    over = pl.col(ENDED) & (rows >= AT_END[0]) & long_enough & ~too_short
    guessing = at_chance & (most < pl.when(over).then(AT_END[1]).otherwise(least_fall_at_chance)) & ~came_back
    bound = pl.when(over).then(least_fall_at_chance).otherwise(least_fall)
    still = rests & (fall < error) & (most < bound) & (SURELY * error - fall < bound)
    flat = guessing | (still & (no_gradient | over | (trained >= pl.col("long_wait"))))
    zero = (pl.col("largest") == 0) & (start == 0)
    return verdicts(
        measured,
        judged=pl.all_horizontal(
            (trained >= half * pl.col("wait")) | zero | over,
            ~pl.col("resumed").fill_null(True),
            start >= 0,
            *(pl.col(s).is_null() for s in NOT_SUPERVISED),
            ~((flat | crawls) & warming_up),
        ),
        found={
            "zero": zero,
            "no-gradient": flat & no_gradient,
            "crawling": crawls,
            "at-chance": guessing & gradient.is_null(),
            "gradient-without-effect": flat & gradient.is_not_null(),
            "unmoved": flat,
        },
        lasts=~has_fallen,
        severities={
            Severity.CRITICAL: flat & no_gradient,
            Severity.WARNING: zero | guessing | (flat & (over | (most < least_fall / 2))),
        },
        otherwise=Severity.INFO,
        onset=pl.col("first"),
    )
