"""The errors that end a command.

SentinelError            one line for a person: what, where and how to correct it; never a traceback
├── ConfigError          sentinel.toml cannot be used; one line for each mistake
├── StateError           the state directory cannot be used: locked, not writable, of another version
│   ├── StateDamaged          the database holds bytes that SQLite did not write
│   ├── StateOfAnotherSchema  another version of sentinel wrote the database
│   └── StateUnavailable      the cause may pass by itself: a full disk, a lock that is held for long
└── UnknownName          an unknown name on the command line; suggests the nearest known one
"""

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_NAME_CHARACTERS = 200  # characters of what a person mistyped


class SentinelError(Exception):
    """Printed as `sentinel: MESSAGE`; the command then exits with status 2."""


class ConfigError(SentinelError):
    """The configuration cannot be used; ``problems`` holds one line for each mistake."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class StateError(SentinelError):
    """The state directory cannot be used."""


class StateDamaged(StateError):
    """The database in the state directory is damaged. A watch moves it aside and makes a new one."""


class StateOfAnotherSchema(StateError):
    """The state has tables of another schema. A watch keeps them aside and begins a new database."""


class StateUnavailable(StateError):
    """The state directory cannot be used now. Nothing was written, and the same may be tried again."""


def is_defect(error: BaseException) -> bool:
    """Return whether the error is the fault of one run, so that the other runs can go on.

    An interrupt is not, and a state directory that fails concerns all runs. A panic of polars is, although
    it is not an Exception.
    """
    panic = type(error).__name__ == "PanicException"
    return panic or (isinstance(error, Exception) and not isinstance(error, StateError))


class UnknownName(SentinelError):
    """Nothing has this ``name``; ``valid_names`` are those that exist."""

    def __init__(self, kind: str, name: str, valid_names: Iterable[str]) -> None:
        super().__init__(f"no {kind} is called {name!r}{did_you_mean(name, valid_names)}")


def did_you_mean(name: str, valid_names: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` with the valid name nearest to ``name``, or nothing. Ignores case."""
    if len(name) > _MAX_NAME_CHARACTERS:
        return ""
    by_folded = {candidate.casefold(): candidate for candidate in valid_names}
    close_matches = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" (did you mean {by_folded[close_matches[0]]!r}?)" if close_matches else ""
