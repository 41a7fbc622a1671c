"""Infers how a silent run ended if its log does not state it: from its last words, else from its points."""

from sentinel.detectors.run_checks import Completion
from sentinel.runs.completion import completion
from sentinel.runs.end_markers import checksum, last_words
from sentinel.runs.log import RunLog
from sentinel.sources.base import Ending, EndKind
from sentinel.sources.registry import format_named

_MIN_SILENT_SECONDS = 60.0  # a run may still write for this long after it seems to have ended


def infer_end(log: RunLog, silent_seconds: float | None) -> None:
    """Infer how a run ended whose log was silent for so long; ``silent_seconds`` is None if the log is gone.

    Words are the last ones only when nothing follows them for a while. What the points say counts once the
    log was silent for longer than its own pauses allow.
    """
    metadata = log.metadata
    if log.ending is not None or silent_seconds is None:
        return
    if silent_seconds > _MIN_SILENT_SECONDS:
        _read_last_words(log)
    if (
        metadata.last_step is not None
        and metadata.last_words is None
        and silent_seconds > metadata.lost_after_seconds
    ):
        by_points = _completion(log)
        metadata.goes_on = by_points.goes_on
        metadata.last_words = (
            Ending(EndKind.FINISHED, by_points.over, inferred=True) if by_points.over else None
        )


def completion_of(log: RunLog) -> Completion:
    """Return what the last words of a silent log and its points say about whether more is to come."""
    _read_last_words(log)
    if log.metadata.last_words is not None:
        return Completion(over=log.metadata.last_words.evidence)
    return _completion(log)


def _completion(log: RunLog) -> Completion:
    """Return what the points of a log say about whether more is to come."""
    is_saved = format_named(log.run.format).written_at_checkpoints
    setting = log.metadata.config.get("save_steps") if is_saved else None
    save_steps = int(setting.value) if setting is not None and isinstance(setting.value, int | float) else 0
    return completion(log.metadata, log.streams.values(), log.planned_steps, save_steps)


def _read_last_words(log: RunLog) -> None:
    """Read the last words of a run, unless the files that hold them have not changed."""
    sizes_and_times = checksum(log.run)
    if log.metadata.heard != sizes_and_times:
        log.metadata.heard = sizes_and_times
        log.metadata.last_words = last_words(log.run, max(log.attempts, 1))
