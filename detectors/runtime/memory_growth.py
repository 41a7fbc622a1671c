"""Memory grows evenly and does not level off: something is kept that ought to be let go.

## What it catches
Memory that has risen by a fifth since the first quarter of the run, that rose in nearly every sixteenth of
it since then, in none by more than a quarter of all the growth, and that in the last quarter still rises at
85 % of that pace. At least 128 points are needed.

## Why it matters
It ends in a run that is killed for memory, usually hours later and far from the line at fault.

## What to do
Look for what grows: losses kept with their graph (`total += loss` without `.item()`), lists of outputs
gathered in evaluation, a cache that is never emptied, copies in worker processes. A snapshot of the
allocator early and late shows which.

## When it is wrong
Caches that fill in the first epoch, sequences that become longer by a curriculum and an allocator that
keeps its peak all grow for a while and then level off. The detector is a preview: in simulated runs it rings
about once in a million points where memory scatters.

## Source
Catalogue A-memory.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import Cause, History, Variant, detector
from sentinel.detectors.blocks import ROWS, with_blocks
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, has_points
from sentinel.detectors.verdict import HeldBack, verdicts

LEAST = 128  # points
MEASURES = ("start", "now", "rises", "largest", "pace")
PARTS = 16  # into which the points are divided
QUARTER = 4  # of them; in the first one caches fill
EVERY = 5  # points between two verdicts: memory grows slowly


@detector(
    judges=(Signal.GPU_MEMORY,),
    history=History(recent=ROWS, coarse=True),
    every=5,
    cause=Cause.SPEED,
    evidence={
        "start": Measure("after a quarter of the run", Unit.SAME),
        "now": Measure("now", Unit.SAME),
        "rises": Measure("sixteenths of the run since then in which it rose", Unit.SHARE),
        "largest": Measure("share of the growth in one of them, at most", Unit.SHARE),
        "pace": Measure("pace of the last quarter, of that since then", Unit.SHARE),
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
    growth: Annotated[float, "share by which memory must have grown since the first quarter"] = 0.2,
    steady: Annotated[
        float,
        "share of the sixteenths of the run in which memory must have risen, from the second quarter on",
    ] = 0.9,
    even: Annotated[float, "largest share of the growth that a single sixteenth may bring"] = 0.25,
    pace: Annotated[float, "least pace of the last quarter, as a share of the pace since the first"] = 0.85,
) -> pl.LazyFrame:
    """See the module's page."""
    measured = with_blocks(points, MEASURES, _growth, every=EVERY, at_least=LEAST)
    grown = pl.col("now") > (1 + growth) * pl.col("start")
    return verdicts(
        measured,
        judged={HeldBack.FEW_POINTS: has_points(LEAST)},
        found={
            "growing": grown
            & (pl.col("rises") >= steady)
            & (pl.col("largest") <= even)
            & (pl.col("pace") >= pace)
        },
    )


def _growth(means: Floats) -> Mapping[str, Floats]:
    """The last sixteenths of the first quarter and of all, and how the growth between them is spread."""
    edges = np.linspace(0, means.shape[1], PARTS + 1).astype(int)
    parts = np.stack([means[:, a:b].mean(axis=1) for a, b in pairwise(edges)], axis=1)
    start, now = parts[:, QUARTER - 1], parts[:, -1]
    steps = np.diff(parts[:, QUARTER - 1 :], axis=1)
    return {
        "start": start,
        "now": now,
        "rises": (steps > 0).mean(axis=1),
        "largest": steps.max(axis=1) / (now - start),
        "pace": (now - parts[:, -1 - QUARTER]) / (now - start) * (PARTS - QUARTER) / QUARTER,
    }
