"""A form of line that a person names: ``loss {loss} at {step}``."""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.printed_numbers import NUMBER_ALONE
from sentinel.sources.readers.slots import METRIC, STAMP, Slot
from sentinel.sources.readers.templates import Template
from sentinel.sources.readers.words import counter

MAX_FORM = 500
"""Characters of a form."""

MAX_ANYTHING = 200
"""Characters that ``{*}`` may stand for."""

TIME = "time"
"""The name of what is the time of a line."""

_PLACE = lazy_pattern(r"\{([^{}]{0,100})\}")
_MOMENT = r"\d[\d:T./ -]{6,30}\d(?:[.,]\d{1,9})?(?:Z|[-+]\d\d:?\d\d)?"


class LineForm(msgspec.Struct, frozen=True):
    """A form: what stands in braces is the name of a number, of what counts, or ``time``.

    ``{*}`` stands for any text, and blanks for any blanks. A line may hold more before and behind.
    """

    line: str

    def __post_init__(self) -> None:
        """Raise ValueError for a form that no line can have, or that names nothing."""
        slot_names = _PLACE.findall(self.line)
        names = [name for name in slot_names if name not in ("*", TIME)]
        if len(self.line) > MAX_FORM:
            raise ValueError(f"has more than {MAX_FORM} characters")
        if any("{" in text or "}" in text for text in _PLACE.split(self.line)[::2]):
            raise ValueError("has a brace without the other one")
        if "" in slot_names or len(set(names)) < len(names):
            raise ValueError("should have a name of its own in each pair of braces")
        if all(counter(name) for name in names):
            raise ValueError("names no metric; write {loss} where the loss stands")
        if any(at and not text for at, text in enumerate(_PLACE.split(self.line)[:-1:2])):
            raise ValueError("has two pairs of braces with nothing between them")

    def numbers(self, line: str) -> list[str] | None:
        """Return the numbers of a line, as printed; None if it has another form."""
        match = _pattern(self.line).search(line)
        return [*match.groups()] if match else None

    @property
    def template(self) -> Template:
        """What its numbers are."""
        return _template(self.line)


def is_of_a_form(forms: Sequence[LineForm], lines: Sequence[str]) -> bool:
    """Return whether one of the lines has one of the forms."""
    return any(form.numbers(line) for form in forms for line in lines)


@lru_cache(256)
def _pattern(form: str) -> re.Pattern[str]:
    parts = _PLACE.split(form.strip())
    pattern = ""
    for text, name in zip(parts[::2], [*parts[1::2], ""], strict=True):
        pattern += r"\s+".join(map(re.escape, re.split(r"\s+", text)))
        if name == "*":
            pattern += f".{{0,{MAX_ANYTHING}}}?"
        elif name == TIME:
            pattern += f"({_MOMENT})"
        elif name:
            pattern += rf"(?<![\w.])({NUMBER_ALONE})(?![\w.]\w)"
    return re.compile(pattern)


@lru_cache(256)
def _template(form: str) -> Template:
    names = [name for name in _PLACE.findall(form) if name != "*"]
    slots = [Slot("", STAMP) if name == TIME else Slot(name, counter(name) or METRIC) for name in names]
    counters = [(at, slot.kind, -1) for at, slot in enumerate(slots) if slot.kind not in (METRIC, STAMP)]
    values = [(at, slot.name) for at, slot in enumerate(slots) if slot.kind in (METRIC, "epoch")]
    return Template(
        slots=tuple(slots),
        values=tuple(values),
        counters=tuple(counters),
        rank=-1,
        stamp=names.index(TIME) if TIME in names else -1,
        elapsed=-1,
        is_nameless_bar=False,
        sure=True,
        weak=False,
        bare=False,
        names=tuple(name for _, name in values),
        heading=f"form {form}",
        is_named=True,
    )
