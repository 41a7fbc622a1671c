"""The calls of a policy's tools fail more and more while its reward falls.

## What it catches
A median share of failed calls over the last ten points that is 0.2 above the median of the fifty points
before, while the reward lies below nine tenths of what it was then. It is over once the share is less than
0.1 above it.

## Why it matters
A sandbox or a search engine that is down answers with an error, and the reward of that answer is zero. The
policy did nothing wrong, but learns that calling the tool does not pay, and stops calling it.

## What to do
Read the text of failed calls. Timeouts, connections and limits of rate are the tool's fault: mend the
service, bound the calls that run at a time, repeat a failed call, and leave answers with such a failure out
of the update. If calls have become rare, go back to a checkpoint from before.

## When it is wrong
A policy that begins to use a tool makes malformed calls at first; the reward does not fall with those. A
harder part of the data may fail more often and earn less as well.

## Source
Catalogue N-tool-failures. TRL logs the share of the calls that raised an error as `tools/failure_frequency`.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import now_and_then, recent_quantile
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 10  # points of the present level
BEFORE = 50  # points before those
LEAST = 20  # of them
LOW = 0.1  # quantile of the rewards before: a fall below it is no noise of one point


@detector(
    judges=(Signal.TOOL_FAILURE_SHARE,),
    uses=(Signal.REWARD,),
    history=History(recent=NOW + BEFORE),
    cause=Cause.POLICY,
    inhibits=(Cause.REWARD,),  # what the tool does not give earns nothing
    evidence={
        "level": Measure("failed calls over the last 10 points", Unit.SHARE),
        "before": Measure("failed calls over the 50 points before", Unit.SHARE),
        "reward_level": Measure("reward now", Unit.NONE),
        "reward_before": Measure("reward before", Unit.NONE),
        "reward_low": Measure("reward before, lower end of its noise", Unit.NONE),
    },
    variants={
        "failing": Variant(
            "{level:.0%} of the calls of tools fail, {before:.0%} before, and the reward fell from "
            "{reward_before:.3g} to {reward_level:.3g}",
            ("N-tool-failures", "N-tool-loops", "R1"),
        )
    },
)
def tool_failures(
    points: pl.LazyFrame,
    *,
    more: Annotated[float, "rise of the share of failing calls that is too much"] = 0.2,
    recovered: Annotated[float, "rise below which the trouble is over"] = 0.1,
) -> pl.LazyFrame:
    level = pl.col("level")
    before = pl.col("before")
    earlier = {"skip": NOW, "at_least": LEAST}
    measured = points.with_columns(
        **now_and_then(VALUE, NOW, past={"n": BEFORE} | earlier),
        **now_and_then(Signal.REWARD, NOW, past={"n": BEFORE} | earlier, at_least=1, of="reward_"),
        reward_low=recent_quantile(LOW, Signal.REWARD, BEFORE, **earlier),
    )
    fell = pl.col("reward_level") < pl.col("reward_low")
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: before.is_not_null(), SkipReason.NOT_COMPARABLE: fell.is_not_null()},
        found={"failing": (level > before + more) & fell},
        lasts=level > before + recovered,
        above=before + more / 2,
    )
