"""Reads the table that torchrun prints last: which process failed first, and how."""

import re
import signal
from collections.abc import Sequence

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.runs.preemption import ENDS_FROM_OUTSIDE
from sentinel.sources.base import Ending, EndKind

_ROOT_CAUSE = "Root Cause (first observed failure):"  # torch/distributed/elastic/multiprocessing/errors
_FAILED_RANK = lazy_pattern(
    r"\brank +: (\d+) (?:(?!\brank +:).){0,400}?\bexitcode +: (-?\d+) \(pid: (\d+)\)", re.DOTALL
)


def first_failure(lines: Sequence[str]) -> Ending | None:
    """Return how the rank ended that failed first; None if no launcher printed it."""
    _, head, table = "\n".join(lines).rpartition(_ROOT_CAUSE)
    failure = _FAILED_RANK.search(table) if head else None
    if failure is None:
        return None
    rank, code, pid = map(int, failure.groups())
    how = f"exited with status {code}"
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        how = f"was killed by {names.get(-code, f'signal {-code}')}"
    outcome = EndKind.PREEMPTED if -code in ENDS_FROM_OUTSIDE else EndKind.CRASHED
    return Ending(outcome, f"torchrun printed that rank {rank} (process {pid}) {how}", inferred=True)
