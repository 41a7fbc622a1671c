"""The fp16 loss scale keeps falling, so steps are skipped.

## What it catches
Four halvings net within 1000 steps, after the first 500 steps in which the scaler finds its level; six, if
the scale had rested for 100 steps sooner than that. The fifth halving of a log that has a row only where the
scale changed, as DeepSpeed's, at uneven steps and at least 50 apart, at any time. A tenth of the steps
skipped. A scale that fell from hundreds or more to 1 and stays there, or below 1, which takes more halvings
than finding a level may cost.

## Why it matters
Each halving is an optimizer step that did not happen, because a gradient overflowed. One in about 2000
steps is how the scaler works. A scale in free fall means gradients that are infinite or NaN whatever the
scale: the weights no longer move, although the loss is still logged.

## What to do
Train in bf16 where the hardware has it. Otherwise keep logits, softmax and normalisation in fp32, lower
the learning rate, and look for the first layer whose gradient is not finite. Check that gradients are
unscaled before they are clipped, and that the scaler, not the optimizer, takes the step.

## When it is wrong
The level alone says nothing: healthy runs settle anywhere from 2^1 to 2^21. A scale that is always 1 (bf16,
scaler off) is quiet. A gradient that truly grows sixteenfold within 1000 steps is reported though the
scaler copes. The healthy runs that it was seen on were trained for it.

## Source
Catalogue O24, GA. Backoff by 2, growth after 2000 good steps, start at 2^16: torch.amp.GradScaler; DeepSpeed
starts at 2^16 or 2^32 and stops at 1. In healthy simulated scalers the steady rate of skips was
0.0002-0.0005, never more than two in 500 steps.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES, STEP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_max, start_value
from sentinel.detectors.verdict import SkipReason, verdicts

WINDOW_ROWS = 500  # rows that are looked back at
HALVING_STEPS = 1000  # steps, in which halvings are counted
SKIP_STEPS = 250  # steps, in which skipped ones are counted
SMALLEST_EXPONENT = -149  # the power of two of the smallest float32
RECENT_ROWS = 10  # rows in which a scale stays at 1
ORDINARY_SCALE = 256  # a scale at which scalers begin
CHANGES = 4  # rows in a row, each with half of the row before, after the first one
MIN_PAUSE_STEPS = 50  # between two of these: a scaler that finds its level halves at once again
MIN_COUNTED_STEPS = 200  # steps that suffice to tell the share of skipped ones
SKIP_MESSAGE = "{skipped:.0%} of the last {span} optimizer steps were skipped; the loss scale is {value:g}"
SKIP_ENTRIES = ("O24", "GA-bypass", "GA")


@detector(
    judges=(Signal.LOSS_SCALE,),
    uses=(Signal.SKIPPED_STEPS,),
    history=History(recent=2 * WINDOW_ROWS, head=1),  # the older half tells when the newer one had settled
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on several halvings already
    cause=Cause.SCALER,
    # A skipped step moves neither schedule nor weights, and its gradient is not finite.
    inhibits=(Cause.SCHEDULE, Cause.LOSS_SHAPE, Cause.NO_GRADIENT),
    evidence={
        "start": Measure("at the start", Unit.SAME),
        "halvings": Measure("times halved, net, in 1000 steps", Unit.COUNT),
        "skipped": Measure("optimizer steps skipped", Unit.SHARE),
        "span": Measure("looked at", Unit.STEPS),
    },
    variants={
        "exhausted": Variant(
            "the loss scale is down to {value:g}, from {start:g} at the start", SKIP_ENTRIES, (CRITICAL,)
        ),
        "skipping": Variant(SKIP_MESSAGE, SKIP_ENTRIES, (CRITICAL,)),
        "falling": Variant(
            "the loss scale was halved {halvings:.0f} times more often than doubled within 1000 "
            "steps, down to {value:g}",
            ("O24", "GA", "GA-bypass"),
        ),
    },
)
def loss_scale_collapse(
    points: pl.LazyFrame,
    *,
    calibration: Annotated[int, "steps in which the scaler may search for its level"] = 500,
    rest: Annotated[int, "steps without a change after which it has found a first level"] = 100,
    most_halvings: Annotated[int, "net halvings within 1000 steps that are too many"] = 4,
    early_halvings: Annotated[int, "the same for a level found sooner, which may still drift"] = 6,
    most_skipped: Annotated[float, "share of steps skipped that is too much"] = 0.1,
) -> pl.LazyFrame:
    scale = pl.col(VALUE)
    halvings = pl.col("halvings")
    trained = pl.col("trained")
    late = trained >= calibration
    settled = late | pl.col("found_level")
    stays_low = recent_max(scale, RECENT_ROWS) <= 1
    chain = pl.col("chain")
    exhausted = (pl.col("start") >= ORDINARY_SCALE) & ((scale < 1) | stays_low)
    measured = (
        points.with_columns(
            start=start_value(VALUE),
            trained=pl.col(STEP) - start_value(STEP),
            level=scale.clip(lower_bound=2.0**SMALLEST_EXPONENT).log(2),
        )
        .with_columns(found_level=recent_max(_rests(rest) & (trained >= rest), WINDOW_ROWS, at_least=1))
        .with_columns(chain=_halves_row_by_row())
        .with_columns(
            halvings=pl.when("chain").then(float(CHANGES)).otherwise(_halvings(settled)),
            late_halvings=_halvings(late),
            span=_gained(STEP, settled),
            skipped=_gained(Signal.SKIPPED_STEPS, settled) / _gained(STEP, settled),
        )
    )
    return verdicts(
        measured,
        judged={SkipReason.CALIBRATION: settled | exhausted | chain},
        found={
            "exhausted": exhausted,
            "skipping": (pl.col("span") >= MIN_COUNTED_STEPS) & (pl.col("skipped") >= most_skipped),
            "falling": (pl.col("late_halvings") >= most_halvings) | (halvings >= early_halvings) | chain,
        },
        below=scale * 2 ** (halvings - 1),
    )


def _rests(steps: int) -> pl.Expr:
    """Return whether the scale has not changed for so many steps."""
    scale = pl.col(VALUE)
    is_constant = _lowest(scale, steps) == -_lowest(-scale, steps)
    return is_constant & (scale == scale.shift(1).over(SERIES))


def _halves_row_by_row() -> pl.Expr:
    """Return whether each of the last rows has half of the scale of the one before, some steps later."""
    fell = pl.col("level") - pl.col("level").shift(1).over(SERIES) == -1
    pause = pl.col(STEP) - pl.col(STEP).shift(1).over(SERIES)
    paused = pause >= MIN_PAUSE_STEPS
    slow = (fell & paused).cast(pl.Int64).rolling_sum(CHANGES, min_samples=CHANGES).over(SERIES)
    # A log of each 100th step is regular.
    irregular = pause != pl.col(STEP).diff().shift(1).over(SERIES)
    steps = pl.col(STEP) - pl.col(STEP).shift(CHANGES).over(SERIES)
    uneven = irregular.cast(pl.Int64).rolling_sum(CHANGES - 1, min_samples=1).over(SERIES) > 0
    return ((slow == CHANGES) & (steps <= HALVING_STEPS) & uneven).fill_null(False)


def _halvings(settled: pl.Expr) -> pl.Expr:
    """Return how often the scale was halved, net, since its highest level once it had settled."""
    highest = -_lowest(pl.when(settled).then(-pl.col("level")), HALVING_STEPS)
    return highest - pl.col("level")


def _gained(count: str, settled: pl.Expr) -> pl.Expr:
    """By how much a count has grown lately, once the scale had settled."""
    return pl.col(count) - _lowest(pl.when(settled).then(count), SKIP_STEPS)


def _lowest(value: pl.Expr, steps: int) -> pl.Expr:
    """Return the smallest value of the last so many steps, within `WINDOW_ROWS` rows."""
    by_step = value.rolling_min_by(STEP, f"{steps}i")
    return pl.max_horizontal(by_step, value.rolling_min(WINDOW_ROWS, min_samples=1)).over(SERIES)
