"""How a run stands, and how one knows."""

import os
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from stat import S_ISDIR

from sentinel.sources.base import Ending
from sentinel.sources.places import Place, Url
from sentinel.text import duration_text

LOST_SECONDS = 86400.0
"""A day without a word: whoever could go on with the run would have done so."""

_SURE_SECONDS = 86400.0  # no time zone, however it was left out, moves a log's clock further
_MOST_FILES = 1000  # of a run, whose times are looked at


class RunState(StrEnum):
    """PREEMPTED: another run goes on from where this one stopped. STALLED and LOST are both silent
    without a reason; of a lost run nothing more is expected.
    """

    RUNNING = "running"
    FINISHED = "finished"
    CRASHED = "crashed"
    PREEMPTED = "preempted"
    STALLED = "stalled"
    LOST = "lost"


@dataclass(frozen=True)
class Standing:
    """The state and the sentence that tells how one knows."""

    state: RunState
    evidence: str


def standing(
    ending: Ending | None,
    silent_seconds: float | None,
    lost_after_seconds: float,
    goes_on_in: str | None = None,
) -> Standing:
    """The word of the log goes before everything else.

    ``silent_seconds`` is the time since the last thing was written, None if the log is gone;
    ``lost_after_seconds`` how long it may be silent, and ``goes_on_in`` the run that took over.
    """
    if ending is not None:
        return Standing(RunState(ending.outcome.value), ending.evidence)
    if goes_on_in is not None:
        return Standing(RunState.PREEMPTED, f"{goes_on_in} goes on from there")
    if silent_seconds is None:
        return Standing(RunState.LOST, "its log is gone")
    silent = f"its log does not tell of an end and was last written {duration_text(silent_seconds)} ago"
    if silent_seconds <= lost_after_seconds:
        return Standing(RunState.RUNNING, silent)
    pauses = f"; it never paused for {duration_text(lost_after_seconds)}"
    lost = silent_seconds > max(LOST_SECONDS, lost_after_seconds)
    return Standing(RunState.LOST if lost else RunState.STALLED, silent + pauses)


def silent_seconds(place: Place, last_time: float | None, now: float) -> float | None:
    """How long nothing was written to a run; None if it is gone. ``last_time`` is the newest in its log.

    The files' own times count, since a log may be written in some unknown time zone; but not those of a
    copy, which is younger than its log.
    """
    if isinstance(place, Url):
        return max(0.0, now - last_time) if last_time is not None else 0.0
    try:
        written = _written(place)
    except NotADirectoryError:
        written = _written(place.parent)  # a database holds many runs
    except OSError:
        return None
    copied = last_time is not None and written - last_time > _SURE_SECONDS
    return max(0.0, now - (last_time if copied and last_time is not None else written))


def _written(path: Path) -> float:
    """When a file, or one right below a directory, was last written."""
    status = os.lstat(path)
    times = [status.st_mtime]
    if S_ISDIR(status.st_mode):
        with os.scandir(path) as files:
            times += [file.stat(follow_symlinks=False).st_mtime for file in islice(files, _MOST_FILES)]
    return max(times)
