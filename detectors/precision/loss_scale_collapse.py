"""The fp16 loss scale keeps falling, so steps are skipped.

## What it catches
Four halvings net within 1000 steps once the first 500 steps, in which the scaler finds its level, are
over; a tenth of the steps skipped; a scale that fell from hundreds or more to 1 and stays there, or
below 1, which takes more than the 16 halvings that finding a level may cost.

## Why it matters
Each halving is an optimizer step that did not happen, because a gradient overflowed. One in about 2000
steps is how the scaler works. A scale in free fall means gradients that are infinite or NaN whatever the
scale: the weights no longer move, although the loss is still logged.

## What to do
Train in bf16 where the hardware has it. Otherwise keep logits, softmax and normalisation in fp32, lower
the learning rate, and look for the first layer whose gradient is not finite. Check that gradients are
unscaled before they are clipped, and that the scaler, not the optimizer, takes the step.

## When it is wrong
The level alone says nothing: healthy runs settle anywhere from 2^1 to 2^21. A scale that is always 1
(bf16, scaler off) is quiet. A gradient that truly grows sixteenfold within 1000 steps is reported
though the scaler copes.

## Source
Catalogue O24, GA. Backoff by 2, growth after 2000 good steps, start at 2^16: torch.amp.GradScaler;
DeepSpeed starts at 2^16 or 2^32 and stops at 1. In healthy simulated scalers the steady rate of skips
was 0.0002-0.0005, never more than two in 500 steps.
"""

from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.schema import INDEX, SERIES, SEVERITY, STEP, VALUE, VARIANT
from detectors.signals import Signal
from detectors.stats import first_true, recent_max, start_value

REACH = 500  # rows
SPAN = 1000  # steps


@detector(
    judges=(Signal.LOSS_SCALE,),
    uses=(Signal.SKIPPED_STEPS,),
    history=History(recent=REACH, head=1),
    maturity=Maturity.STABLE,
    cause=Cause.SCALER,
    silences=(Cause.SCHEDULE, Cause.LOSS_SHAPE),  # a skipped step moves neither schedule nor weights
    variants={
        "exhausted": Variant(
            "the loss scale is down to {value:g}, from {start:g} at the start", ("O24", "GA-bypass", "GA")
        ),
        "skipping": Variant(
            "{skipped:.0%} of the last {span} optimizer steps were skipped; the loss scale is {value:g}",
            ("O24", "GA-bypass", "GA"),
        ),
        "falling": Variant(
            "the loss scale was halved {halvings:.0f} times net within 1000 steps, down to {value:g}",
            ("O24", "GA", "GA-bypass"),
        ),
    },
)
def loss_scale_collapse(
    points: pl.LazyFrame,
    *,
    calibration: Annotated[int, "steps in which the scaler may search for its level"] = 500,
    most_halvings: Annotated[int, "net halvings within 1000 steps that are too many"] = 4,
    most_skipped: Annotated[float, "share of steps skipped that is too much"] = 0.1,
) -> pl.LazyFrame:
    """See the module's page."""
    scale, step, start = pl.col(VALUE), pl.col(STEP), pl.col("start")
    settled = pl.col("trained") >= calibration
    levels = points.with_columns(
        start=start_value(VALUE),
        trained=step - start_value(STEP),
        level=scale.clip(lower_bound=2.0**-149).log(2),
    ).with_columns(
        highest=-_lowest(-pl.when(settled).then(pl.col("level"))),
        skipped=pl.col(Signal.SKIPPED_STEPS) - _lowest(pl.when(settled).then(pl.col(Signal.SKIPPED_STEPS))),
        span=step - _lowest(pl.when(settled).then(step)),
        lately=recent_max(scale, 10),
    )
    judged = levels.with_columns(
        halvings=pl.col("highest") - pl.col("level"), skipped=pl.col("skipped") / pl.col("span")
    )
    variants = {
        "exhausted": (start >= 256) & ((scale < 1) | (pl.col("lately") <= 1)),
        "skipping": (pl.col("span") >= 200) & (pl.col("skipped") >= most_skipped),
        "falling": pl.col("halvings") >= most_halvings,
    }
    variant = pl.col(VARIANT)
    severities = {Severity.CLEAN: variant.is_null(), Severity.WARNING: variant == "falling"}
    severity = first_true(severities, otherwise=Severity.CRITICAL)
    found = judged.with_columns(first_true(variants).alias(VARIANT)).filter(variant.is_not_null() | settled)
    evidence = ("start", "halvings", "skipped", "span")
    return found.select(SERIES, INDEX, STEP, VARIANT, VALUE, severity.alias(SEVERITY), *evidence)


def _lowest(value: pl.Expr) -> pl.Expr:
    """Smallest value of the last `SPAN` steps, within `REACH` rows."""
    by_step = value.rolling_min_by(STEP, f"{SPAN}i")
    return pl.max_horizontal(by_step, value.rolling_min(REACH, min_samples=1)).over(SERIES)
