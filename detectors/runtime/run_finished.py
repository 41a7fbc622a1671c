"""The run has finished.

## What it catches
A run that is over and whose log, server or plan says that it came to its end.

## Why it matters
Somebody waits for it, and the machine is free.

## What to do
Look at the last evaluation.

## When it is wrong
A plan that was changed after it was logged. A run that goes on after all withdraws it.

To hear of finished runs, enable the check and set `min_severity = "info"` for a sink.

## Source
The exit record of W&B's files, the states of W&B and MLflow, the summary of Hugging Face's Trainer, the
planned steps.
"""

from collections.abc import Iterator

from sentinel.detectors.api import INFO, Maturity, Variant
from sentinel.detectors.run_checks import RunFinding, RunView, run_check
from sentinel.detectors.runtime.endings import ENDING_EVIDENCE, ended, is_early


@run_check(
    reads="how the run ended",
    evidence=ENDING_EVIDENCE,
    variants={"finished": Variant("the run finished {reached}: {reason}", (), (INFO,))},
    maturity=Maturity.STABLE,
    enabled=False,
)
def run_finished(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding once a run that finished is over."""
    if run.finalized is not None and run.finalized.outcome == "finished" and not is_early(run):
        yield ended(run, "finished")
