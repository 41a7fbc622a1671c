"""Questions about paths that nobody may be allowed to ask, or that no file can have.

Before Python 3.14 a `Path` raises PermissionError below a directory that may not be searched, and OSError for
a name that is too long.
"""

import os
import stat
from pathlib import Path

from sentinel.common.owners import owner_of


def exists(path: Path) -> bool:
    """Return whether there is something at a path; False where that cannot be asked."""
    return os.path.exists(path)  # noqa: PTH110  raises nothing


def is_file(path: Path) -> bool:
    """Return whether there is a file at a path; False where that cannot be asked."""
    return os.path.isfile(path)  # noqa: PTH113  raises nothing


def is_directory(path: Path) -> bool:
    """Return whether there is a directory at a path; False where that cannot be asked."""
    return os.path.isdir(path)  # noqa: PTH112  raises nothing


def is_denied(path: str | Path) -> bool:
    """Return whether this user may not even ask whether there is something at a path."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return False


def closure(path: Path) -> str:
    """Return what keeps this user from a path, as in "/home/alice is closed to you (mode 0700, of alice)"."""
    path = path.absolute()
    for directory in (*reversed(path.parents), path):
        try:
            mode = stat.S_IMODE(os.stat(directory).st_mode)
        except (OSError, ValueError):
            return ""  # nothing is there
        if not os.access(directory, os.R_OK if directory == path else os.X_OK):
            return f"{directory} is closed to you (mode {mode:04o}, of {owner_of(directory)})"
    return ""
