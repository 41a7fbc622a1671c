"""Where the state lies unless the configuration says where."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

STATE_FILE = "sentinel.sqlite"
"""The database in the state directory. Nothing but SQLite may open it: a process that closes any other handle
of it loses the locks of all its connections, and then another process may delete the write-ahead log."""


def default_state_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the $STATE_DIRECTORY that systemd sets, or else the user's state directory (XDG), which holds a
    directory for each thing that is watched (`storage/states.py`).
    """
    by_systemd = environment.get("STATE_DIRECTORY")
    if by_systemd:
        return Path(by_systemd.split(":")[0])
    home = environment.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "sentinel"


def state_dir_option(state_dir: Path) -> str:
    """Return the option that a command in a person's shell needs to find this state, with a blank before it.

    Empty if it needs none: a command finds by itself which state holds an incident. A shell does not have the
    variable that systemd sets.
    """
    shell = {name: value for name, value in os.environ.items() if name != "STATE_DIRECTORY"}
    state_dir = state_dir.absolute()
    root = default_state_dir(shell)
    return "" if root in (state_dir, state_dir.parent) else f" --state-dir {shlex.quote(str(state_dir))}"
