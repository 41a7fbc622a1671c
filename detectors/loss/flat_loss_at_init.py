"""The training loss has not moved since the training began.

## What it catches
A supervised loss whose last third (at most 200 points) stands where its first third stood: the fall is
within one standard error of none, and with 95 % confidence below 2 % of the start. The errors allow for
autocorrelation: noise of 3 % is judged after some 100 points, of 10 % after 600, of 30 % never. A loss
still at ln 2, ln 10, ln 100 or ln 1000, the cost of guessing among that many classes, is flat while its
fall is surely below 3 %: to be right six times out of ten between two classes would save that much.

## Why it matters
Nearly always this is wiring: weights that the optimizer does not know, a graph cut before the loss,
adapters missing or frozen, wrong labels, a far too small learning rate. Waiting does not mend it.

## What to do
Take two samples, switch augmentation, dropout and weight decay off and train until the loss is about
zero. If it will not go there, compare the ids of the model's parameters with the optimizer's, and look
whether a weight changes in a step. A gradient norm of zero means that the loss does not reach the
weights; a healthy one, that the step does not or is too small.

## When it is wrong
Tasks with a long plateau before they are learned (copying, parity, contrastive losses) look the same until
they fall; then the finding ends for good. The detector waits for a tenth of the planned steps (500 where
no plan is logged), or three tenths (4,000) where the loss is not at a level of guessing, and is silent
while the learning rate rises or is below half its peak, in a resumed run, and beside rewards, value losses
or preference margins. A fall of 5 % may drown in the noise of a run's first points, as may fine-tuning of
a model that knows its data, or of a diffusion model; 10 % are told from none.

## Source
Catalogue O1, O2, O3, O7, O21: thirds, 2 %, AR(1) correction. It allows half a sigma where that is more;
we do not, since slow fine-tuning in the noise of single samples would be called flat.
"""

from math import log
from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.schema import INDEX, SERIES, STEP
from detectors.signals import Signal
from detectors.stats import last_third_begin, nearest, seen_max, start_value, with_fall
from detectors.verdict import verdicts

EVERY = 5
MOST = 200  # points of a third
GRADIENTS = 20  # points over which the gradient norm counts as zero
WAIT = 200, 5000  # steps: the bounds of a tenth of the plan
PATIENCE = 3, 8  # times the wait with and without a plan: slow learning looks flat at first
CHANCE = log(2), log(10), log(100), log(1000)
NEAR = 0.015  # of a level of guessing: how far from it a loss may be
SURELY = 1.645  # standard errors: one-sided 95 %
CLEARLY = 3  # standard errors of a fall that no run of noise explains
BACK = 0.05, 4  # a fall that was and is no more: share of the start, and times the spread of points
NOT_SUPERVISED = (Signal.REWARD, Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_MARGIN)
FLAT = (
    "loss {now:.4g} after {trained} steps, {start:.4g} at the start: a fall of {fall:.2%}, at most {most:.2%}"
)


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.LEARNING_RATE, Signal.GRAD_NORM, Signal.TOTAL_STEPS, *NOT_SUPERVISED),
    history=History(recent=MOST, head=MOST, coarse=True),
    every=EVERY,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    variants={
        "no-gradient": Variant(FLAT + "; the gradient norm is zero", ("O3", "O21", "O4", "O2", "O1")),
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
    least_points: Annotated[int, "points before anything is said"] = 30,
    least_steps: Annotated[int, "steps before anything is said where the planned number is unknown"] = 500,
    least_fall: Annotated[float, "share of the start by which a loss must fall to have moved"] = 0.02,
    least_fall_at_chance: Annotated[float, "the same for a loss at the level of guessing"] = 0.03,
) -> pl.LazyFrame:
    """See the module's page."""
    rate, rate_before, peak = (pl.col(n) for n in (Signal.LEARNING_RATE, "rate_before", "peak"))
    tenth = (pl.col(Signal.TOTAL_STEPS) / 10).clip(*WAIT)
    context = points.with_columns(
        first=start_value(STEP),
        interval=pl.col(STEP).filter(pl.col(INDEX) < 2).diff().last().over(SERIES),
        wait=tenth.fill_null(least_steps),
        long_wait=(PATIENCE[0] * tenth).fill_null(PATIENCE[1] * least_steps),
        gradient=pl.col(Signal.GRAD_NORM).rolling_max(GRADIENTS).over(SERIES),
        rate_before=last_third_begin(Signal.LEARNING_RATE, MOST),
        peak=seen_max(Signal.LEARNING_RATE, MOST, MOST),
    )
    start, now, fall, error = (pl.col(n) for n in ("start", "now", "fall", "error"))
    measured = with_fall(context, most=MOST, every=EVERY, at_least=least_points).with_columns(
        trained=pl.col(STEP) - pl.col("first"),
        least=fall - SURELY * error,
        most=fall + SURELY * error,
        best=(1 - pl.col("coarse_mean").list.min() / start).fill_null(0),
        chance=nearest(now, CHANCE),
    )
    trained, chance, gradient = (pl.col(n) for n in ("trained", "chance", "gradient"))
    least, most, early_fall = (pl.col(n) for n in ("least", "most", "early_fall"))
    warming_up = ((rate > 1.01 * rate_before) | (rate_before < 0.5 * peak)).fill_null(False)
    no_gradient = gradient == 0
    came_back = pl.col("best") > pl.max_horizontal(BACK[0], BACK[1] * pl.col("spread"))
    has_fallen = (fall > CLEARLY * error) | (early_fall > CLEARLY) | came_back
    at_chance = pl.max_horizontal((start / chance - 1).abs(), (now / chance - 1).abs()) < NEAR
    guessing = at_chance & (most < least_fall_at_chance)
    unmoved = (fall < error) & (most < least_fall) & (-least < least_fall) & (early_fall < SURELY)
    flat = (guessing | (unmoved & ((trained >= pl.col("long_wait")) | no_gradient))) & ~came_back
    return verdicts(
        measured,
        judged=pl.all_horizontal(
            trained >= pl.col("wait"),
            pl.col("first") <= 2 * pl.col("interval"),  # else the run was resumed
            start > 0,
            *(pl.col(s).is_null() for s in NOT_SUPERVISED),
            ~(flat & warming_up),
        ),
        found={
            "no-gradient": flat & no_gradient,
            "at-chance": flat & guessing & gradient.is_null(),
            "gradient-without-effect": flat & gradient.is_not_null(),
            "unmoved": flat,
        },
        lasts=~has_fallen,
        severities={Severity.CRITICAL: no_gradient, Severity.WARNING: guessing | (most < least_fall / 2)},
        otherwise=Severity.INFO,
        onset=pl.col("first"),
        evidence=("start", "now", "fall", "most", "spread", "trained", "gradient", "chance"),
    )
