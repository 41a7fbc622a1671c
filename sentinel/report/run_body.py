"""The JSON form of a run: the same in every answer of the command line and of the server for agents."""

from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from sentinel.runs.state import RunState
from sentinel.sources.location import Url


class RunBody(TypedDict):
    """A run, as every answer begins it.

    ``run`` is its name below what was named or is watched, and ``path`` the absolute path, or the address, of
    its log. ``display_name`` and ``project`` are what a tracker such as W&B calls it, null without one.
    ``source`` is the format of the log, and ``framework`` is null if it was not recognised. ``training`` is
    the same in all logs of one training: the source and the path of the one that tells most.
    ``state_evidence`` is the sentence behind ``state``. ``stopped`` says why the log was not judged to its
    end, if it was not.
    """

    run: str
    display_name: str | None
    project: str | None
    path: str
    source: str
    framework: str | None
    training: str
    state: RunState | Literal["unknown"]
    state_evidence: str
    stopped: str | None
    points: int
    first_step: int | None
    last_step: int | None
    attempts: int


def absolute(path: str) -> str:
    """Return a path from the root on; an address as it is."""
    return path if Url.parse(path) else str(Path(path).absolute())
