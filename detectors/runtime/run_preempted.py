"""A person, a scheduler or a signal ended the run, and not an error of its own.

## What it catches
A run that is over and that printed the scheduler's words (SLURM's "CANCELLED AT ... DUE TO PREEMPTION" or
"DUE TO TIME LIMIT"), those of a handler of SIGTERM (torchrun, Lightning) or Python's KeyboardInterrupt, or
that its server calls preempted. A process that SIGTERM or SIGHUP ended without such words, before 95 % of its
planned steps were logged, is a warning.

## Why it matters
It is no failure of the training, and a scheduler usually starts it again. Whoever waits for it wants to
know. If no scheduler said so, perhaps nobody starts it again.

## What to do
See whether it is queued again. If a time limit ended it, ask for more time or save checkpoints more often.

## When it is wrong
A handler of SIGTERM that speaks because another process of the job failed first, and printed nothing. A run
that goes on, in a new attempt, withdraws it.

## Source
slurmstepd's messages; torch/distributed/elastic/multiprocessing/api.py; Lightning's signal_connector.py.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from sentinel.detectors.api import INFO, Maturity, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import RunFinding, RunView, run_check
from sentinel.detectors.runtime.endings import ENDING_EVIDENCE, MIN_PLAN_FRACTION, ended

UNANNOUNCED = "by SIGTERM", "by SIGHUP"  # signals of which a scheduler says that it sends them


@run_check(
    reads="how the run ended",
    evidence={**ENDING_EVIDENCE, "planned_share": Measure("share of its plan", Unit.SHARE)},
    variants={
        "preempted": Variant("the run was ended from outside {reached}: {reason}", (), (INFO,)),
        "unannounced": Variant(
            "the run was ended from outside {reached}, {planned_share:.0%} of its plan, and no scheduler "
            "says so: {reason}",
            (),
            first_step="Ask who ended it, and start it again from its last checkpoint.",
        ),
    },
    maturity=Maturity.STABLE,
)
def run_preempted(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding once a run that was preempted is over."""
    end = run.finalized
    if end is None or end.outcome != "preempted":
        return
    share = (run.last_step or 0) / run.planned_steps if run.planned_steps else 1.0
    is_announced = not end.exited or not any(signal in end.evidence for signal in UNANNOUNCED)
    if is_announced or share >= MIN_PLAN_FRACTION:
        yield ended(run, "preempted")
        return
    finding = ended(run, "unannounced")
    yield replace(finding, evidence={**finding.evidence, "planned_share": share})
