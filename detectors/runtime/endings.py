"""What the checks on the end of a run have in common."""

from typing import Any

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import RunFinding, RunView

ENDING_EVIDENCE = {
    "reason": Measure("known from", Unit.TEXT),
    "reached": Measure("ended", Unit.TEXT),
    "ran_seconds": Measure("ran for", Unit.SECONDS),
    "last_lines": Measure("last printed", Unit.TEXT),
}

SPARED = "the kernel's OOM killer did not do it"
"""What the evidence says of a SIGKILL where that is known."""

MIN_PLAN_FRACTION = 0.95
"""Fraction of its plan; a run that stops before has not merely left out its last row."""


def is_early(run: RunView) -> bool:
    """Return whether a run is said to be finished only because its process exited, far before its planned end
    and by more than the interval of its log.
    """
    end = run.finalized
    planned = run.planned_steps
    last = run.last_step
    has_exited = end is not None and end.outcome == "finished" and end.exited
    is_far = has_exited and planned and (last or 0) < MIN_PLAN_FRACTION * planned
    return bool(is_far and not run.completion().may_be_last)


def ended(run: RunView, variant: str) -> RunFinding:
    """Return the finding on a run that is concluded."""
    planned = f" of {run.planned_steps:.0f}" if run.planned_steps else ""
    last = run.step_elsewhere if run.last_step is None else run.last_step
    evidence: dict[str, Any] = {
        "reason": run.finalized.evidence if run.finalized else "",
        "reached": "before it logged a number" if last is None else f"at step {last}{planned}",
    }
    if run.first_time is not None and run.last_time is not None:
        evidence["ran_seconds"] = run.last_time - run.first_time
    if run.last_lines:
        evidence["last_lines"] = run.last_lines
    return RunFinding(index=run.points, variant=variant, step=last, evidence=evidence)
