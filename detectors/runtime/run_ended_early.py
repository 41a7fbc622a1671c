"""The process of a run ended without an error, far before the end of its plan.

## What it catches
A process that exited with status 0 although less than 95 % of the planned steps are logged, and at least one
more row of the log's rhythm was due before its plan ended. Neither the log nor the console says that it is
done, for example by early stopping.

## Why it matters
A data loader that ran dry, a wrong number of epochs and a wrapper that swallows errors all look like success
to a scheduler. The machine is free, and the model is not trained.

## What to do
Read the last lines that it printed, and compare the planned steps with the length of the data.

## When it is wrong
A training that stops early on purpose without a word. Let it log a last row with `done: true`. A run that
goes on, in another process, withdraws it.

## Source
The exit status of the process that wrote the log, where it ran on the machine of the watch.
"""

from collections.abc import Iterator

from sentinel.detectors.api import Maturity, Variant
from sentinel.detectors.run_checks import RunFinding, RunView, run_check
from sentinel.detectors.runtime.endings import ENDING_EVIDENCE, ended, is_early


@run_check(
    reads="how the run ended",
    evidence=ENDING_EVIDENCE,
    variants={"early": Variant("the run ended {reached}, before its planned end: {reason}", ())},
    maturity=Maturity.STABLE,
)
def run_ended_early(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding once such a run is over."""
    if is_early(run):
        yield ended(run, "early")
