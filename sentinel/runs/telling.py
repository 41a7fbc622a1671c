"""Finds the lines that hold one of some words, far faster than to look at each line."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate


def telling(lines: Sequence[str], words: Iterable[str]) -> list[int]:
    """The places of the lines that hold a word, each with the line before it, and the last line.

    Lines without text count as none: the line before is the last one with text.
    """
    text = "\n".join(lines)
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    found = {len(lines)}
    for word in _shortest(tuple(words)):
        at = text.find(word)
        while at >= 0:
            place = bisect_right(begins, at) - 1
            found.add(place)
            at = text.find(word, begins[place + 1])
    return sorted({*found, *(_before(lines, place) for place in found)} - {len(lines), -1})


@lru_cache(maxsize=1 << 6)
def _shortest(words: tuple[str, ...]) -> list[str]:
    """The words that hold no other one of them."""
    return [word for word in dict.fromkeys(words) if not any(one in word and one != word for one in words)]


def _before(lines: Sequence[str], place: int) -> int:
    return next((at for at in range(place - 1, -1, -1) if lines[at] and not lines[at].isspace()), -1)
