"""Makes names, steps and times usable for the rest of sentinel, whatever a log holds.

JSON may hold one half of a surrogate pair, which no database stores. Counts may be larger than an int64, and
times may lie outside every calendar. Each source passes what it reads through these functions.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_STEP = 2**62
"""The largest absolute value of a number that is read as a step."""

LATEST = 253_402_300_800
"""Seconds since the epoch: the year 10,000, which `datetime` does not have."""


def plain_text(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair."""
    return text.encode(errors="replace").decode()


def _with_plain_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {plain_text(name): value for name, value in pairs}


JSON = json.JSONDecoder(strict=False, parse_int=float, object_pairs_hook=_with_plain_names)
"""Reads JSON as Python writes it, NaN and infinities included. Names are plain text, and numbers floats."""


def whole(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which values can be a step, because they are whole and not too large."""
    fits: NDArray[np.bool_] = (np.abs(values) < LARGEST_STEP) & (values == np.floor(values))
    return fits


def plain_times(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The times, with NaN for times outside the calendar."""
    return np.where((seconds >= 0) & (seconds < LATEST), seconds, np.nan)
