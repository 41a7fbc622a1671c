"""Settles how a silent run ended if its log does not state it: by its last words, else by its points."""

from sentinel.detectors.run_checks import Completion
from sentinel.runs.completion import completion
from sentinel.runs.end_markers import heard_from, last_words
from sentinel.runs.log import RunLog
from sentinel.sources.base import Ending, EndKind
from sentinel.sources.registry import format_named

_QUIET_SECONDS = 60.0  # a run may still write for this long after it seems to have ended


def infer_end(log: RunLog, silent_seconds: float | None) -> None:
    """Look for what tells the end of a log that was silent for so long (None: it is gone).

    Words are the last ones only when nothing follows them for a while. What the points say counts once the
    log was silent for longer than its own pauses allow.
    """
    facts = log.metadata
    if log.ending is not None or silent_seconds is None:
        return
    if silent_seconds > _QUIET_SECONDS:
        _listen(log)
    if facts.last_step is not None and facts.last_words is None and silent_seconds > facts.lost_after_seconds:
        told = _of_points(log)
        facts.goes_on = told.goes_on
        facts.last_words = Ending(EndKind.FINISHED, told.over, inferred=True) if told.over else None


def outlook_of(log: RunLog) -> Completion:
    """Return what the last words of a silent log and its points say about whether more is to come."""
    _listen(log)
    if log.metadata.last_words is not None:
        return Completion(over=log.metadata.last_words.evidence)
    return _of_points(log)


def _of_points(log: RunLog) -> Completion:
    is_saved = format_named(log.run.format).written_at_checkpoints
    saved = log.metadata.config.get("save_steps") if is_saved else None
    every = int(saved.value) if saved is not None and isinstance(saved.value, int | float) else 0
    return completion(log.metadata, log.streams.values(), log.planned_steps, every)


def _listen(log: RunLog) -> None:
    """Look for last words, unless the files that hold them are as they were."""
    if log.metadata.heard != (heard := heard_from(log.run)):
        log.metadata.heard = heard
        log.metadata.last_words = last_words(log.run, max(log.attempts, 1))
