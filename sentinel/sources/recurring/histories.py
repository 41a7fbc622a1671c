"""Whole histories that a line holds, as a script of Keras prints them once a training is over.

    {'loss': [0.69, 0.52, 0.41], 'val_loss': [0.7, 0.6, 0.55]}

Each epoch of one is read as if it had been printed by itself.
"""

from collections.abc import Iterator

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.printed_numbers import number

MIN_EPOCHS = 3
"""Numbers of a list that is the course of a metric."""

MAX_EPOCHS = 4096
"""Epochs of a history; a longer one is not read."""

_LIST = r"""['"]([A-Za-z_][\w /.-]{0,60})['"]\s?:\s?\[([^\[\]{}]{5,200000})\]"""
_HISTORY = lazy_pattern(rf"[^{{}}\[\]]{{0,60}}\{{\s?{_LIST}(?:,\s?{_LIST}){{0,31}},?\s?\}}\s*")
_COURSE = lazy_pattern(_LIST)
_TYPE = lazy_pattern(r"(?:np\.)?float(?:16|32|64)\(([^()]{1,40})\)")


def epochs_of(line: str) -> Iterator[str]:
    """Yield a line for each epoch of the history that a line holds; none if it holds none."""
    if "[" not in line or not _HISTORY.fullmatch(line):
        return
    courses = {name: _TYPE.sub(r"\1", values).split(",") for name, values in _COURSE.findall(line)}
    lengths = {len(values) for values in courses.values()}
    count = lengths.pop() if len(lengths) == 1 else 0
    if not MIN_EPOCHS <= count <= MAX_EPOCHS:
        return
    if any(number(value.strip()) is None for values in courses.values() for value in values):
        return
    for at in range(count):
        values = " - ".join(f"{name}: {each[at].strip()}" for name, each in courses.items())
        yield f"Epoch {at + 1}/{count} - {values}"
