"""The training loss fell and then stands still while the learning rate is high.

## What it catches
A loss whose last third stands where the third before it stood, within 1.25 % and without a certain fall,
after it had fallen at the start. And a loss that is the same in all digits for ten points, above its best:
a network that died.

## Why it matters
The run learned something and has stopped. Where it stopped far above what such a task allows, the rest of
the budget buys nothing.

## What to do
Compare the level with what is known for the task. Look for a floor: two softmaxes in a row, labels that
contradict each other, a target that is averaged. Raise the learning rate two- to fivefold, or check that it
is not clipped away. If the loss repeats itself to the last digit, look for units that died and outputs that
saturate.

## When it is wrong
A task that is learned is at rest, too. Hence a plateau below half of the loss at the start is shown and
sent to nobody, as is one whose run has no plan or is not yet half way through it, unless it rests at the
cost of guessing. Slow learning in the noise of small batches looks flat; where the error of the comparison
allows for a fall above 1.25 % nothing is said.

## Source
Catalogue A-sft-plateau, O7, O12, O25. Thirds with errors corrected for autocorrelation, as in
`flat-loss-at-init`; healthy runs, real and simulated, that keep above half of their start show no such rest
beyond the first fifth of their plan.
"""

from typing import Annotated

import numpy as np
import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.evidence import Measure, Unit
from detectors.schema import ENDED, INDEX, STEP, VALUE
from detectors.settings import Setting
from detectors.signals import Signal
from detectors.stats import (
    EARLY,
    Floats,
    last_values,
    mean_level,
    resting,
    seen_max,
    seen_min,
    start_value,
    with_arrays,
)
from detectors.verdict import verdicts

EVERY = 5
MOST = 200  # points of a third
AT_END = 20  # points of a run that is over
STUCK = 10  # points that are equal in all digits
DIGITS = 5
NEAR = 0.01  # of a level of guessing
SURELY = 1.645  # standard errors: one-sided 95 %
NOT_SUPERVISED = (Signal.REWARD, Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_MARGIN)


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.LEARNING_RATE, Signal.TOTAL_STEPS, *NOT_SUPERVISED),
    settings=(Setting.NUM_CLASSES,),
    history=History(recent=2 * MOST, head=MOST, coarse=True),
    every=EVERY,
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        "start": Measure("at the start", Unit.SAME),
        "now": Measure("now", Unit.SAME),
        "change": Measure("change over the plateau", Unit.SHARE),
        "error": Measure("standard error of the change", Unit.SHARE),
        "since": Measure("on the plateau since", Unit.STEP),
        "share": Measure("share of the start that is left", Unit.SHARE),
        "rate_share": Measure("learning rate, of its peak", Unit.SHARE),
        "best": Measure("best so far", Unit.SAME),
        "rows": Measure("points with the very same value", Unit.COUNT),
    },
    variants={
        "stuck": Variant(
            "loss has been {value:.4g} to the last digit for {rows} points; its best was {best:.4g}",
            ("O25", "GV", "O3"),
        ),
        "guessing": Variant(
            "loss has stood at {now:.4g} since step {since}, which is what guessing costs",
            ("O25", "O19", "V6", "A-sft-plateau"),
        ),
        "high": Variant(
            "loss has stood at {now:.4g} since step {since}, still {share:.0%} of its start, with the"
            " learning rate at {rate_share:.0%} of its peak",
            ("A-sft-plateau", "O7", "O12", "O19"),
        ),
        "rests": Variant("loss has stood at {now:.4g} since step {since}", ("A-sft-plateau", "O12", "O7")),
    },
)
def loss_plateau(
    points: pl.LazyFrame,
    *,
    least_points: Annotated[int, "points before anything is said"] = 40,
    most_change: Annotated[float, "share of the loss by which it may still change"] = 0.0125,
    least_rate: Annotated[float, "share of the peak that the learning rate has to have"] = 0.2,
    least_share: Annotated[float, "share of the loss at the start above which a plateau is a warning"] = 0.5,
    least_progress: Annotated[float, "share of the plan before a plateau is a warning"] = 0.5,
) -> pl.LazyFrame:
    """See the module's page."""
    rate, plan = pl.col(Signal.LEARNING_RATE), pl.col(Signal.TOTAL_STEPS)
    whole = pl.col("coarse_mean").list
    context = points.with_columns(
        third_before=whole.get(whole.len() // 3, null_on_oob=True),
        best=pl.min_horizontal(seen_min(VALUE, MOST, MOST), pl.col("coarse_low").list.min()),
        rows=resting(pl.col(VALUE).round_sig_figs(DIGITS), STUCK),
        rate_share=rate / seen_max(Signal.LEARNING_RATE, MOST, MOST),
        progress=(pl.col(STEP) - start_value(STEP)) / plan,
    )
    measured = with_arrays(context, MEASURES, _thirds, every=EVERY, at_least=2 * STUCK)
    start, now, change, error = (pl.col(n) for n in ("start", "now", "change", "error"))
    same_before = ((pl.col("third_before") / now - 1).abs() < 2 * most_change).fill_null(True)
    rests = (
        (change.abs() < error.clip(most_change / 8))
        & (change.abs() + SURELY * error < most_change)
        & (start > 1.05 * now)
        & same_before
        & ((pl.col(INDEX) >= least_points) | (pl.col(ENDED) & (pl.col(INDEX) + 1 >= AT_END)))
        & (pl.col("rate_share").fill_null(1) >= least_rate)
    )
    stuck = (pl.col("rows") == STUCK) & (pl.col("best") < 0.99 * pl.col(VALUE)) & (pl.col("best") > 0)
    guessing = (now / pl.col(Setting.NUM_CLASSES).log() - 1).abs() < NEAR
    is_high = (now > least_share * start) & (pl.col("progress") >= least_progress)
    return verdicts(
        measured.with_columns(share=now / start, since=pl.col("since").cast(pl.Int64)),
        judged=pl.all_horizontal(start > 0, *(pl.col(s).is_null() for s in NOT_SUPERVISED)),
        found={
            "stuck": stuck,
            "guessing": rests & guessing,
            "high": rests & is_high & rate.is_not_null(),
            "rests": rests,
        },
        severities={Severity.WARNING: stuck | is_high | guessing},
        otherwise=Severity.INFO,
        lasts=(change.abs() < 2 * most_change) & (start > 1.05 * now),
        onset=pl.when(stuck).then(None).otherwise(pl.col("since")).cast(pl.Int64),
    )


MEASURES = ("start", "now", "change", "error", "since")


def _thirds(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """The last third beside the one before it, of at most ``MOST`` points each, and the first points."""
    values, row, begin = frame[VALUE].to_numpy(), due["row"].to_numpy(), due["begin"].to_numpy()
    third = np.minimum((due[INDEX].to_numpy() + 1) // 3, MOST)
    before, now = (mean_level(last_values(values, end, MOST), third) for end in (row - third, row))
    return {
        "start": last_values(values, begin + EARLY[0] - 1, EARLY[0]).mean(axis=1),
        "now": now.mean,
        "change": 1 - now.mean / before.mean,
        "error": np.hypot(before.error, now.error) / np.abs(before.mean),
        "since": frame[STEP].to_numpy()[row - 2 * third + 1].astype(float),
    }
