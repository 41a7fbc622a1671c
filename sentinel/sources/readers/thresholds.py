"""The thresholds of an average precision, which are no numbers of their own: "mAP@[.5:.95]: 0.41"."""

import re

from sentinel.common.lazy_pattern import lazy_pattern

_RANGE = lazy_pattern(
    r"(?<![A-Za-z])(m?AP)[ _]?(?:@ ?)?[\[(]? ?(?:IoU ?= ?)?0?\.?50? ?[-:] ?(?:0?\.05 ?: ?)?0?\.?95 ?[\])]?",
    re.IGNORECASE,
)
"""The usual range of the overlap of boxes, as people print it."""


def plain_thresholds(text: str) -> str:
    """Return a text in which a precision over a range of overlaps has a name of one word."""
    return _RANGE.sub(r"\1@50_95", text)
