"""What the checks on the silence of a run have in common."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import Completion, RunView, Writer

LONG_PAUSE_QUANTILE = 0.95  # quantile of the pauses
MAX_LONG_PAUSES = 10  # a silence of this many long pauses is out of the ordinary
MAX_LONGEST_PAUSES = 2  # so is one of this many of the second longest pause
_SAVED_SECONDS = 3600.0  # a log of checkpoints may rest until it shows a pause: few save more rarely
_MIN_SAVE_PAUSES = 2  # pauses, of which the first is that before the first checkpoint was seen
MIN_RUNS_TOGETHER = 3  # runs that fall silent together: two may end at the same time by chance

SILENCE_EVIDENCE = {
    "silent_seconds": Measure("silent for", Unit.SECONDS),
    "usual_seconds": Measure("usual pause at most", Unit.SECONDS),
    "allowed_seconds": Measure("allowed silence", Unit.SECONDS),
    "process": Measure("process", Unit.TEXT),
    "shortages": Measure("the machine", Unit.TEXT),
    "last_lines": Measure("last printed", Unit.TEXT),
    "runs_silent": Measure("silent runs", Unit.COUNT),
    "place": Measure("below", Unit.TEXT),
    "since": Measure("last growth of any", Unit.TEXT),
}


class Long(msgspec.Struct, frozen=True):
    """A silence that is longer than the run's own pauses allow, or that began with the end of its process,
    and nothing says that the run is over.

    ``goes_on`` says why more is to come; it is empty if nothing says so. A run may stop before its plan is
    reached, so it is ``sure`` only if its process lives, or amid its schedule.
    """

    evidence: Mapping[str, Any]
    goes_on: str
    sure: bool
    hint: str  # a sign of an end that may be chance
    process: Writer
    times_allowed: float

    @property
    def together(self) -> bool:
        """Whether runs that are expected to grow fell silent together, this one among them."""
        return "runs_silent" in self.evidence


def long_silence(run: RunView, least_seconds: float) -> Long | None:
    """Return the silence of a run if it is long, or its process ended, and the run is not over; else None."""
    pauses = sorted(run.pauses)
    silent = run.silent_seconds
    usual = pauses[math.ceil(LONG_PAUSE_QUANTILE * len(pauses)) - 1] if pauses else 0.0
    longest = pauses[-2] if len(pauses) > 1 else 0.0  # the longest may be a clock that was set
    saving = _SAVED_SECONDS if run.saved and len(pauses) < _MIN_SAVE_PAUSES else 0.0
    allowed = max(MAX_LONG_PAUSES * usual, MAX_LONGEST_PAUSES * longest, least_seconds, saving)
    if silent is None or run.ended:
        return None
    # A short silence is long if the process was seen to end, and no other one goes on with its log.
    if silent <= allowed and not (run.process_gone and run.process().lives is False):
        return None
    completion = run.completion()
    process = run.process()
    if completion.over:
        return None
    evidence = {"silent_seconds": silent, "usual_seconds": usual, "allowed_seconds": allowed}
    evidence = {**evidence, **dict(_process_evidence(run, process))}
    if silent > allowed:  # else the others are between two points
        evidence |= _together(run)
    sure = process.lives or (completion.amid and process.lives is None)
    return Long(
        evidence, _goes_on(completion, process), bool(sure), completion.hint, process, silent / allowed
    )


def _goes_on(completion: Completion, process: Writer) -> str:
    """Return why more is to come. A process that is gone writes no more."""
    if process.lives is False:
        return ""
    return completion.goes_on or (process.text if process.lives else "")


def _process_evidence(run: RunView, process: Writer) -> Iterator[tuple[str, Any]]:
    """Yield what else is known of a silent run."""
    if process.text:
        yield "process", process.text
    if short := run.shortages():
        yield "shortages", short
    if run.last_lines:
        yield "last_lines", run.last_lines


def _together(run: RunView) -> dict[str, Any]:
    """Return the evidence that other runs fell silent with this one; empty if they did not."""
    all_ = run.together
    if all_ is None or all_.runs < MIN_RUNS_TOGETHER or all_.shortest_seconds < (run.silent_seconds or 0) / 2:
        return {}
    return {"runs_silent": all_.runs, "place": all_.location, "since": all_.since}
