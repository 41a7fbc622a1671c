"""Memory in use grows evenly and does not level off: something is kept that ought to be let go.

## What it catches
Memory of the GPU or of the process on its host that has risen by a fifth since the first quarter of the run,
that rose in nearly every sixteenth of it since then, in none by more than a quarter of all the growth, and
that in the last quarter still rises at 85 % of that pace. Free shared memory that falls in the same way. At
least 128 points are needed.

## Why it matters
It ends in a run that is killed for memory, usually hours later and far from the line at fault.

## What to do
Look for what grows: losses kept with their graph (`total += loss` without `.item()`), lists of outputs
gathered in evaluation, a cache that is never emptied, copies in worker processes. A snapshot of the
allocator early and late shows which. On the host `tracemalloc` does, and `ls -l /dev/shm` names what fills
shared memory.

## When it is wrong
Caches that fill in the first epoch, sequences that become longer by a curriculum and an allocator that
keeps its peak all grow for a while and then level off. A replay buffer grows until it is full, and other
processes of the host share its shared memory. The detector is a preview: in simulated runs it rings
about twice in a million points where memory scatters.

## Source
Catalogue A-memory, DP9 and DP15.
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
from sentinel.detectors.stats import Floats, has_points, is_of
from sentinel.detectors.verdict import SkipReason, verdicts

MIN_POINTS = 128  # points that suffice
MEASURES = ("start", "now", "moves", "largest", "pace")
PARTS = 16  # into which the points are divided
QUARTER_PARTS = 4  # of them; in the first one caches fill
EVERY_POINTS = 5  # points between two verdicts: memory grows slowly


@detector(
    judges=(Signal.GPU_MEMORY, Signal.HOST_MEMORY, Signal.FREE_SHARED_MEMORY),
    history=History(recent=ROWS, coarse=True),
    every=5,
    cause=Cause.SPEED,
    evidence={
        "start": Measure("after a quarter of the run", Unit.SAME),
        "now": Measure("now", Unit.SAME),
        "moves": Measure("sixteenths of the run since then in which it moved so", Unit.SHARE),
        "largest": Measure("share of the change in one of them, at most", Unit.SHARE),
        "pace": Measure("pace of the last quarter, of that since then", Unit.SHARE),
    },
    variants={
        "growing": Variant(
            "memory grew from {start:.3g} to {now:.3g} GiB and does not level off", ("A-memory",)
        ),
        "host-growing": Variant(
            "the training's memory on its host grew from {start:.3g} to {now:.3g} GiB and does not level off",
            ("A-memory", "DP9"),
        ),
        "shared-filling": Variant(
            "shared memory fills up: {start:.3g} GiB were free, and {now:.3g} are now", ("DP15", "A-memory")
        ),
    },
)
def memory_growth(
    points: pl.LazyFrame,
    *,
    growth: Annotated[float, "share by which memory must have changed since the first quarter"] = 0.2,
    steady: Annotated[
        float,
        "share of the sixteenths of the run in which memory must have moved so, from the second quarter on",
    ] = 0.9,
    even: Annotated[float, "largest share of the change that a single sixteenth may bring"] = 0.25,
    pace: Annotated[float, "least pace of the last quarter, as a share of the pace since the first"] = 0.85,
) -> pl.LazyFrame:
    measured = with_blocks(points, MEASURES, _growth, every=EVERY_POINTS, at_least=MIN_POINTS)
    start = pl.col("start")
    now = pl.col("now")
    grown = now > (1 + growth) * start
    evenly = (pl.col("moves") >= steady) & (pl.col("largest") <= even) & (pl.col("pace") >= pace)
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(MIN_POINTS)},
        found={
            "growing": is_of(Signal.GPU_MEMORY) & grown & evenly,
            "host-growing": is_of(Signal.HOST_MEMORY) & grown & evenly,
            "shared-filling": is_of(Signal.FREE_SHARED_MEMORY) & (now < (1 - growth) * start) & evenly,
        },
    )


def _growth(means: Floats) -> Mapping[str, Floats]:
    """Return the last sixteenths of the first quarter and of all, and the spread of the change between."""
    edges = np.linspace(0, means.shape[1], PARTS + 1).astype(int)
    parts = np.stack([means[:, begin:end].mean(axis=1) for begin, end in pairwise(edges)], axis=1)
    start = parts[:, QUARTER_PARTS - 1]
    now = parts[:, -1]
    shares = np.diff(parts[:, QUARTER_PARTS - 1 :], axis=1) / (now - start)[:, None]
    return {
        "start": start,
        "now": now,
        "moves": (shares > 0).mean(axis=1),
        "largest": shares.max(axis=1),
        "pace": (now - parts[:, -1 - QUARTER_PARTS])
        / (now - start)
        * (PARTS - QUARTER_PARTS)
        / QUARTER_PARTS,
    }
