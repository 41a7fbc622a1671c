"""The states of this user: where the state of a watch lies by default, and which one a command means.

Each thing that is watched has a state of its own below one directory, so that watches of two projects do not
meet.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from sentinel.common.errors import SentinelError, StateError
from sentinel.common.paths import is_file
from sentinel.common.state_dir import STATE_FILE, default_state_dir
from sentinel.storage.database import make_file

_WATCHED_FILE = "watched"
"""A file in the state directory that says what its watch follows, a path in each line."""
_MAX_STATE_NAME = 40  # characters of a directory's name that tell a person what is watched
_HASH_DIGITS = 8  # of the hash that tells apart what has one name


def state_of_config(file: Path) -> Path:
    """Return where the state of the watch lies that a configuration describes."""
    file = file.resolve()
    return _state_dir(file.parent.name, f"configuration {file}")


def state_of_paths(paths: Sequence[object], share: str = "") -> Path:
    """Return where the state of a watch lies that was given its paths, and perhaps a share, by hand."""
    watched_paths = [str(path.absolute()) if isinstance(path, Path) else str(path) for path in paths]
    return _state_dir("-".join(Path(watched_paths[0]).parts[-2:]), "\n".join([share, *sorted(watched_paths)]))


def note_watched(directory: Path, paths: Iterable[object]) -> None:
    """Write down what the watch with this state follows, so that commands find the state by it.

    A watch whose disk is full goes on without.
    """
    file = directory / _WATCHED_FILE
    lines = [str(path.absolute()) if isinstance(path, Path) else str(path) for path in paths]
    with suppress(OSError, StateError):
        make_file(directory, file)
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8", "surrogateescape")


def fitting_states(config_state: Path | None, directory: Path, incident: str = "") -> list[Path]:
    """Return the states that a command may mean that does not say which one.

    These are the ones that hold the ``incident``, else its ``config_state``, else those of what lies near
    the ``directory``, else all. Empty if there is none.
    """
    states = _states()
    if incident:
        holding = [state for state in states if _holds(state, incident)]
        if holding:
            return holding
    if config_state is not None and config_state in states:
        return [config_state]
    near = [state for state, watched in states.items() if any(_is_near(path, directory) for path in watched)]
    return near or ([*states] if config_state is None else [])


def one_of(states: Sequence[Path]) -> Path:
    """Return the only state. Raises SentinelError that names them if there are several."""
    if len(states) == 1:
        return states[0]
    watched = _states()
    lines = [
        f"  --state-dir {state}   # of {', '.join(watched[state]) or 'an older watch'}" for state in states
    ]
    raise SentinelError("\n".join([f"{len(states)} watches have a state here; name one of them:", *lines]))


def _state_dir(name: str, key: str) -> Path:
    name = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:_MAX_STATE_NAME] or "runs"
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:_HASH_DIGITS]
    return default_state_dir() / f"{name}-{digest}"


def _states() -> dict[Path, list[str]]:
    """Return the states of this user, with what the watch of each follows."""
    root = default_state_dir()
    try:
        directories = [root, *sorted(root.iterdir())]
    except OSError:
        return {}
    return {directory: _watched(directory) for directory in directories if is_file(directory / STATE_FILE)}


def _watched(directory: Path) -> list[str]:
    try:
        return (directory / _WATCHED_FILE).read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


def _is_near(path: str, directory: Path) -> bool:
    common = os.path.commonpath([path, directory]) if path.startswith("/") else ""
    return common in (path.rstrip("/"), str(directory))


def _holds(directory: Path, incident: str) -> bool:
    from sentinel.storage.store import Store

    try:
        with Store(directory, read_only=True) as store:
            store.incident(incident)
    except (SentinelError, StateError):
        return False
    return True
