"""Finds entries of the catalogue: by family, by words, and where an id has no page."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from sentinel.catalogue import Entry, load

_FAMILIES = {
    "O": "Optimizer, loss and training loop",
    "DP": "Data pipeline",
    "L": "Language models",
    "V": "Vision",
    "DF": "Diffusion",
    "R": "Reinforcement learning",
    "X": "Vision language models",
    "G": "Gradients",
    "N": "Newer methods and stacks",
    "A": "Metrics and errors of fine-tuning and RL on language models",
}


def families() -> Mapping[str, Sequence[Entry]]:
    """Return all entries by the name of their family, in the order of their ids.

    The entries of another package are a family of their own.
    """
    families: dict[str, list[Entry]] = {name: [] for name in _FAMILIES.values()}
    for entry in load().values():
        if entry.package:
            families.setdefault(f"From {entry.package}", []).append(entry)
            continue
        letters = re.match("[A-Z]+", entry.id)[0]  # type: ignore[index] # a test holds that ids begin so
        families[_FAMILIES.get(letters, _FAMILIES["G"])].append(entry)
    return families


def search(words: Sequence[str]) -> list[Entry]:
    """Return the entries that hold all the words, in any case; first those that hold more in the title."""
    folded = [word.casefold() for word in words]

    def holds(entry: Entry) -> bool:
        lines = " ".join(signature.text for signature in entry.signatures)
        text = " ".join((entry.id, entry.title, entry.fix, entry.check, entry.body, lines)).casefold()
        return all(word in text for word in folded)

    def in_title(entry: Entry) -> int:
        title = f"{entry.id} {entry.title}".casefold()
        return sum(word in title for word in folded)

    return sorted(filter(holds, load().values()), key=in_title, reverse=True)


@cache
def unwritten() -> Mapping[str, Sequence[str]]:
    """Return the ids without a page that the sources of the catalogue name, with the nearest entries."""
    return tomllib.loads((files(__package__) / "unwritten.toml").read_text(encoding="utf-8"))
