"""Shortens the names of a table so that no two of them read alike."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.text import elided

_NAME_WORDS = lazy_pattern(r"(?:\de-\d|[^/_\-])*[/_\-]|.+")
"""A word of a path with what ends it. The minus of `1e-3` ends none."""
_ELLIPSIS = "…"


def distinct(names: Sequence[str], max_characters: int) -> list[str]:
    """Return the names with at most so many characters each, different ones for different names.

    Where a name is too long, all of them lose words that they have in common. What is still too long loses
    its middle, and names that are then alike get numbers.
    """
    if all(len(name) <= max_characters for name in names):
        return [*names]
    words = {name: _NAME_WORDS.findall(name) for name in names}
    short: dict[str, str] = {}
    for size in dict.fromkeys(len(each) for each in words.values()):
        same_size = {name: each for name, each in words.items() if len(each) == size}
        short |= dict(zip(same_size, _without_common([*same_size.values()], max_characters), strict=True))
    numbered = _numbered(short, max_characters)
    return [numbered[name] for name in names]


def _without_common(names: Sequence[Sequence[str]], max_characters: int) -> Iterator[str]:
    """Yield names of equally many words with those words in which they differ, and as many of their
    neighbours as there is room for.
    """
    columns = [*zip(*names, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    differs = [index for index, column in enumerate(columns) if len({*column}) > 1]
    differs = differs or [len(columns) - 1]  # of a single path the end tells most
    chosen = {*differs}
    for distance in range(1, len(columns)):
        for neighbour in (*(index - distance for index in differs), *(index + distance for index in differs)):
            is_beside = 0 <= neighbour < len(columns) and not chosen.isdisjoint(
                (neighbour - 1, neighbour + 1)
            )
            if is_beside and _width(widths, chosen | {neighbour}) <= max_characters:
                chosen.add(neighbour)
    yield from (_joined(name, chosen) for name in names)


def _width(widths: Sequence[int], chosen: set[int]) -> int:
    """Return the characters of the chosen columns of words, with one for each gap."""
    gaps = sum(index not in chosen and (index - 1 in chosen or index == 0) for index in range(len(widths)))
    return sum(widths[index] for index in chosen) + gaps


def _joined(name: Sequence[str], chosen: set[int]) -> str:
    """Return the chosen words of a name, with one mark for each gap."""
    chosen_words = "".join(word if index in chosen else _ELLIPSIS for index, word in enumerate(name))
    return re.sub(f"{_ELLIPSIS}+", _ELLIPSIS, chosen_words)


def _numbered(short: Mapping[str, str], max_characters: int) -> dict[str, str]:
    """Return short names by names, each of at most so many characters. Names that are alike get numbers."""
    cut = {name: elided(each, max_characters) for name, each in short.items()}
    uses = Counter(cut.values())
    used_names = {*uses}
    endings = {each: (f"~{number}" for number in count(1)) for each in uses}
    for name, each in cut.items():
        if uses[each] > 1:
            numbered = (
                f"{elided(short[name], max_characters - len(ending))}{ending}" for ending in endings[each]
            )
            cut[name] = next(text for text in numbered if text not in used_names)
            used_names.add(cut[name])
    return cut
