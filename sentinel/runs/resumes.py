"""Resumes that a console tells and the steps do not: the training goes on at the step after the last one.

Where the steps go back, they tell it themselves. So a line counts only if it names a step that is not below
the last one before it.
"""

import re
from collections.abc import Iterator, Sequence

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Line
from sentinel.sources.console.passages import Passages

_RESUME = lazy_pattern(
    r"(?:load(?:ing|ed) (?:a |the )?checkpoint\b(?!.{0,200}\bbest\b).{0,300}?|resum(?:ing|ed) .{0,300}?|"
    r"continuing training from .{0,100}?)"
    r"\b(?:iteration|global[ _]step|step)\b[ :=#]{0,3}(?P<step>\d{1,12})\b",
    re.IGNORECASE,
)
_HINTS = ("heckpoint", "esum", "ontinuing")  # of each of these lines, to pass over the others quickly


def resumed_after(lines: Sequence[Line]) -> Iterator[int]:
    """Yield the steps after which lines say that the training goes on, in their order."""
    texts = lines.texts if isinstance(lines, Passages) else [line.text for line in lines]
    for index, text in enumerate(texts):
        if not any(hint in text for hint in _HINTS):
            continue
        resume = _RESUME.search(text)
        last_step = lines[index].step
        if resume is not None and last_step is not None and int(resume["step"]) >= last_step:
            yield int(resume["step"])
