"""Finds the lines that hold one of some words, far faster than to look at each line."""

from collections.abc import Iterable, Sequence

import polars as pl


def telling(lines: Sequence[str], words: Iterable[str]) -> list[int]:
    """Return the places of the lines that hold a word, each with the line before it, and the last line.

    Lines without text count as none: the line before is the last one with text.
    """
    held = _texts(lines).str.contains_any([*words])
    places = [*held.arg_true(), len(lines)]
    return sorted({*places, *(_before(lines, place) for place in places)} - {len(lines), -1})


def _texts(lines: Sequence[str]) -> pl.Series:
    try:
        return pl.Series(lines, dtype=pl.String)
    except UnicodeEncodeError:  # half a letter, as JSON may escape one
        return pl.Series([line.encode(errors="replace").decode() for line in lines], dtype=pl.String)


def _before(lines: Sequence[str], place: int) -> int:
    return next((at for at in range(place - 1, -1, -1) if lines[at] and not lines[at].isspace()), -1)
