"""What is wrong with the bytes of a binary log, and where."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Problem:
    """``offset`` counts from the start of the bytes that were split."""

    offset: int
    text: str


def summed(offsets: NDArray[np.int64], what: str) -> list[Problem]:
    """One problem for all records with the same trouble, so that a broken file does not fill a screen."""
    if len(offsets) == 0:
        return []
    others = f" (and {len(offsets) - 1} more up to {offsets[-1] - offsets[0]} bytes further on)"
    return [Problem(int(offsets[0]), what + others * (len(offsets) > 1))]
