"""What is wrong in a log, and where, in few words however much is broken."""

import msgspec
import numpy as np
from numpy.typing import NDArray

_MAX_ISSUES = 5  # broken records of one file


def skipped(problem: str, number: int) -> str:
    """Return the message about a broken record that is skipped; empty if enough were told of.

    ``number`` counts the broken records of the file from 1.
    """
    if number > _MAX_ISSUES:
        return ""
    suffix = "; more like it are skipped silently" if number == _MAX_ISSUES else ""
    return f"{problem} and was skipped{suffix}"


class Problem(msgspec.Struct, frozen=True):
    """What is wrong in a binary log. ``offset`` counts from the start of the bytes that were split."""

    offset: int
    text: str


def summed(offsets: NDArray[np.int64], what: str) -> list[Problem]:
    """Return one problem for all records with the same trouble, so that no file fills a screen."""
    if len(offsets) == 0:
        return []
    further_offsets = f" (and {len(offsets) - 1} more up to {offsets[-1] - offsets[0]} bytes further on)"
    return [Problem(int(offsets[0]), what + further_offsets * (len(offsets) > 1))]
