"""Who owns a file."""

import os
import pwd
from functools import lru_cache
from pathlib import Path


def owner_of(path: Path) -> str | None:
    """Return the name of the user who owns a file, or the number without a name; None if it is gone."""
    try:
        return _name(os.stat(path).st_uid)
    except OSError:
        return None


@lru_cache(1000)
def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
