"""Memory grows evenly and does not level off: something is kept that ought to be let go.

## What it catches
Memory that after 100 points has risen by a fifth, that rose in nearly every sixteenth of the run, and that
in the last quarter still rises at 70 % of the run's own pace.

## Why it matters
It ends in a run that is killed for memory, usually hours later and far from the line at fault.

## What to do
Look for what grows: losses kept with their graph (`total += loss` without `.item()`), lists of outputs
gathered in evaluation, a cache that is never emptied, copies in worker processes. A snapshot of the
allocator early and late shows which.

## When it is wrong
Caches that fill in the first epoch, sequences that become longer by a curriculum and an allocator that
keeps its peak all grow for a while and then level off.

## Source
Catalogue A-memory.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated

import numpy as np
import polars as pl

from detectors.api import Cause, History, Variant, detector
from detectors.blocks import ROWS, with_blocks
from detectors.evidence import Measure, Unit
from detectors.signals import Signal
from detectors.stats import Floats
from detectors.verdict import verdicts

LEAST = 100  # points
MEASURES = ("start", "now", "rises", "pace")
PARTS = 16


@detector(
    judges=(Signal.GPU_MEMORY,),
    history=History(recent=ROWS, coarse=True),
    every=5,
    cause=Cause.SPEED,
    evidence={
        "start": Measure("at the start", Unit.SAME),
        "now": Measure("now", Unit.SAME),
        "rises": Measure("sixteenths of the run in which it rose", Unit.SHARE),
        "pace": Measure("pace of the last quarter, of the whole run's", Unit.SHARE),
    },
    variants={
        "growing": Variant(
            "memory grew from {start:.3g} to {now:.3g} GiB and does not level off",
            ("A-memory",),
        ),
    },
)
def memory_growth(
    points: pl.LazyFrame,
    *,
    growth: Annotated[float, "share of the start by which memory must have grown"] = 0.2,
    steady: Annotated[float, "share of the run's sixteenths in which it rose"] = 0.9,
    pace: Annotated[float, "of the whole run, at which the last quarter still grows"] = 0.7,
) -> pl.LazyFrame:
    """See the module's page."""
    measured = with_blocks(points, MEASURES, _growth, every=5, at_least=LEAST)
    grown = pl.col("now") > (1 + growth) * pl.col("start")
    return verdicts(
        measured,
        found={"growing": grown & (pl.col("rises") >= steady) & (pl.col("pace") >= pace)},
    )


def _growth(means: Floats) -> Mapping[str, Floats]:
    """The first and last sixteenth, the share of them that rose, the last quarter's pace in the run's."""
    edges = np.linspace(0, means.shape[1], PARTS + 1).astype(int)
    parts = np.stack([means[:, a:b].mean(axis=1) for a, b in pairwise(edges)], axis=1)
    steps = np.diff(parts, axis=1)
    last = parts[:, -1] - parts[:, -1 - PARTS // 4]
    return {
        "start": parts[:, 0],
        "now": parts[:, -1],
        "rises": (steps > 0).mean(axis=1),
        "pace": last / (parts[:, -1] - parts[:, 0]) * (PARTS - 1) / (PARTS // 4),
    }
