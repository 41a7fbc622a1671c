"""A rank of a training died while the others live.

## What it catches
A rank on the machine of the watch that ended by a signal or with an exit status other than 0, while other
ranks of the same training still run. SIGHUP, SIGINT and SIGTERM do not count, because a person, a scheduler
or a launcher sends them.

## Why it matters
The others wait for the dead one in a collective operation. They notice after some seconds, after the timeout
of the communication, often half an hour, or never.

## What to do
Read what that rank printed last. If the OOM killer ended it, give it more memory or fewer loader workers.
Then end the others and start again from the last checkpoint.

## When it is wrong
A training that goes on without a rank, or with a new one in its place; it resolves it.

## Source
The exit status of the rank's process (Linux 6.15, `PIDFD_GET_INFO`), the counts of its control group and the
kernel's log. The environment of a process says which rank it is (`RANK`, `SLURM_PROCID` and others).
"""

from collections.abc import Iterator
from typing import Any

from sentinel.detectors.api import CRITICAL, Cause, Maturity, Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import RunFinding, RunView, run_check


@run_check(
    reads="the processes of its ranks",
    evidence={
        "dead_rank": Measure("dead rank", Unit.TEXT),
        "ranks": Measure("ranks", Unit.COUNT),
        "last_lines": Measure("last printed", Unit.TEXT),
    },
    variants={
        "killed": Variant("{dead_rank}", ("A-err-exit9", "A-err-nccl"), (CRITICAL,)),
        "died": Variant("{dead_rank}", ("A-err-nccl",), (CRITICAL,)),
    },
    maturity=Maturity.STABLE,
    cause=Cause.CRASH,
    inhibits=tuple(cause for cause in Cause if cause is not Cause.NUMERICS),  # the others end with it
)
def rank_died(run: RunView) -> Iterator[RunFinding]:
    """Yield one finding for each rank, numbered by the points before it."""
    if run.dead_rank is None or run.ended is not None:
        return
    if not run.dead_rank:
        yield RunFinding(run.points)
        return
    evidence: dict[str, Any] = {"dead_rank": run.dead_rank, "ranks": run.ranks}
    if run.last_lines:
        evidence["last_lines"] = run.last_lines
    yield RunFinding(run.points, "killed" if "SIGKILL" in run.dead_rank else "died", evidence=evidence)
