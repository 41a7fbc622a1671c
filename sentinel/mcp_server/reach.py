"""What an agent may reach: the runs that it was given, and no others."""

from collections.abc import Sequence
from pathlib import Path

from sentinel.sources.location import Location, Url, matches
from sentinel.sources.readers.files import real_path


def is_given(path: str, allowed: Sequence[Location]) -> bool:
    """Return whether a run's path or address lies at or below a given place; true if none was given."""
    return not allowed or any(f"{path}/".startswith(f"{top.rstrip('/')}/") for top in _tops(allowed))


def _tops(allowed: Sequence[Location]) -> list[str]:
    """Return the places without links and globs."""
    tops: list[str] = []
    for location in allowed:
        tops += [str(location)] if isinstance(location, Url) else map(real_path, matches(Path(location)))
    return tops
