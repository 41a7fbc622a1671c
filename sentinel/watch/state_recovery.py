"""Begins a new state where the old one is damaged. The old one stays on the disk for a person to look at."""

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sentinel.common.errors import StateDamaged
from sentinel.storage.database import Database, set_aside
from sentinel.storage.store import Store

_log = logging.getLogger(__name__)


def sound_store(directory: Path, now: float, announce: Callable[[str], None]) -> Store:
    """Return the store of a directory; a new one, which is announced, where the database is damaged.

    Raises StateError if neither can be used.
    """
    try:
        with closing(Database(directory, create=True)) as database:
            database.check()
            database.make_shrinkable()
    except StateDamaged as error:
        begin_anew(directory, now, error, announce)
    return Store(directory)


def begin_anew(directory: Path, now: float, error: StateDamaged, announce: Callable[[str], None]) -> None:
    """Set the damaged database aside, which nothing may have open, and announce that."""
    path = set_aside(directory, now)
    reason = str(error).partition(";")[0]
    announcement = (
        f"the state was damaged ({reason}). It is kept as {path}. All logs are read again, so what was open "
        "may be told once more, and silences are gone"
    )
    _log.error("%s", announcement)
    announce(announcement)
