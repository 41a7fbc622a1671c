"""The training loss has not moved since the training began.

## What it catches
A supervised loss whose last third (at most 200 points) stands where its first third stood: the fall is below
`least_fall` with 95 % confidence. At the cost of guessing and at the end of a run it may be a little more.
Late, a loss that only came down to that cost is flat, too. A certain fall below 3.5 % is a crawl.

## Why it matters
Nearly always this is wiring: weights that the optimizer does not know, a graph that is cut before the loss,
frozen adapters, wrong labels, a learning rate that is far too small.

## What to do
Train on two samples until the loss is about zero. If it does not get there, compare the ids of the model's
parameters with the optimizer's, and look whether a weight changes in a step. A gradient norm of zero means
that the loss does not reach the weights; a healthy one, that the step does not reach them or is too small.

## When it is wrong
Tasks with a long plateau look the same until they fall, and so does fine-tuning whose fall the noise hides.
So the rule waits for 30 % of the plan, or for half of that at a level of guessing or without a gradient.

## Source
Catalogue O1, O2, O3, O7, O21. Healthy runs, real and simulated, stay within 2 % of their start for 60 points
or 250 steps at most, unless the learning rate rises.
"""

from typing import Annotated

import polars as pl

from detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from detectors.context import First
from detectors.evidence import Measure, Unit
from detectors.schedules import warms_up
from detectors.schema import ENDED, INDEX, STEP
from detectors.settings import Setting
from detectors.signals import Signal
from detectors.stats import recent_max
from detectors.supervised import ELSE, cost_of_guessing, settled_at_guessing, supervised
from detectors.thirds import FALL, LEAST, with_fall
from detectors.verdict import HeldBack, verdicts

EVERY, MOST = 5, 200  # points between two verdicts, and of a third
FEW, MANY, EPOCHS = 20, 40, 10  # points of a gradient of zero; points or epochs of a run that is over
GRADIENT = Signal.GRAD_NORM, First(Signal.GRAD_NORM)
CLASSES, NEAR = (Setting.NUM_CLASSES, Setting.VOCAB_SIZE), 0.015  # how far a loss may be from guessing
FLAT = "loss has not moved for {lasted}: {now:.4g}, {start:.4g} at the start"
CUT, SLOW = ("O3", "O21", "O4", "O2", "O1"), ("O7", "O12", "O1")
UNMOVED = ("O1", "O2", "O3", "O7", "O21", "O4", "L8", "O5", "O12", "O16", "L2", "GV")
GUESSES = ("O1", "O7", "L8", "O2", "O3", "O4", "O5", "O21", "O12", "GV")
APPLIED = ("O2", "O7", "O1", "L8", "O4", "O5", "O12", "O16", "L2")  # a gradient that changes nothing


@detector(
    judges=(Signal.LOSS,),
    uses=(*GRADIENT, Signal.LEARNING_RATE, Signal.TOTAL_STEPS, Signal.EPOCH, *ELSE),
    settings=CLASSES,
    history=History(recent=MOST, head=MOST, coarse=True),
    every=EVERY,
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        **FALL,
        "gradient": Measure("gradient norm now", Unit.NONE),
        "grad_norm_first": Measure("gradient norm at the start", Unit.NONE),
        "chance": Measure("cost of guessing", Unit.SAME),
    },
    variants={
        "zero": Variant("loss is exactly 0 from the first point on", ("O15", "O16", "L2", "O3")),
        "no-gradient": Variant(FLAT + "; the gradient norm is zero", CUT, (CRITICAL,)),
        "crawling": Variant("loss fell by only {fall:.2%} in {lasted}, to {now:.4g}", SLOW, (INFO, WARNING)),
        "at-chance": Variant("loss is {now:.4g} after {lasted}; guessing costs {chance:.4g}", GUESSES),
        "gradient-without-effect": Variant(
            FLAT + "; the gradient norm is {gradient:.2g}", APPLIED, (INFO, WARNING)
        ),
        "unmoved": Variant(FLAT, UNMOVED, (INFO, WARNING)),
    },
)
def flat_loss_at_init(
    points: pl.LazyFrame,
    *,
    least_share: Annotated[float, "share of the planned steps before a loss at guessing is told"] = 0.15,
    least_steps: Annotated[int, "steps before that where the planned number is unknown"] = 300,
    patient_steps: Annotated[int, "steps before any other flat loss is told where no plan is known"] = 4000,
    least_fall: Annotated[float, "share of the start by which a loss must fall to have moved"] = 0.02,
    doubtful_fall: Annotated[float, "more of it at a level of guessing, and once the run is over"] = 0.01,
) -> pl.LazyFrame:
    """See the module's page."""
    plan, trained, rows = pl.col(Signal.TOTAL_STEPS), pl.col("trained"), pl.col(INDEX) + 1
    start, now, most, chance, gradient = (pl.col(n) for n in ("start", "now", "most", "chance", "gradient"))
    context = points.with_columns(warms_up=warms_up(MOST), gradient=recent_max(pl.col(Signal.GRAD_NORM), FEW))
    measured = with_fall(context, most=MOST, every=EVERY)
    measured = measured.with_columns(chance=cost_of_guessing(now, near=NEAR, settings=CLASSES))
    no_gradient, wait = gradient == 0, (least_share * plan).fill_null(least_steps)
    many = pl.any_horizontal(rows >= MANY, trained >= least_steps, pl.col(Signal.EPOCH) >= EPOCHS)
    over = pl.col(ENDED) & many.fill_null(False) & (plan.is_null() | (trained >= wait))
    guesses = pl.max_horizontal((level / chance - 1).abs() for level in (start, now)) < NEAR
    bound = least_fall + doubtful_fall * (over.cast(pl.Int8) + guesses.cast(pl.Int8))
    stands = ~pl.col("came_back") & (guesses | (pl.col("still") & (pl.col("least") > -bound)))
    late = over | (trained >= (2 * least_share * plan).fill_null(patient_steps))
    settled, zero = late & settled_at_guessing(CLASSES), (start == 0) & (now == 0)
    flat = settled | ((guesses | no_gradient | late) & stands & (most < bound))
    told = zero | over | (trained >= pl.when(most < least_fall / 4).then(wait / 2).otherwise(wait))
    return verdicts(
        measured,
        judged=supervised(rows >= LEAST)
        | {HeldBack.RESUMED: start.is_not_null(), HeldBack.RANGE: start >= 0, HeldBack.EARLY: told}
        | {HeldBack.WARM_UP: ~(pl.col("warms_up") & (flat | pl.col("crawls")))},
        found={
            "zero": zero,
            "no-gradient": flat & no_gradient,
            "crawling": pl.col("crawls"),
            "at-chance": flat & (settled | (guesses & gradient.is_null())),
            "gradient-without-effect": flat & gradient.is_not_null(),
            "unmoved": flat,
        },
        lasts=~pl.col("fell"),
        severities={WARNING: flat & (settled | guesses | over | (most < least_fall / 2))},
        onset=pl.col(STEP) - trained,
    )
