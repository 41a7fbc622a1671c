"""Tells on which part of the data the metrics of a line were measured: `Val: loss 0.5 | acc 0.3`.

A part that stands before metrics holds for all of them, up to the next part. The names of the metrics then
begin with it, unless they name a part themselves.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.pairs import is_metric, pairs
from sentinel.sources.console.printed import NUMBER, Record, number
from sentinel.sources.readers.records import EPOCH_KEYS, STEP_KEYS

_PART_WORD = r"(?P<part>train(?:ing)?|valid(?:ation)?|validate|val|test(?:ing)?|eval(?:uation)?)"
_TRAINING = "train"
_USUAL_PARTS = {"validate": "val", "testing": "test"}
_AXIS_NAMES = (*STEP_KEYS, *EPOCH_KEYS, "num_updates")
"""Names of what no part has of its own."""

_PART = lazy_pattern(rf"\s{{0,9}}{_PART_WORD}(?: set)?\s{{0,9}}[\]):|-]{{0,2}}\s{{1,9}}(?=\w)", re.IGNORECASE)
_OWN_PART = lazy_pattern(r"\s{0,9}(?=(?:train|valid|val|test|eval)_[a-z])", re.IGNORECASE)
"""What stands before metrics whose names begin with a part of the data."""
_BEGUN_PART = lazy_pattern(
    r"(?P<part>train(?:ing)?|valid(?:ation)?|val|test)(?: (?:set|error|results?|metrics|performance))?:",
    re.IGNORECASE,
)
_HEADING = lazy_pattern(
    rf"(?<![^\s\[(<|,;:>-]){_PART_WORD}(?: set)?\s{{0,3}}"
    r"(?:[\])>](?!\s{0,3}[:=]\s{0,3}[\d.+-])|:(?!\s{0,3}(?:[\d.+-]|n/?a\b|none\b))|[|;]|-(?=\s)"
    r"|[-=]>(?!\s{0,3}[\d.+-])|\((?=[a-z][\w ]{0,30}[=:]))",
    re.IGNORECASE,
)
_NAMED_PART = lazy_pattern(rf"(?<![a-z]){_PART_WORD}(?![a-z])", re.IGNORECASE)
_LOGGER = r"(?:[\w.]{1,80} -)?\s{0,9}"
_RESULTS = lazy_pattern(
    rf"{_LOGGER}(?:\*{{3,9}}\s{{1,3}})?"
    r"(?P<part>eval(?:uation)?|test|dev|valid(?:ation)?) (?:results?|metrics)"
    r"[^*]{0,80}\*{3,9}\s{0,9}",
    re.IGNORECASE,
)
"""The heading of the results of an evaluation, as the examples of transformers and of BERT print it."""

_RESULT = lazy_pattern(rf"{_LOGGER}(?P<name>[A-Za-z][\w@./-]{{0,80}}) = (?P<value>{NUMBER})\s{{0,9}}")
_NO_RESULTS = frozenset({*STEP_KEYS, *EPOCH_KEYS, "loss"})
"""What stands among these results and was not measured there: the loss is that of the training."""

_SHARE = lazy_pattern(r"(\d{1,15})/(\d{1,15}) \(\d{1,3}(?:\.\d{1,9})?%\)")

_OVER_EPISODES = lazy_pattern(r"over \d{1,6} (?:episodes?|eps?|trajectories)(?=\s?:)", re.IGNORECASE)
"""What TD3's authors print for the reward of an evaluation: "Evaluation over 10 episodes: 35.2"."""

_LOGGED = lazy_pattern(
    r"(?:[\s\[\]\d:.,/|()+-]|(?<=\d)(?:T(?=\d)|Z(?!\w))|(?<=\d )[\w-]{1,80}\]\([\w.]{1,80} \d{1,6}\))*+"
    r"(?:(?:[\w.]{1,80} - )?(?:INFO|DEBUG|WARNING)\b(?::[\w.]{1,80}:)?[\s\])|:>*-]*+)?"
    r"(?:[\w.]{1,80}:(?:[\w<>]{1,80}:)?\d{1,6}[\s\])|>:-]++)?"
)
"""What a logger puts before a message."""

_DATED = r"[\[(]?\d[\d:.,/ TZ+-]{5,40}[\])]?[ |:-]{1,3}(?:[\w.]{1,80} - )?"
LEVELLED = rf"{_DATED}\[?(?:INFO|DEBUG|WARNING)\b\]?[ |:-]{{1,5}}"
"""The time and the level before a message, which may be the row of a table."""

_LEVELLED = lazy_pattern(LEVELLED)


def message_at(line: str) -> int:
    """Return the place behind what a logger puts before a message."""
    prefix = _LOGGED.match(line)
    return prefix.end() if prefix else 0


def without_level(line: str) -> str:
    """Return a line without the time and the level that a logger puts before a message."""
    levelled = _LEVELLED.match(line)
    return line[levelled.end() :] if levelled else line


def begun_part(line: str) -> str:
    """Return the part of the data that the next line is about, if the line holds nothing else."""
    heading = _BEGUN_PART.fullmatch(line)
    return heading["part"] if heading else ""


def begun_results(line: str) -> str:
    """Return the part of the data whose results stand on the next lines, a result a line; empty if none."""
    heading = _RESULTS.fullmatch(line, message_at(line))
    return heading["part"].lower() if heading else ""


def result_of(part: str, line: str) -> Record | None:
    """Return a result of a part of the data, and nothing for what only stands among these results; None for
    a line that is none.
    """
    entry = _RESULT.fullmatch(line, message_at(line))
    value = None if entry is None else number(entry["value"])
    if entry is None or value is None:
        return None
    name = entry["name"]
    if name in _NO_RESULTS:
        return {}
    return {name if _NAMED_PART.search(name.partition("_")[0]) else f"{part}_{name}": value}


def of_part(line: str) -> Record:
    """Return the metrics of a line that begins with a part of the data, as in "Test set: Average loss: 0.2".

    The names begin with that part. The step or epoch of the line stands above it.
    """
    begin = message_at(line)
    if (own_part := _OWN_PART.match(line) or _OWN_PART.match(line, begin)) is not None:
        record: Record = dict(pairs(line[own_part.end() :], {}))
        return record if any(map(is_metric, record)) else {}
    heading = _PART.match(line) or _PART.match(line, begin)
    if heading is None:
        return {}
    text = _OVER_EPISODES.sub("reward", line[heading.end() :], 1)
    text = _SHARE.sub(lambda share: str(int(share[1]) / max(1, int(share[2]))), text)
    record = dict(parted(text, {}, heading["part"]))
    return record if any(map(is_metric, record)) else {}


def parted(text: str, names: Mapping[str, str], part: str = "") -> Iterator[tuple[str, float]]:
    """Yield the names and numbers in the text, as `pairs` finds them, with the parts that stand before them.

    ``part`` is that of the beginning. Where none is given, metrics of the training keep their names.
    """
    keeps = not part
    begin = 0
    for heading in _HEADING.finditer(text):
        yield from _with_part(pairs(text[begin : heading.start()], names), part)
        is_held_out = not heading["part"].lower().startswith(_TRAINING)
        part = heading["part"] if is_held_out or not keeps else ""
        begin = heading.end()
    yield from _with_part(pairs(text[begin:], names), part)


def _with_part(metrics: Iterator[tuple[str, float]], part: str) -> Iterator[tuple[str, float]]:
    """Yield the pairs with the part in their names.

    A name that comes twice belongs to the parts that are named before it: "Train loss 2, acc 0.1; Test loss
    3, acc 0.2".
    """
    names = [*metrics]
    often = Counter(name for name, _ in names)
    part = _USUAL_PARTS.get(part.lower(), part)
    before = ""
    for name, value in names:
        if own_part := _own_part(name):
            before = own_part
        name_part = (
            "" if own_part or name.lower() in _AXIS_NAMES else part or (before if often[name] > 1 else "")
        )
        yield f"{name_part} {name}" if name_part else name, value


@lru_cache(maxsize=1 << 10)  # there are few names, and many of each
def _own_part(name: str) -> str:
    """Return the part that a name tells."""
    part = _NAMED_PART.search(name)
    return part[0] if part else ""
