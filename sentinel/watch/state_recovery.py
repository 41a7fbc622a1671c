"""Begins a new state where the old one is damaged. The old one is kept for a person to look at."""

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sentinel.common.errors import StateDamaged
from sentinel.storage.database import Database, set_aside
from sentinel.storage.store import Store

_log = logging.getLogger(__name__)


def sound_store(directory: Path, now: float, say: Callable[[str], None]) -> Store:
    """Return the store of a directory; a new one where the database is damaged, and then ``say`` hears of
    that.

    Raises StateError if neither can be used.
    """
    try:
        with closing(Database(directory, create=True)) as database:
            database.check()
            database.make_shrinkable()
    except StateDamaged as error:
        begin_anew(directory, now, error, say)
    return Store(directory)


def begin_anew(directory: Path, now: float, error: StateDamaged, say: Callable[[str], None]) -> None:
    """Keep the damaged database, which nothing may have open, aside."""
    kept = set_aside(directory, now)
    why = str(error).partition(";")[0]
    said = (
        f"the state was damaged ({why}). It is kept as {kept}. All logs are read again, so what was open "
        "may be told once more, and silences are gone"
    )
    _log.error("%s", said)
    say(said)
