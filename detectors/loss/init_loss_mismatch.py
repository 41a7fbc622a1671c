"""The first rows contradict what is certain of them before anything is learned.

## What it catches
Invariants of the start, within the first 50 points. A classifier's loss that is negative, or 1.5 times the
logarithm of the number of classes or more. A language model's loss above the logarithm of its vocabulary
(12.5 for the largest one in use, where it is unknown). A training loss that is N times the held-out loss at
two evaluations in a row, with N the accumulation steps. A margin of preferences beyond 0.5, or a KL to the
reference above 0.1, at the very first step. A loss above 100,000 with a gradient norm above 10,000. A
gradient norm above 200 at ten points beside the usual loss of a language model, or above ten million beside
any loss below 100.

## Why it matters
The start is the one moment at which the right value is known. A loss that misses it measures something else:
a sum in place of a mean, probabilities in place of logits, labels outside of their range. The learning rate
and the clipping threshold are then wrong by the same factor.

## What to do
Pass one batch of random inputs through the untrained model and compare the loss with ln C. If it is a whole
multiple, look for a missing division by the accumulation steps or for `reduction="sum"`. If it is negative,
feed `NLLLoss` with `log_softmax`, or use `CrossEntropyLoss` on the logits. Otherwise look at the scale of
the inputs and of the last layer. Where policy and reference differ at the first step, compare their paths.

## When it is wrong
Losses that add terms, such as those of object detectors, start above ln C. Hence the rule judges only where
the log has an accuracy or a perplexity beside the loss, or where the settings are of a language model. A low
start is no finding: whoever fine-tunes begins far below ln V. A poor initialisation of the last layer costs a
lot for some steps, so a high start is info until twenty points. A sum over tokens is a choice of some, so
without accumulation it is info. Targets in raw units may be learned all the same, so such a start is info
until forty points have shown that the loss does not fall while its gradient grows. With two or three
accumulation steps a dropout may make the training loss that much larger: this is info, too. Attempts that
resume a training are left out. A similarity of two views lies between -1 and 0; it is called a classifier's
where an accuracy on held-out data stands beside it. A loss beside a KL is no cross-entropy. One that began
further above zero than it lies below is a sum with a term that may be negative.

## Source
Catalogue O16 (a negative loss), O9, G2 and N-loss-items (a multiple by the accumulation), DP12 and L8 (a
scale or labels that are wrong). ln C at the start is the first check of its convergence guide, and 12.5 is ln
262144. DPO's margin and GRPO's KL compare the policy with itself at the first step: both are 0 by definition.
A mean over tokens has gradient norms of about 1; 1,000 is that of a sum over a thousand tokens.
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.schema import INDEX, SERIES, SIGNAL, STEP, VALUE, Mean
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, in_a_row, is_of, recent_max, recent_median
from sentinel.detectors.supervised import ELSE, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts

FEW = 5  # points of which the median counts
FIRST = 50  # points that are still the start
LATE = 20  # points after which a poor initialisation has been overcome
NORMS = 10  # gradient norms that are all too large
OWN = Signal.ACCURACY, Signal.PERPLEXITY  # of the training, so of its own loss
RATES = (*OWN, Signal.EVAL_ACCURACY, Signal.EVAL_PERPLEXITY)
TOKENS = Signal.NUM_TOKENS, Signal.BATCH_TOKENS, Signal.TOKENS_PER_SECOND  # that language models count
FAMILIES = "llama", "gemma", "qwen", "mistral", "gpt", "vision-language"  # of models that write text
MAX_TOKEN_NATS = 12.5  # ln 262144, of the largest vocabulary in use
MIN_TOKEN_NATS = 0.3  # a first loss per token below this is no plausible one
MIN_STEPS = 2  # accumulation steps
SURE_STEPS = 4  # accumulation steps: dropout multiplies no loss so much
NEAR_STEPS = 0.25  # of so many steps: a ratio of two losses that is nearly theirs
NEAR_FEW_STEPS = 0.1  # the same of fewer
MAX_MARGIN = 0.5  # of a policy and itself, in nats times beta: other kernels make it 0.05
MAX_KL = 0.1  # of a policy to itself, in nats per token: other kernels make it 0.01
MAX_NORM = 200  # of the gradient of a mean over tokens
MAX_LOSS = 100  # of a loss that is scaled
ENORMOUS_NORM = 1e7  # of a gradient that no scaled loss has, not even times the scale of float16
HUGE_LOSS = 1e5  # of a regression whose targets are in raw units
HUGE_NORM = 1e4  # of its gradient
HALF = 20  # points of such a loss that are compared with as many before
FALLS = 0.9  # of a level, down to which a loss counts as one that does not fall
GROWS = 1.2  # times a gradient norm: it grows
MULTIPLE = ("N-loss-items", "O9", "G2")


class Invariant(NamedTuple):
    """What is certain of the first rows of a signal: when it is broken, and how many rows show it."""

    signal: Signal
    broken: pl.Expr
    rows: int = 1


@detector(
    judges=(Signal.LOSS, Signal.EVAL_LOSS, Signal.PREFERENCE_MARGIN, Signal.KL, Signal.GRAD_NORM),
    uses=(
        *(*RATES, *TOKENS, *ELSE, Signal.GRAD_NORM, Signal.LOSS, Mean(Signal.LOSS)),
        *(Signal.POLICY_LOSS, Signal.KL_UNKNOWN_UNIT),
    ),
    settings=(
        *(Setting.NUM_CLASSES, Setting.VOCAB_SIZE, Setting.ACCUMULATION_STEPS),
        *(Setting.MODEL_FAMILY, Setting.MAX_SEQUENCE_LENGTH),
    ),
    history=History(recent=FIRST, earlier=1),
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on five points already
    cause=Cause.LOSS_SHAPE,
    needs_consent=True,
    evidence={
        "level": Measure("median of the last five points", Unit.SAME),
        "guess": Measure("what guessing costs", Unit.SAME),
        "times": Measure("times what guessing costs", Unit.NONE),
        "of_a_step": Measure("divided by the accumulation steps", Unit.SAME),
        "ratio": Measure("training loss over held-out loss", Unit.NONE),
        Setting.ACCUMULATION_STEPS: Measure("accumulation steps", Unit.COUNT),
        **logged(Signal.LOSS, Signal.GRAD_NORM),
    },
    variants={
        "negative": Variant(
            "loss of a classifier starts below zero, at {level:.4g}; a cross-entropy cannot",
            ("O16", "O12"),
            (WARNING, CRITICAL),
        ),
        "accumulated": Variant(
            "loss of a language model starts at {level:.4g}, which no mean over tokens does; divided by the "
            "{accumulation_steps:.0f} accumulation steps it is {of_a_step:.4g}",
            MULTIPLE,
        ),
        "high": Variant(
            "loss starts at {level:.4g}, {times:.3g} times the {guess:.4g} that guessing costs",
            ("DP12", "L8", "O1", "O9", "O16", "N-loss-items"),
            (INFO, WARNING),
        ),
        "summed": Variant(
            "loss of a language model starts at {level:.4g}: it is no mean over tokens", MULTIPLE, (INFO,)
        ),
        "unscaled": Variant(
            "loss starts at {level:.3g} with a gradient norm of {grad_norm:.3g}: nothing is scaled",
            ("DP12", "L8", "GE"),
            (INFO, WARNING),
        ),
        "times-held-out": Variant(
            "the training loss is {ratio:.3g} times the held-out loss, and {accumulation_steps:.0f} steps "
            "are accumulated: it is their sum",
            MULTIPLE,
            (INFO, WARNING),
        ),
        "other-reference": Variant(
            "the reward margin is {value:.3g} at the first step: the reference is not the policy as it began",
            ("L9", "R2"),
            (INFO,),
        ),
        "far-reference": Variant(
            "the KL to the reference is {value:.3g} at the first step: the reference is not the policy as it "
            "began",
            ("A-kl", "R2"),
            (INFO,),
        ),
        "undivided": Variant(
            "the gradient norm is {value:.4g} beside a loss of {loss:.3g}, as that of a sum over tokens",
            MULTIPLE,
            (INFO,),
        ),
        "enormous": Variant(
            "the gradient norm is {value:.3g} at every point, while the loss is an ordinary one: the "
            "gradient has a wrong scale",
            ("GA", "O9", "G2", "N-loss-items", "N-sharded-norm"),
            (WARNING,),
        ),
    },
)
def init_loss_mismatch(
    points: pl.LazyFrame,
    *,
    most_times: Annotated[float, "multiple of ln C at or above which a start is too high"] = 1.5,
) -> pl.LazyFrame:
    steps = pl.col(Setting.ACCUMULATION_STEPS)
    measured = points.with_columns(
        level=recent_median(VALUE, FEW),
        highest=recent_max(pl.col(VALUE), FEW),
        began=recent_max(pl.col(VALUE), FIRST, at_least=FEW),
        lowest=-recent_max(-pl.col(VALUE), NORMS),
        guess=pl.coalesce(Setting.NUM_CLASSES, Setting.VOCAB_SIZE).log(),
        resumed=(pl.col(INDEX) < 0).any().over(SERIES),
        ratio=pl.col(Mean(Signal.LOSS).column) / pl.col(VALUE),
    ).with_columns(times=pl.col("level") / pl.col("guess"), of_a_step=pl.col("level") / steps)
    table = _invariants(most_times)
    rows = {one.signal: one.rows for one in table.values()}
    is_loss = is_of(Signal.LOSS)
    accumulates_much = steps >= SURE_STEPS
    late = recent_median(VALUE, LATE) > most_times * pl.col("guess")
    has_own_rate = pl.any_horizontal(pl.col(rate).is_not_null() for rate in OWN)
    return verdicts(
        measured,
        judged={
            SkipReason.NOT_SUPERVISED: is_of(Signal.KL)
            | is_of(Signal.PREFERENCE_MARGIN)
            | is_supervised()
            | _is_enormous(),
            SkipReason.NOT_CLASSIFIER: ~is_loss | _classifies() | _writes_text() | _is_huge(),
            SkipReason.RESUMED: ~pl.col("resumed"),
            SkipReason.FEW_POINTS: has_points(pl.col(SIGNAL).replace_strict(rows)),
            SkipReason.LATE: pl.col(INDEX) < FIRST,
        },
        found={name: is_of(one.signal) & one.broken for name, one in table.items()},
        severities={
            WARNING: pl.when(is_loss).then(late.fill_null(False) | _is_stuck()).otherwise(accumulates_much),
            CRITICAL: has_own_rate | (pl.col("level") < -1),
        },
    )


def _invariants(most_times: float) -> Mapping[str, Invariant]:
    """Return them by variant; the page has their sources."""
    level = pl.col("level")
    steps = pl.col(Setting.ACCUMULATION_STEPS)
    most_nats = (most_times * pl.col(Setting.VOCAB_SIZE).log()).fill_null(MAX_TOKEN_NATS)
    above_guessing = _writes_text() & (level > most_nats)
    is_multiple = (steps >= MIN_STEPS) & pl.col("of_a_step").is_between(MIN_TOKEN_NATS, MAX_TOKEN_NATS)
    begins = pl.col(STEP) <= 1
    usual_loss = pl.col(Signal.LOSS).is_between(0, MAX_TOKEN_NATS, closed="none")
    return {
        "negative": Invariant(
            Signal.LOSS, _classifies() & _is_below_zero() & pl.col(Signal.KL_UNKNOWN_UNIT).is_null(), FEW
        ),
        "accumulated": Invariant(Signal.LOSS, above_guessing & is_multiple, FEW),
        "high": Invariant(Signal.LOSS, _classifies() & (pl.col("times") > most_times), FEW),
        "summed": Invariant(Signal.LOSS, above_guessing, FEW),
        "unscaled": Invariant(Signal.LOSS, _is_huge(), FEW),
        "times-held-out": Invariant(Signal.EVAL_LOSS, in_a_row(_is_multiple_of_held_out(), 2), 2),
        "other-reference": Invariant(Signal.PREFERENCE_MARGIN, begins & (pl.col(VALUE).abs() > MAX_MARGIN)),
        "far-reference": Invariant(Signal.KL, begins & (pl.col(VALUE) > MAX_KL)),
        "undivided": Invariant(
            Signal.GRAD_NORM, _writes_text() & usual_loss & (pl.col("lowest") > MAX_NORM), NORMS
        ),
        "enormous": Invariant(Signal.GRAD_NORM, _is_enormous(), NORMS),
    }


def _is_enormous() -> pl.Expr:
    """Return whether gradient norms are of a size that no loss of an ordinary one has."""
    loss = pl.coalesce(Signal.LOSS, Signal.POLICY_LOSS).abs()
    return is_of(Signal.GRAD_NORM) & (pl.col("lowest") > ENORMOUS_NORM) & (loss < MAX_LOSS).fill_null(False)


def _is_below_zero() -> pl.Expr:
    """Return whether the last losses are negative, and further below zero than the first ones lay above."""
    return (pl.col("highest") < 0) & (pl.col("level") < -pl.col("began"))


def _classifies() -> pl.Expr:
    """Return whether the log has a rate beside the loss, so that the loss is a cross-entropy."""
    return pl.any_horizontal(pl.col(rate).is_not_null() for rate in RATES)


def _is_huge() -> pl.Expr:
    """Return whether loss and gradient are of a size that no scaled targets give."""
    return (pl.col("level") > HUGE_LOSS) & (pl.col(Signal.GRAD_NORM) > HUGE_NORM).fill_null(False)


def _is_stuck() -> pl.Expr:
    """Return whether the loss did not fall while its gradient grew."""

    def change(values: str) -> pl.Expr:
        return recent_median(values, HALF) / recent_median(values, HALF, skip=HALF)

    has_not_fallen = change(VALUE) > FALLS
    return (_is_huge() & has_not_fallen & (change(Signal.GRAD_NORM) > GROWS)).fill_null(False)


def _writes_text() -> pl.Expr:
    """Return whether the settings or the log are of a language model."""
    counts_tokens = pl.any_horizontal(pl.col(signal).is_not_null() for signal in TOKENS)
    family = pl.col(Setting.MODEL_FAMILY).is_in(FAMILIES).fill_null(False)
    return counts_tokens | family | (pl.col(Setting.MAX_SEQUENCE_LENGTH) > 0).fill_null(False)


def _is_multiple_of_held_out() -> pl.Expr:
    """Return whether the training loss is the held-out loss times the accumulation steps."""
    steps = pl.col(Setting.ACCUMULATION_STEPS)
    near = pl.when(steps >= SURE_STEPS).then(NEAR_STEPS).otherwise(NEAR_FEW_STEPS)
    off = (pl.col("ratio") / steps - 1).abs()
    return (steps >= MIN_STEPS) & (pl.col(VALUE) > 0) & (off < near)
