"""What an entry supposes of a run, and whether the run shows it: the words of ``needs.toml``."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from sentinel.catalogue.rules import Clues, Condition
from sentinel.ground.conversion import converter


class Need(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One word, as ``needs.toml`` describes."""

    means: str
    follows: tuple[str, ...] = ()
    shown: tuple[Condition, ...] = ()


_to_needs = converter(dict[str, Need])


@cache
def needs() -> Mapping[str, Need]:
    """All words. Raises msgspec.ValidationError for a row that is none."""
    table = tomllib.loads((files(__package__) / "needs.toml").read_text(encoding="utf-8"))
    return _to_needs(table)


def not_shown(words: Iterable[str], clues: Clues) -> tuple[str, ...]:
    """What the words mean that the run does not show, by what precedes the incident in its log."""
    return tuple(needs()[word].means for word in words if not _is_shown(word, clues))


def _is_shown(word: str, clues: Clues) -> bool:
    need = needs()[word]
    return (
        (clues.known is not None and clues.known.shows(word))
        or any(condition.holds(clues) for condition in need.shown)
        or any(_is_shown(other, clues) for other in need.follows)
    )
