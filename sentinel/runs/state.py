"""The state of a run, and the evidence for it."""

import math
import os
from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from pathlib import Path
from stat import S_ISDIR

import msgspec

from sentinel.common.text import duration_text
from sentinel.sources.base import Ending
from sentinel.sources.location import Location, Url

LOST_SECONDS = 86400.0
"""A run that was silent for a day is not expected to go on."""

_MAX_ZONE_SECONDS = 86400.0  # an unknown time zone cannot move a log's clock further than this
_MAX_LOG_FILES = 1000  # of a run, whose modification times are read


class RunState(StrEnum):
    """The state of a run. PREEMPTED: the scheduler ended it, or another run continues from where it stopped.
    SILENT, STALLED and LOST runs are silent without a known end. A STALLED run should go on, of a SILENT run
    nothing says whether it ended or is stuck, and a LOST run is not expected to continue.
    """

    RUNNING = "running"
    FINISHED = "finished"
    CRASHED = "crashed"
    PREEMPTED = "preempted"
    STALLED = "stalled"
    SILENT = "silent"
    LOST = "lost"


MEANINGS = {
    RunState.RUNNING: "its log grows, or is silent for no longer than its pauses explain",
    RunState.STALLED: "its log is silent for long, and more should come",
    RunState.SILENT: "its log is silent for long, and nothing says whether it ended or is stuck",
    RunState.LOST: "its log is gone or was silent for more than a day, and nothing says how the run ended",
    RunState.CRASHED: "its log, its output or its process says that an error ended it",
    RunState.PREEMPTED: "the scheduler ended it, or another run goes on from where it stopped",
    RunState.FINISHED: "its log or its process says that it came to its end",
}
"""What each state says of a run, for people."""

GOING_ON = (RunState.RUNNING, RunState.STALLED)
"""States of a run of which more is expected."""

_MOST_TELLING_FIRST = (
    *(RunState.CRASHED, RunState.FINISHED, RunState.PREEMPTED),
    *(RunState.RUNNING, RunState.STALLED, RunState.SILENT, RunState.LOST),
)


class RunStatus(msgspec.Struct, frozen=True):
    """A state, and a sentence with the evidence for it."""

    state: RunState
    evidence: str


def run_status(
    ending: Ending | None,
    silent_seconds: float | None,
    lost_after_seconds: float,
    goes_on_in: str | None = None,
    goes_on: str = "",
) -> RunStatus:
    """Return the state of a run. What the log says about its end overrides everything else.

    ``silent_seconds`` is the time since the last write, None if the log is gone. ``lost_after_seconds`` is
    how long the log may be silent. ``goes_on_in`` names the run that continues this one. ``goes_on`` says why
    more is to come.
    """
    if ending is not None:
        return RunStatus(RunState(ending.outcome.value), ending.evidence)
    if goes_on_in is not None:
        return RunStatus(RunState.PREEMPTED, f"{goes_on_in} goes on from there")
    if silent_seconds is None:
        return RunStatus(RunState.LOST, "its log is gone")
    if math.isinf(silent_seconds):
        return RunStatus(RunState.SILENT, "ended or stuck: its log is a copy, which does not tell its age")
    silent = f"its log does not say that it ended; last written {duration_text(silent_seconds)} ago"
    if silent_seconds <= lost_after_seconds:
        return RunStatus(RunState.RUNNING, silent)
    allowed = f", and its pauses explain {duration_text(lost_after_seconds)} at most"
    if silent_seconds > max(LOST_SECONDS, lost_after_seconds):
        return RunStatus(RunState.LOST, silent + allowed)
    if goes_on:
        return RunStatus(RunState.STALLED, f"{silent}{allowed}; {goes_on}")
    return RunStatus(RunState.SILENT, f"ended or stuck: {silent}{allowed}")


def of_training(states: Iterable[RunState]) -> RunState:
    """Return the state of a training from those of its logs: an end that one states, else the liveliest."""
    return min(states, key=_MOST_TELLING_FIRST.index)


def silent_seconds(location: Location, last_time: float | None, now: float) -> float | None:
    """Return seconds since the last write to a run; None if it is gone.

    ``last_time`` is the newest time in its log. The modification times of the files count, because the time
    zone of a log may be unknown. They do not count for a copy, whose files are younger than its log, nor
    where this user may not ask for them.
    """
    written = last_time if last_time is not None else now
    if not isinstance(location, Url):
        try:
            modified = _modified(location)
        except OSError:
            if is_gone(location):
                return None
        else:
            is_copy = last_time is not None and modified - last_time > _MAX_ZONE_SECONDS
            written = written if is_copy else modified
    return max(0.0, now - written)


def _modified(path: Path) -> float:
    try:
        return last_write(path)
    except NotADirectoryError:
        return last_write(path.parent)  # a database holds many runs


def is_gone(location: Location) -> bool:
    """Return whether the file or directory of a run does not exist any more. A database holds many runs."""
    try:
        os.lstat(str(location))
    except (FileNotFoundError, ValueError):  # no file has such a name
        return isinstance(location, Path)
    except OSError:  # it lies in a database, or cannot be reached
        pass
    return False


def last_write(path: Path) -> float:
    """Return when a file, or any file directly in a directory, was last written.

    Raises OSError if it is gone.
    """
    status = os.lstat(path)
    times = [status.st_mtime]
    if S_ISDIR(status.st_mode):
        with os.scandir(path) as files:
            times += [file.stat(follow_symlinks=False).st_mtime for file in islice(files, _MAX_LOG_FILES)]
    return max(times)
