"""The training loss has not moved since the training began.

## What it catches
A supervised loss whose last third (at most 200 points) stands where its first third stood: the fall is
within one standard error of none, and with 95 % confidence below 2 % of the start. The errors allow for
autocorrelation, so a noisy log is judged later than a smooth one: with noise of 3 % after some 100
points, of 10 % after 600, of 30 % never. A loss still at ln 2, ln 10, ln 100 or ln 1000, which is what
guessing among that many classes costs, is flat while its fall is surely below 3 %: to be right six times
out of ten between two classes would save that much.

## Why it matters
A loss that does not move from the very start is nearly always wiring: weights that the optimizer does
not know, a graph cut before the loss, adapters that are missing or frozen, labels that do not fit, a
learning rate that is far too small. Waiting does not mend it.

## What to do
Take two samples, switch augmentation, dropout and weight decay off and train until the loss is about
zero. If it will not go there, compare the ids of the model's parameters with the optimizer's, and look
whether a weight changes in a step. A gradient norm of exactly zero means that the loss does not reach
the weights; a healthy one, that the step does not or is too small.

## When it is wrong
Tasks with a long plateau before they are learned (copying, parity, contrastive losses) look the same
until they fall; then the finding ends. Nothing is said before a tenth of the planned steps (500 where
no plan is logged), or three tenths (4,000) where the loss does not stand at a level of guessing; nor
while the learning rate still rises or is below half its peak, in a resumed run, and
beside rewards, value losses or preference margins: those losses need not fall. Falls of 10 % and more
over the run are told from none; one of 5 % may drown in the noise of its first points, and so may
fine-tuning of a model that knows its data already, or of a diffusion model. Once the loss has clearly
fallen, what follows is not this detector's.

## Source
Catalogue O1, O2, O3, O7, O21: thirds, 2 %, AR(1) correction. It allows half a sigma where that is more;
we do not, since slow fine-tuning in the noise of single samples would be called flat.
"""

from typing import Annotated

import numpy as np
import polars as pl

from detectors.api import History, Maturity, Severity, Variant, detector
from detectors.schema import INDEX, ONSET, SERIES, SEVERITY, STEP, VALUE, VARIANT
from detectors.signals import Signal
from detectors.stats import Floats, Ints, Level, due_rows, last_values, level

EVERY = 5
MOST = 200  # points of a third
EARLY = (5, 20)  # points; they show a fall that is over long before the first third is
CHANCE = np.log([2, 10, 100, 1000])
PATIENCE = (3, 8)  # times as long with and without a plan where the loss is not at the level of guessing:
# slow learning looks flat at first
LOG_ROUNDING = 1e-5  # of a loss; no fall is known better
NOT_SUPERVISED = (Signal.REWARD, Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_MARGIN)

_SENTENCE = (
    "loss {now:.4g} after {trained} steps, {start:.4g} at the start: a fall of {fall:.2%}, at most {most:.2%}"
)


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.LEARNING_RATE, Signal.GRAD_NORM, Signal.TOTAL_STEPS, *NOT_SUPERVISED),
    history=History(recent=MOST, head=MOST, coarse=True),
    every=EVERY,
    maturity=Maturity.STABLE,
    variants={
        "no-gradient": Variant(_SENTENCE + "; the gradient norm is zero", ("O3", "O21", "O4", "O2", "O1")),
        "at-chance": Variant(
            _SENTENCE + "; guessing costs {chance:.4g}",
            ("O1", "O7", "L8", "O2", "O3", "O4", "O5", "O21", "O12", "GV"),
        ),
        "gradient-without-effect": Variant(
            _SENTENCE + "; the gradient norm is {gradient:.2g}",
            ("O2", "O7", "O1", "L8", "O4", "O5", "O12", "O16", "L2"),
        ),
        "unmoved": Variant(
            _SENTENCE, ("O1", "O2", "O3", "O7", "O21", "O4", "L8", "O5", "O12", "O16", "L2", "GV")
        ),
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
    rate, rate_before = pl.col(Signal.LEARNING_RATE), pl.col("rate_before")
    first_steps = pl.col(STEP).filter(pl.col(INDEX) < 2)
    early_peak = pl.when(pl.col(INDEX) < MOST).then(rate).cum_max().forward_fill()
    context = points.with_columns(
        first=first_steps.first().over(SERIES),
        interval=first_steps.diff().last().over(SERIES),
        peak=pl.max_horizontal(early_peak, rate.rolling_max(MOST, min_samples=1)).over(SERIES),
        gradient=pl.col(Signal.GRAD_NORM).rolling_max(20).over(SERIES),
        planned=(pl.col(Signal.TOTAL_STEPS) / 10).clip(200, 5000).fill_null(least_steps),
    )
    compared = context.map_batches(_compare, schema={**context.collect_schema(), **_COMPARED}).with_columns(
        trained=pl.col(STEP) - pl.col("first"),
        most=pl.col("fall") + 1.645 * pl.col("error"),
        best=1 - pl.col("coarse_mean").list.min() / pl.col("start"),
    )
    fall, error, most = pl.col("fall"), pl.col("error"), pl.col("most")
    came_back = (pl.col("best") > pl.max_horizontal(0.05, 4 * pl.col("spread"))).fill_null(False)
    fallen = (fall > 3 * error) | (pl.col("early_fall") > 3) | came_back
    guessing = pl.col("at_chance") & (most < least_fall_at_chance)
    still = (fall < error) & (most < least_fall) & (1.645 * error - fall < least_fall)
    patience = pl.when(pl.col(Signal.TOTAL_STEPS).is_null()).then(PATIENCE[1]).otherwise(PATIENCE[0])
    patient = pl.col("trained") >= patience * pl.col("planned")
    patient |= pl.col("gradient") == 0
    flat = (guessing | (still & patient & (pl.col("early_fall") < 1.645))) & ~came_back
    warm = ((rate <= 1.01 * rate_before) & (rate_before >= 0.5 * pl.col("peak"))).fill_null(True)
    known = (
        (pl.col(INDEX) + 1 >= least_points)
        & (pl.col("trained") >= pl.col("planned"))
        & (pl.col("first") <= 2 * pl.col("interval"))
        & (pl.col("start") > 0)
        & pl.all_horizontal(pl.col(s).is_null() for s in NOT_SUPERVISED)
    )
    variant = (
        pl.when(~flat)
        .then(None)
        .when(pl.col("gradient") == 0)
        .then(pl.lit("no-gradient"))
        .when(guessing & pl.col("gradient").is_null())
        .then(pl.lit("at-chance"))
        .when(pl.col("gradient").is_not_null())
        .then(pl.lit("gradient-without-effect"))
        .otherwise(pl.lit("unmoved"))
    )
    severity = (
        pl.when(~flat)
        .then(Severity.CLEAN)
        .when(pl.col("gradient") == 0)
        .then(Severity.CRITICAL)
        .when(guessing | (most < least_fall / 2))
        .then(Severity.WARNING)
        .otherwise(Severity.INFO)
    )
    return compared.filter(known & ((flat & warm) | (~flat & fallen))).select(
        SERIES, INDEX, STEP, *_EVIDENCE,
        variant.alias(VARIANT), severity.alias(SEVERITY), pl.col("first").alias(ONSET),
    )  # fmt: skip


_COMPARED = {
    **dict.fromkeys(
        ("start", "now", "fall", "error", "spread", "early_fall", "rate_before", "chance"), pl.Float64()
    ),
    "at_chance": pl.Boolean(),
}
_EVIDENCE = ("start", "now", "fall", "most", "spread", "trained", "gradient", "chance")


def _compare(frame: pl.DataFrame) -> pl.DataFrame:
    """The due rows with their first and last third; fall, error and spread are shares of the start."""
    due = due_rows(frame, EVERY, at_least=max(EARLY))
    row, begin = due["row"].to_numpy(), due["begin"].to_numpy()
    third = np.minimum((due[INDEX].to_numpy() + 1) // 3, MOST)
    loss, rate = frame[VALUE].to_numpy(), frame[Signal.LEARNING_RATE].to_numpy()
    head = level(last_values(loss, begin + third - 1, MOST), third)
    tail = level(last_values(loss, row, MOST), third)
    chance = CHANCE[np.abs(tail.mean[:, None] / CHANCE - 1).argmin(axis=1)]
    off_chance = np.maximum(abs(head.mean / chance - 1), abs(tail.mean / chance - 1))
    with np.errstate(all="ignore"):
        return due.select(frame.columns).with_columns(
            start=head.mean,
            now=tail.mean,
            fall=1 - tail.mean / head.mean,
            error=np.maximum(np.hypot(head.error, tail.error) / head.mean, LOG_ROUNDING),
            spread=np.hypot(head.spread, tail.spread) / np.sqrt(2) / head.mean,
            early_fall=np.max([_early_fall(loss, begin, n, tail, third) for n in EARLY], axis=0),
            rate_before=rate[row - third + 1],
            chance=chance,
            at_chance=off_chance < 0.015,
        )


def _early_fall(loss: Floats, begin: Ints, n: int, tail: Level, third: Ints) -> Floats:
    """Standard errors between the first ``n`` points and the tail; 0 where they are less than 1 % apart."""
    early = last_values(loss, begin + n - 1, n).mean(axis=1)
    error = np.maximum(tail.error * np.sqrt(1 + third / n), LOG_ROUNDING * early)
    return np.where(early - tail.mean > 0.01 * early, (early - tail.mean) / error, 0)
