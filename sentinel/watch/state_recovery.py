"""Begins a new state where the old one cannot be used. The old one is kept for a person to look at."""

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sentinel.common.errors import StateDamaged, StateError, StateOfAnotherSchema
from sentinel.storage.database import Database, set_aside
from sentinel.storage.store import Store

_log = logging.getLogger(__name__)


def sound_store(directory: Path, now: float, announce: Callable[[str], None]) -> Store:
    """Return the store of a directory: a new one where the database is damaged or of another schema.

    ``announce`` is called if a new one begins. Raises StateError if neither can be used.
    """
    try:
        with closing(Database(directory, create=True)) as database:
            database.check()
    except StateDamaged as error:
        begin_anew(directory, now, error, announce)
    except StateOfAnotherSchema as error:
        aside = set_aside(directory, now, "other-schema")
        _announce_loss(f"the state is of another version ({_cause(error)})", aside, announce)
    return Store(directory)


def begin_anew(directory: Path, now: float, error: StateDamaged, announce: Callable[[str], None]) -> None:
    """Keep the damaged database, which no connection may have open, aside."""
    aside = set_aside(directory, now, "corrupt")
    _announce_loss(f"the state was damaged ({_cause(error)})", aside, announce)


def _cause(error: StateError) -> str:
    return str(error).partition(";")[0]


def _announce_loss(reason: str, aside: Path, announce: Callable[[str], None]) -> None:
    message = (
        f"{reason}. It is kept as {aside}. All logs are read again, so what was open "
        "may be told once more, and silences are gone"
    )
    _log.error("%s", message)
    announce(message)
