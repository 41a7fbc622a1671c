"""Nothing more of the log is judged.

## What it catches
A stream whose steps went back so often that they order nothing any more. From there on no detector looks at
it, and silence about it says nothing of its health.

## Why it matters
A run that nobody judges looks like a healthy one.

## What to do
See which processes write the log. Give each training a log of its own, or log from one rank alone, and start
the run in a new directory.

## When it is wrong
A job that was resumed more than sixty times in one log. It is read on as soon as it gets a new one.

## Source
`MAX_ATTEMPTS` in `sentinel/frames/attempts.py`: no scheduler restarts a job that often.
"""

from collections.abc import Iterator

from detectors.api import Maturity, Severity, Variant
from detectors.checks import RunFinding, RunView, run_check


@run_check(
    reads="the order of steps",
    variants={"disordered": Variant("nothing that follows in the log is judged: {reason}", ())},
    maturity=Maturity.STABLE,
)
def judging_stopped(run: RunView) -> Iterator[RunFinding]:
    """One finding for each stream, where it stopped."""
    for stop in run.stopped:
        yield RunFinding(
            index=0,
            severity=Severity.INFO,
            variant="disordered",
            tag=stop.stream,
            step=stop.step,
            time=stop.time,
            evidence={"reason": stop.reason},
        )
