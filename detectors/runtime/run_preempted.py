"""A person, a scheduler or a signal ended the run, and not an error of its own.

## What it catches
A run that is over and that printed the scheduler's words (SLURM's "CANCELLED AT ... DUE TO PREEMPTION" or
"DUE TO TIME LIMIT"), those of a handler of SIGTERM (torchrun, Lightning) or Python's KeyboardInterrupt, or
that its server calls preempted.

## Why it matters
It is no failure of the training, and a scheduler usually starts it again. Whoever waits for it wants to know.

## What to do
See whether it is queued again. If a time limit ended it, ask for more time or save checkpoints more often.

## When it is wrong
A handler of SIGTERM that speaks because another process of the job failed first, and printed nothing. A run
that goes on, in a new attempt, withdraws it.

## Source
slurmstepd's messages; torch/distributed/elastic/multiprocessing/api.py; Lightning's signal_connector.py.
"""

from collections.abc import Iterator

from sentinel.detectors.api import INFO, Maturity, Variant
from sentinel.detectors.run_checks import RunFinding, RunView, run_check
from sentinel.detectors.runtime.endings import ENDING_EVIDENCE, ended


@run_check(
    reads="how the run ended",
    evidence=ENDING_EVIDENCE,
    variants={"preempted": Variant("the run was ended from outside {reached}: {reason}", (), (INFO,))},
    maturity=Maturity.STABLE,
)
def run_preempted(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding once a run that was preempted is over."""
    if run.finalized is not None and run.finalized.outcome == "preempted":
        yield ended(run, "preempted")
