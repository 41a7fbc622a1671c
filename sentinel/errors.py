"""What sentinel says when it cannot go on.

SentinelError            one line for a person: what, where and the mend; never a traceback
├── ConfigError          sentinel.toml cannot be used; one line for each problem
├── StateError           the state directory cannot be used: locked, unwritable, of a newer version
│   └── StateUnavailable   it may be usable again by itself: a full disk, a lock that is held for long
└── UnknownName          a name on the command line that means nothing; says the nearest one
"""

from collections.abc import Iterable
from difflib import get_close_matches


class SentinelError(Exception):
    """Shown as `sentinel: MESSAGE`; the command then ends with status 2."""


class ConfigError(SentinelError):
    """A configuration that cannot be used; ``problems`` holds one line for each defect."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class StateError(SentinelError):
    """A state directory that cannot be used."""


class StateUnavailable(StateError):
    """A state directory that cannot be used now. Nothing was written, and it may be tried again."""


def is_defect(error: BaseException) -> bool:
    """Whether it says that something went wrong with one run.

    A wanted end says nothing of the kind, and a state directory that fails fails for all. A panic of polars
    does, although it is no Exception.
    """
    panic = type(error).__name__ == "PanicException"
    return panic or (isinstance(error, Exception) and not isinstance(error, StateError))


class UnknownName(SentinelError):
    """Nothing is called ``name``; ``known`` is what could have been meant."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no {kind} is called {name!r}{did_you_mean(name, known)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the known name nearest to ``name``, else nothing. Case does not count."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" (did you mean {by_folded[near[0]]!r}?)" if near else ""
