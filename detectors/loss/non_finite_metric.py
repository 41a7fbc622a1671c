"""A loss or a gradient norm is NaN or infinite.

## What it catches
A loss that is not finite, of training or evaluation: one point as a warning, two successive ones as critical.
One evaluation beside a training loss, or that of preferences, that goes on is info, unless the run ends so.
A gradient norm that is not finite at two successive points, or at twenty where a scaler skips such steps;
while the loss goes on it is info below twenty, since such steps were skipped. A loss that falls to exactly 0
and stays there for ten points, since Hugging Face's Trainer leaves NaN out of its mean. Of all other metrics,
known or not, it tells of those that break first: a loss or a correlation, by its name, that is not finite at
three successive points, and any other number at ten. That is a warning, and critical once it has lasted for
fifty more.

## Why it matters
A weight that is NaN never recovers: every later step is lost, and every later checkpoint as well.

## What to do
Stop, and go back to the last checkpoint before. Run the next steps with
`torch.autograd.set_detect_anomaly(True)` and look which operation is named. If the loss rose before, clip the
gradient norm and lower the learning rate. If it came from nowhere, look at the batch: empty samples, labels
that are all masked, a division or a logarithm of zero.

## When it is wrong
A single NaN that recovers is one bad batch as a rule. A loss that was never finite is a placeholder where
another tag of the same meaning is finite; hence it is judged from its second point on. An evaluation metric
that is NaN by definition (a class that does not occur) is not read as a loss. A loss of exactly 0 is healthy
where the rewards of a group are equal, hence it is not looked for beside rewards; and so is that of a loss
with a margin, which had fallen below 2 % of its start before, or to 0 three times shortly before. Nor is it
told where held-out losses are finite and move meanwhile: the weights are sound, and it is the number that is
wrong.

## Source
Catalogue GE-nan, A-nan-explode, A-nan-data. That Trainer filters NaN out of its loss is in
`TrainingArguments.logging_nan_inf_filter`, on by default. No noise makes a number infinite.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.schema import ENDED, RAW, SERIES, SIGNAL, STEP, VALUE, Every
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    in_a_row,
    is_of,
    recent_max,
    seen_grain,
    seen_max,
    seen_min,
    start_value,
)
from sentinel.detectors.verdict import SkipReason, verdicts

NAN = "GE-nan", "A-nan-debug"
GRADIENT = "the gradient norm has been {seen} for {needed} points"
ZEROS = "the loss fell from {least:.4g} to exactly 0 and stays there, as if its mean left NaN out"
BAD = CRITICAL, WARNING  # the latter as long as it is a single point
FOUND = *BAD, INFO  # the last of one evaluation
BROKEN = (*NAN, "A-nan-data", "A-nan-explode", "O13", "N-loss-part-overflow")
GRAINS = 10  # last digits of a log, above which a loss is not about to be rounded to 0
REACH = 50  # points in which an ordinary loss is looked for
GONE = 0.02  # of its first value, at which a loss is near 0 anyway
HEALED = 3  # zeros among them that other numbers followed
NORMS = 20  # points whose median is the norm before
MIN_NORMS = 3  # of them that suffice
TRAINED = Signal.LOSS, Signal.PREFERENCE_LOSS  # of which a run has one
PLACES = Signal.LOSS, Signal.EVAL_LOSS  # losses that a framework may log twice, once as a placeholder


@detector(
    judges=(
        *(Signal.LOSS, Signal.EVAL_LOSS, Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_LOSS),
        *(Signal.LOSS_PART, Signal.EVAL_LOSS_PART, Signal.GRAD_NORM, Signal.OTHER_METRIC),
    ),
    uses=(Signal.LOSS_SCALE, Signal.REWARD, *TRAINED, *map(Every, (*PLACES, Signal.LOSS_PART))),
    history=History(recent=REACH, head=REACH),
    non_finite=True,
    at_end=True,
    maturity=Maturity.STABLE,
    hold=1,  # no noise makes a number infinite
    cause=Cause.NUMERICS,
    # A loss that is not a number has no shape, no gradient and no evaluation any more. Its policy answers
    # with noise, and a program that meets the numbers ends.
    inhibits=(
        *(Cause.LOSS_SHAPE, Cause.DIVERGENCE, Cause.NO_GRADIENT, Cause.GRADIENT_SIZE, Cause.EVALUATION),
        *(Cause.POLICY, Cause.REWARD, Cause.CRASH),
    ),
    evidence={
        "seen": Measure("logged value", Unit.TEXT),
        "last": Measure("last finite value", Unit.SAME),
        "before": Measure("median before it", Unit.SAME),
        "part": Measure("largest part of the loss", Unit.NONE),
        "part_before": Measure("largest part of the loss before", Unit.NONE),
        "needed": Measure("points that tell", Unit.POINTS),
        "least": Measure("lowest value before", Unit.SAME),
        **logged(Signal.LOSS),
    },
    variants={
        "gradient": Variant(GRADIENT, (*NAN, "A-nan-explode", "A-nan-data"), (CRITICAL, INFO)),
        "evaluation": Variant(
            "{tag} has been {seen} from the start, while the training loss is {loss:.4g}",
            ("A-nan-data", *NAN),
            BAD,
        ),
        "never": Variant(
            "{tag} has been {seen} from the start", (*NAN, "A-nan-data", "N-nan-first-backward"), BAD
        ),
        "broken": Variant("{tag} is {seen}", BROKEN, FOUND),
        "zeros": Variant(ZEROS, (*NAN, "A-nan-data"), (CRITICAL,)),
    },
)
def non_finite_metric(
    points: pl.LazyFrame,
    *,
    scaled_points: Annotated[int, "gradient norms that are not finite in a row beside a loss scaler"] = 20,
    zero_points: Annotated[int, "losses of exactly 0 in a row, after an ordinary one"] = 10,
    ordinary: Annotated[float, "a loss above this is not rounded to 0 in a log of four digits"] = 0.01,
) -> pl.LazyFrame:
    value = pl.col(VALUE)
    bad = value.is_null()
    scales = pl.col(Signal.LOSS_SCALE).is_not_null()
    parts = pl.col(Every(Signal.LOSS_PART).column).list
    held_out = pl.col(Every(Signal.EVAL_LOSS).column).list.max()
    measured = points.with_columns(
        positive=pl.when(value != 0).then(value.abs()), part=pl.max_horizontal(parts.max(), -parts.min())
    ).with_columns(
        twice=in_a_row(bad, 2),
        needed=pl.when(scales).then(scaled_points).otherwise(2),
        lasting=pl.when(scales).then(in_a_row(bad, scaled_points)).otherwise(in_a_row(bad, 2)),
        # The rows before them are still at hand, of which the last ones may be rounded.
        zeros=in_a_row(value == 0, zero_points)
        & (recent_max(value.abs(), REACH, at_least=1) > 0)
        & (_healed_zeros() < HEALED)
        & (_usual(zero_points) > GONE * start_value(VALUE).abs()),
        least=seen_min("positive", REACH, REACH),
        last=value.forward_fill(REACH - 1).over(SERIES),
        # The size of what has either sign, such as a policy's loss, says nothing.
        before=pl.when(value.rolling_min(NORMS, min_samples=MIN_NORMS).shift(1).over(SERIES) > 0).then(
            value.rolling_median(NORMS, min_samples=MIN_NORMS).shift(1).over(SERIES)
        ),
        part_before=pl.col("part").rolling_median(NORMS, min_samples=MIN_NORMS).shift(1).over(SERIES),
        seen=pl.col(RAW).cast(pl.String),
        moves=(held_out != held_out.shift(1)).over(SERIES).cast(pl.Float64),
    )
    is_gradient = is_of(Signal.GRAD_NORM)
    gradient = is_gradient & bad & pl.col("lasting")
    broken = ~is_gradient & bad
    least_ordinary = pl.max_horizontal(ordinary, GRAINS * seen_grain(VALUE, REACH, REACH))
    from_ordinary = (pl.col("least") >= least_ordinary) & pl.col(Signal.REWARD).is_null()
    evaluates = (recent_max(pl.col("moves"), zero_points, at_least=1) > 0).fill_null(value=False)
    zeros = pl.col("zeros") & from_ordinary & is_of(Signal.LOSS) & ~evaluates
    sound = pl.coalesce(TRAINED) != 0
    of_evaluation = pl.col(SIGNAL).is_in([Signal.EVAL_LOSS, Signal.EVAL_LOSS_PART])
    is_alone = (of_evaluation & sound & ~pl.col("twice") & ~pl.col(ENDED)).fill_null(False)
    never = broken & seen_max(VALUE, REACH, REACH).is_null() & ~is_of(Signal.OTHER_METRIC)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: ~never | has_points(2) | pl.col(ENDED),
            SkipReason.OTHER_TAG: ~(never & _is_placeholder()),
        },
        found={
            "gradient": gradient,
            "evaluation": never & of_evaluation & sound,
            "never": never,
            "broken": broken,
            "zeros": zeros,
        },
        lasts=bad | (is_of(Signal.LOSS) & (value == 0)),
        # Steps whose gradient is not finite are skipped as long as the loss goes on, which says as well that
        # the weights with which one evaluation overflowed are sound.
        severities={
            WARNING: ~(pl.col("twice") | is_alone) | (is_of(Signal.OTHER_METRIC) & ~in_a_row(bad, REACH)),
            INFO: sound & pl.when(is_gradient).then(~in_a_row(bad, scaled_points)).otherwise(is_alone),
        },
        onset=pl.when(zeros).then(pl.col(STEP).shift(zero_points - 1).over(SERIES)),
    )


def _healed_zeros() -> pl.Expr:
    """Return how many zeros among the last rows were followed by another number: a loss with a margin is 0
    now and then, and a weight that is NaN never recovers.
    """
    value = pl.col(VALUE)
    healed = (value != 0) & (value.shift(1).over(SERIES) == 0)
    return healed.fill_null(value=False).cast(pl.Int32).rolling_sum(REACH, min_samples=1).over(SERIES)


def _usual(zeros: int) -> pl.Expr:
    """Return what the loss was before so many zeros, as a rule."""
    return pl.col(VALUE).abs().rolling_median(REACH - zeros, min_samples=1).shift(zeros).over(SERIES)


def _is_placeholder() -> pl.Expr:
    """Return whether another number of the same meaning is finite."""
    return pl.any_horizontal(
        is_of(signal) & (pl.col(Every(signal).column).list.drop_nulls().list.len() > 0) for signal in PLACES
    ).fill_null(False)
