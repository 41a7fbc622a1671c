"""The log stopped growing, and nothing says that the run ended.

## What it catches
No new point for longer than each of these: ten minutes, ten times a long pause of the run (nineteen in twenty
are shorter), twice its second longest pause. After three times as long it is critical. Evaluations,
checkpoints and compilations are among these pauses, so a run that regularly takes long for one has the time.
If all runs of a directory that are expected to grow, three or more, fall
silent together, the file system or the machine is the trouble, and a person hears of it once. A log that is
gone is said to be gone.

## Why it matters
A collective operation that waits for a rank that died, a deadlock in the data loader or a kill without a
word cost as much as training does, and nothing reports them.

## What to do
See whether the process lives: the finding names it and its kernel wait if it has the log open, or if a pid
file (`*.pid`) beside the log or W&B's own log names it. If it lives, let `py-spy dump --pid` show where it
waits; of several ranks, the one that waits elsewhere has the cause. If it is gone, look for a kill in the
kernel's log.

## When it is wrong
The first evaluation of a run, where it takes longer than ten minutes; a log whose writer buffers for long. A
run that goes on resolves it. It is judged by the clock of a watch: a replay, whose log ends where it ends, is
silent about it.

## Source
Detector 40 of the catalogue: ten times the 95th percentile of pauses and at least ten minutes, critical at
thirty.
"""

import math
from collections.abc import Iterator
from typing import Annotated

from detectors.api import CRITICAL, WARNING, Cause, Maturity, Variant
from detectors.checks import RunFinding, RunView, run_check
from detectors.evidence import Measure, Unit

LONG_PAUSE = 0.95  # quantile of the pauses
TIMES_LONG = 10  # a silence of this many long pauses is out of the ordinary
TIMES_LONGEST = 2  # so is one of this many of the second longest pause
TIMES_CRITICAL = 3  # thirty minutes where the threshold is ten
FEWEST = 3  # runs that fall silent together: two may end at the same time by chance


@run_check(
    reads="the clock",
    evidence={
        "silent_seconds": Measure("silent for", Unit.SECONDS),
        "usual_seconds": Measure("longest usual pause", Unit.SECONDS),
        "process": Measure("process", Unit.TEXT),
        "last_lines": Measure("last printed", Unit.TEXT),
        "runs_silent": Measure("silent runs", Unit.COUNT),
        "place": Measure("below", Unit.TEXT),
        "since": Measure("last growth of any", Unit.TEXT),
    },
    variants={
        "silent": Variant(
            "no new point for {silent_seconds:duration}; it never paused for {usual_seconds:duration} before",
            ("DP3", "A-err-hang", "A-err-nccl", "A-err-exit9"),
            (WARNING, CRITICAL),
        ),
        "gone": Variant(
            "its log is gone: it was removed or moved, or its file system was unmounted; no new point for "
            "{silent_seconds:duration}",
            (),
            (WARNING, CRITICAL),
        ),
        "together": Variant(
            "all {runs_silent} runs below {place} fell silent together, so look at the file system and the "
            "machine: no new point for {silent_seconds:duration}",
            (),
            (CRITICAL,),
        ),
    },
    maturity=Maturity.STABLE,
    cause=Cause.STALL,
    silences=tuple(cause for cause in Cause if cause not in (Cause.STALL, Cause.CRASH, Cause.NUMERICS)),
)
def stream_stall(
    run: RunView,
    *,
    least_seconds: Annotated[float, "silence that is always allowed"] = 600.0,
) -> Iterator[RunFinding]:
    """One finding a silence, numbered by the points before it."""
    pauses = sorted(run.pauses)
    long = pauses[math.ceil(LONG_PAUSE * len(pauses)) - 1] if pauses else 0.0
    longest = pauses[-2] if len(pauses) > 1 else 0.0  # the longest may be a clock that was set
    limit = max(TIMES_LONG * long, TIMES_LONGEST * longest, least_seconds)
    silent = run.silent_seconds
    if silent is None:
        return
    if run.ended or silent <= limit:
        yield RunFinding(run.points)
        return
    evidence = {"silent_seconds": silent, "usual_seconds": limit, **_told_of(run)}
    all_ = run.together
    if all_ is not None and all_.runs >= FEWEST and all_.shortest_seconds >= silent / 2:
        evidence |= {"runs_silent": all_.runs, "place": all_.place, "since": all_.since}
        yield RunFinding(run.points, "together", evidence=evidence)
    else:
        severity = CRITICAL if silent > TIMES_CRITICAL * limit else None
        yield RunFinding(run.points, "gone" if run.log_is_gone() else "silent", severity, evidence=evidence)


def _told_of(run: RunView) -> dict[str, str]:
    """What the process does and what the run printed last, as far as that is known."""
    known = {"process": run.process(), "last_lines": run.last_lines}
    return {name: text for name, text in known.items() if text}
