"""The run crashed.

## What it catches
A run that is over and whose log, console or server says that it failed: an exit code other than 0, an
uncaught exception in the console, a last line by which a logger says that the training failed, or argparse
that an argument is wrong, the state "crashed", "failed" or "killed" of a tracking server.

## Why it matters
The machine is paid for and does nothing, until somebody starts the run again.

## What to do
Read the last lines that it printed; the first error among them counts. If it was killed and the kernel's OOM
killer did not do it, ask who did: a person, a scheduler, or a guard of memory such as systemd-oomd. Start
the run again from its last checkpoint once the cause is mended.

## When it is wrong
A training that ends with another exit code on purpose. A run that goes on after all withdraws it. A run that
a scheduler ends is no crash; see `run-preempted`.

## Source
The exit record of W&B's files, the states of W&B and MLflow, CPython's tracebacks; the exit status of the
process that wrote the log, where it ran on the machine of the watch (Linux 6.15, `PIDFD_GET_INFO`).
"""

from collections.abc import Iterator

from msgspec.structs import replace

from sentinel.detectors.api import CRITICAL, Cause, Maturity, Variant
from sentinel.detectors.run_checks import RunFinding, RunView, run_check
from sentinel.detectors.runtime.endings import ENDING_EVIDENCE, SPARED, ended

KILLED = (
    "exit code 137",
    "exit code -9",
    "exit code 9 ",
    "status 137 ",
    "by SIGKILL ",
)  # SIGKILL as shells, Python and others number it


@run_check(
    reads="how the run ended",
    evidence=ENDING_EVIDENCE,
    variants={
        "killed": Variant("the run was killed {reached}: {reason}", ("A-err-exit9", "DP9"), (CRITICAL,)),
        "stopped": Variant("the run was killed {reached}: {reason}", (), (CRITICAL,)),
        "crashed": Variant("the run crashed {reached}: {reason}", (), (CRITICAL,)),
    },
    maturity=Maturity.STABLE,
    cause=Cause.CRASH,
    inhibits=tuple(cause for cause in Cause if cause is not Cause.NUMERICS),
)
def run_crashed(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding once a run that crashed is over."""
    if run.finalized is not None and run.finalized.outcome == "crashed":
        evidence = f"{run.finalized.evidence} "
        killed = any(code in evidence for code in KILLED)
        finding = ended(run, "stopped" if SPARED in evidence else "killed" if killed else "crashed")
        yield replace(finding, catalogue=() if killed else tuple(run.last_entries()))
