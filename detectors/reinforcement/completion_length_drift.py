"""Completions or their turns grow or shrink many times over, and the reward does not follow.

## What it catches
A median completion length over the last ten points of more than twice, or less than a quarter, of that of the
first twenty, while the reward lies below nine tenths of its first values; or of more than five times it while
the reward is no higher than three in four of its first values. Turns and calls of tools count alike where
they have more than doubled, to 4 at least.

## Why it matters
Length is the first thing that a policy plays with. Longer completions cost compute and run into the cap; very
short ones say that an empty answer is the safest. With a falling reward neither is reasoning.

## What to do
Read samples. Check that a reward cannot be earned by length or by saying nothing, and that the end-of-text
token is rewarded when it ends a good answer. Then a length penalty, a lower learning rate or a larger KL
coefficient.

## When it is wrong
Reasoning models lengthen their answers while the reward rises; that is not reported. A change of the prompts
changes lengths as well.

## Source
Catalogue A-mean-length, R1 and N-tool-loops. The lengths of healthy public runs moved by less than half of
their start where the reward did not rise.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE, Every
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    is_of,
    now_and_then,
    recent_max,
    recent_median,
    start_median,
    start_quantile,
)
from sentinel.detectors.strictness import Strictness
from sentinel.detectors.verdict import SkipReason, verdicts

PARTS = Signal.REWARD_FUNCTION, Signal.TASK_REWARD
NOW = 10  # points of the present level
START = 20  # points of the start, whose rewards scatter
FIRST = 3  # points of the very start: answers may shrink within a few steps
PAYS = 0.05  # a reward function below this pays nothing
FULL = 0.9  # and one above this pays all that it has
HIGH = 0.75  # quantile of the first rewards that a reward has to exceed to be higher
LOW = 0.1  # quantile of the first rewards: a fall below it is no noise of one point


@detector(
    judges=(Signal.COMPLETION_LENGTH, Signal.TURNS),
    uses=(Signal.REWARD, Signal.CLIPPED_COMPLETION_RATIO, *map(Every, PARTS)),
    history=History(recent=START, head=START),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,
    inhibits=(Cause.POLICY, Cause.REWARD),  # answers of another length meet the cap, and earn other rewards
    evidence={
        "level": Measure("median now", Unit.SAME),
        "start": Measure("median at the start", Unit.SAME),
        "reward_level": Measure("reward now", Unit.NONE),
        "reward_start": Measure("reward at the start", Unit.NONE),
        "reward_low": Measure("reward at the start, lower end of its noise", Unit.NONE),
        "reward_high": Measure("reward at the start, upper quartile", Unit.NONE),
        "first": Measure("median of the first 3 points", Unit.SAME),
        "full": Measure("highest mean of a reward function", Unit.NONE),
        "paid": Measure("reward functions that pay now", Unit.COUNT),
        "paid_first": Measure("reward functions that paid at the start", Unit.COUNT),
        "capped": Measure("completions cut off at the length cap", Unit.SHARE),
    },
    variants={
        "tokens": Variant(
            "completions went from {start:.0f} to {level:.0f} tokens while the reward went from "
            "{reward_start:.3g} to {reward_level:.3g}",
            (
                *("A-mean-length", "R1", "A-clipped-ratio", "N-tool-loops", "N-entropy-explosion"),
                "A-entropy-collapse",
            ),
        ),
        "cheap": Variant(
            "completions shrank from {first:.0f} to {level:.0f} tokens; one reward function pays {full:.2g}, "
            "and of {paid_first:.0f} that paid at the start {paid:.0f} still do",
            ("N-format-reward", "R1", "A-rewards-mean"),
        ),
        "turns": Variant(
            "turns grew from {start:.2g} to {level:.2g} while the reward fell from {reward_start:.3g} to "
            "{reward_level:.3g}",
            ("N-tool-loops", "N-tool-failures", "A-mean-length"),
        ),
    },
    stricter=Strictness(larger=("longer", "far_longer", "many_turns"), smaller=("shorter",)),
)
def completion_length_drift(
    points: pl.LazyFrame,
    *,
    longer: Annotated[float, "multiple of the first length that counts as far longer"] = 2.0,
    far_longer: Annotated[float, "the same where the reward need only be no higher"] = 5.0,
    shorter: Annotated[float, "share of the first length that counts as far shorter"] = 0.25,
    cheap: Annotated[float, "share of the first length below which an answer earns only its form"] = 0.35,
    many_turns: Annotated[float, "turns of an answer below which longer answers are no loop"] = 4.0,
) -> pl.LazyFrame:
    level = pl.col("level")
    start = pl.col("start")
    turns = is_of(Signal.TURNS)
    fell = pl.col("reward_level") < pl.col("reward_low")
    grown = level > longer * start
    in_vain = (level > far_longer * start) & (pl.col("reward_level") <= pl.col("reward_high"))
    shrunk = level < shorter * start
    parts = pl.concat_list(pl.col(Every(part).column).fill_null([]) for part in PARTS)
    pay = parts.list.eval(pl.element() > PAYS).list.sum()
    cheaper = (pl.col("paid") < pl.col("paid_first")) & (pl.col("full") > FULL)
    return verdicts(
        points.with_columns(
            first=start_median(VALUE, FIRST),
            full=parts.list.max().rolling_median(NOW).over(SERIES),
            paid=recent_max(pay, NOW),
            paid_first=pay.filter(pl.col(INDEX).is_between(0, FIRST)).max().over(SERIES),
            **now_and_then(VALUE, NOW, start=START),
            **now_and_then(Signal.REWARD, START, start=START, at_least=NOW, of="reward_"),
            reward_low=start_quantile(LOW, Signal.REWARD, START),
            reward_high=start_quantile(HIGH, Signal.REWARD, START),
            capped=recent_median(Signal.CLIPPED_COMPLETION_RATIO, NOW, at_least=1),
        ),
        judged={
            SkipReason.FEW_POINTS: has_points(START + NOW),
            SkipReason.NOT_COMPARABLE: fell.is_not_null(),
        },
        found={
            "tokens": ~turns & (in_vain | (fell & (grown | shrunk))),
            "cheap": ~turns & cheaper & (level < cheap * pl.col("first")),
            "turns": turns & fell & grown & (level >= many_turns),
        },
        above=pl.when(level > start).then(longer**0.5 * start),
        below=pl.when(level < start).then(shorter**0.5 * start),
    )
