"""What each number of a line is: a time, a process, what counts, a total, or a value with a name.

Named recognisers are asked in their order; the first that knows a number says what it is. A number that none
knows has the name that stands before it.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.words import (
    MAX_NAME,
    counter,
    is_length,
    is_measure,
    phase,
    says_metric,
    says_other,
    unit_of_other,
)

MAX_WORDS = 5
"""Words of a name."""

_LOG_LEVEL = lazy_pattern(r"\b(?:INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL|SUCCESS|NOTICE)\b")
_LOGGER = lazy_pattern(r"(?:root|__main__|[A-Za-z_]\w{0,40}(?:\.\w{1,40}){1,6})\s{0,2}[:\]|>-]{1,2}\s?")
_FUNCTION = lazy_pattern(r"(?:^|[\s|])[A-Za-z_][\w.]*:[\w<>.]+:$")
"""The module and the function before a line of source, as Loguru prints them."""

_LINE_OF_SOURCE = lazy_pattern(r"(?:^| - |\s)([A-Za-z_<][\w.<>]*) - $")
"""The function before a line of source between dashes: "INFO - main.py - train - 52 - ..."."""

_SEPARATOR = lazy_pattern(
    r"[,;|:=()\[\]{}\t/<>~*!?\u2502\u2503\u2192]|\s{2,}|\.\s(?=[A-Z])|(?<=\s)[-\u2013\u2014]{1,3}(?=\s|\w)|\s-{2,}|^-\s"
)
_WRAPPER = lazy_pattern(r"(?:tensor|array|np\.float\d\d|np\.array|Array|Var|float|numpy\.float\d\d)\($")
_STOP = lazy_pattern(
    r"(?:^|.*\s)(?:is|of|at|to|was|the|and|in|for|after|with|by|on|from|a|an|as|are|it|got|has|than|"
    r"improved|decreased|increased|reached|this|until|=>|->|After|At|For|In|The|This|Is)(?=\s|$)"
)
_SPREAD_OF = lazy_pattern(r"(?:^|\s)(?:std|stdev|variance|var|min|max|median) of$", re.IGNORECASE)
"""Words without which a name would be that of the value itself: "Std of Reward"."""

_DETAILED = lazy_pattern(
    r"(?:^|[\s,|;:\]])([A-Za-z_]\w{0,30}(?: [A-Za-z]\w{0,30})? \([A-Za-z]\w{0,11}\))\s?[:=]$"
)
"""A name with a word in parentheses: "time (data): 0.3"."""

_GLUED = lazy_pattern(r"(?:%|/?[A-Za-z]{1,6}(?:/[A-Za-z]{1,8})?)(?=[\s,;|)\]])")
"""The unit behind a number."""

_SECTION = lazy_pattern(
    r"(?<![a-z])(train|training|val|valid|validate|validation|dev|test|testing|eval|evaluation)"
    r"(?: set| [A-Za-z]\w{0,15}(?=:))?['\"]?"
    r"(?:\s{0,3}(?:[\])>|:;(]|[-=]>)| on |\s-\s)",
    re.IGNORECASE,
)
"""What stands before the metrics of a part of the data: "[Val] loss 0.5", "{'val': {'loss': 0.6}}"."""

_SECTION_OF_A_COUNT = lazy_pattern(
    r"\s(train|training|val|valid|validation|test|eval|evaluation),\s", re.IGNORECASE
)
"""The same directly behind what counts: "Epoch 3 Val, MAE: 15.2"."""

_COST = lazy_pattern(r"(?:.*\s)?cost", re.IGNORECASE)
"""What is a loss, or behind which a unit of time says how long something took."""

_RANK = lazy_pattern(r"(?:\[default|(?<![a-z_])rank:?)\s{0,9}$", re.IGNORECASE)
"""What stands before the number of a process."""

_COPULA = lazy_pattern(r"(?<=\S)\s(?:is|was|are|of)$")
"""What stands between a name and its number: "loss is 0.5"."""

_TRIM = " \t'\"`#$@&.:=-|([{,<>~*_\u2502\u2503+^\u2192%)]}/!?;"
_LABEL = lazy_pattern(r"\s{0,200}([A-Za-z][\w .-]{0,40}?)\s{0,24}(?::\s|=>|(?:(?<=oss)|(?<=osses))\s\{)")
_COUNTS_PHASE = lazy_pattern(r"(Epoch|Iter|epoch|iter)\s?\((\w{1,20})\):?\s{0,3}\[{0,2}\s{0,3}$")
_BATCH_BEHIND = lazy_pattern(r"\],?\s{1,3}(batch|iter):?\s?\[?", re.IGNORECASE)
_WORD_AFTER = lazy_pattern(r"\s?([A-Za-z_][A-Za-z_/]{0,20})\s{0,2}[)\]|,]")

_NAME_AFTER = lazy_pattern(r"\s([A-Za-z][\w /]{0,30}?)\s{0,3}(?=[,;|)]|$)")
_ENDING = lazy_pattern(r"(?:\s{1,3}(?:is|of|at|to|in|for|after|on|by|from))$|[\s:|=-]{1,9}$")
_BETWEEN = ("/", "of", "out of", "]/[")
"""What stands between a count and its total."""

_MEMBERS = {"fit progress 2": "loss"}
"""What programs print into a tuple without a name: Flower prints (round, loss, metrics, seconds)."""

_COUNTED_UNIT = lazy_pattern(
    r"\s?(?:training )?(steps|iterations|updates|epochs|episodes|games)(?=\s?[:=,]| is )"
)

METRIC = "metric"
MAYBE = "maybe"
TOTAL = "total"
PART = "part"
RANK = "rank"
STAMP = "stamp"
MEASURE = "measure"
OTHER = "other"


class Slot(msgspec.Struct, frozen=True):
    """One number of a template. ``kind`` is one of the words above, or what it counts."""

    name: str
    kind: str


class Reading(msgspec.Struct):
    """The numbers of a line so far. ``texts`` stand around them, ``stamps`` are those that are times."""

    texts: Sequence[str]
    stamps: frozenset[int]
    slots: list[Slot] = msgspec.field(default_factory=list)
    label: str = ""  # of the line: "metrics: ..."
    is_fresh: bool = True  # whether the message of the line has not begun
    heading: str = ""  # the words before the first number
    has_value: bool = False
    has_counter: bool = False
    members: int = 0  # of a tuple so far
    members_of: str = ""
    section: str = ""  # the part of the data that the next names belong to
    sections: list[str] = msgspec.field(default_factory=list)
    tuple_name: str = ""
    metric: str = ""  # of which the numbers before and the next ones are, each of a part of the data
    elapsed: int = -1  # slot of the time that a bar took
    before: str = ""  # the text before the next number, without the unit of the one before it
    after: str = ""

    @property
    def at(self) -> int:
        """The slot of the next number."""
        return len(self.slots)

    @property
    def last(self) -> Slot | None:
        """The number before."""
        return self.slots[-1] if self.slots else None

    @property
    def latest_name(self) -> str:
        """The name of the last value that has one."""
        return next(
            (slot.name for slot in reversed(self.slots) if slot.name and slot.kind in (METRIC, MAYBE)), ""
        )

    def add(self, name: str, kind: str) -> bool:
        """Add a number. Return True, as a recogniser does."""
        self.slots.append(Slot(name, kind))
        return True

    def count(self, name: str, kind: str) -> bool:
        """Add a number that counts, with which the message begins. Return True."""
        self.has_counter = True
        self.is_fresh = False
        return self.add(name, kind)


Recogniser = Callable[[Reading], bool]
"""Says what the next number of a line is; False if it does not know it."""


def read_slots(texts: Sequence[str], stamps: frozenset[int]) -> Reading:
    """Tell what each number is that stands between the texts of a line."""
    reading = Reading(texts, stamps)
    for before, after in pairwise(texts):
        glued = _GLUED.match(before) if reading.at else None
        reading.before = before[glued.end() :] if glued else before
        reading.before = _message(reading.before) if reading.is_fresh else reading.before
        reading.after = after
        if not any(recognises(reading) for recognises in RECOGNISERS):
            _named_number(reading)
    reading.sections += [reading.section] * (len(reading.slots) - len(reading.sections))
    return reading


def _index_of_a_tuple(reading: Reading) -> bool:
    """Recognise the index before what is logged for it: "(0, '172.2')"."""
    if not (reading.before.endswith("(") and reading.after.startswith((", '", ', "'))):
        return False
    reading.tuple_name = name_before(reading.before) or reading.tuple_name
    return reading.add("", OTHER)


def _time(reading: Reading) -> bool:
    """Recognise a date, a clock or the time that a bar took."""
    if reading.at not in reading.stamps:
        return False
    if reading.before.endswith("[") and reading.after.startswith("<"):
        reading.elapsed = reading.at
    reading.is_fresh = reading.is_fresh or (not reading.has_value and not reading.has_counter)
    return reading.add("", STAMP)


def _place_in_the_program(reading: Reading) -> bool:
    """Recognise what a logger names: "train.py:12", "(main.py 12)", "pid=34", "__main__:reward:112 - "."""
    is_place = reading.before.endswith(".py ") and reading.after.startswith("):")
    is_place |= reading.before.rstrip().endswith((".py:", ".cpp:", ".cc:", ".cu:", "pid=", "thread="))
    is_place |= reading.is_fresh and _FUNCTION.search(reading.texts[reading.at][-MAX_NAME:]) is not None
    is_level_next = (
        reading.is_fresh
        and not reading.before.strip(_TRIM)
        and _LOG_LEVEL.match(reading.after.lstrip(" ]|:-"))
    )
    if not (is_place or is_level_next or _is_line_of_source(reading)):
        return False
    reading.is_fresh = True
    is_process = reading.before.endswith("pid=")
    return reading.add("pid" if is_process else "", RANK if is_process else OTHER)


def _is_line_of_source(reading: Reading) -> bool:
    """Return whether the number stands between dashes, behind the name of a function, beside a log level."""
    before = reading.texts[reading.at]
    if not (reading.is_fresh and reading.after.startswith(" - ")):
        return False
    function = _LINE_OF_SOURCE.search(before[-MAX_NAME:])
    if function is None or says_metric(function[1]) or counter(function[1]):
        return False
    is_behind_level = _LOG_LEVEL.search(before) is not None
    return is_behind_level or _LOG_LEVEL.match(reading.after.lstrip(" -")) is not None


def _process_behind_a_time(reading: Reading) -> bool:
    """Recognise the process behind the time of a line: "[2026-01-01 06:31:01][23170]"."""
    last = reading.last if reading.is_fresh else None
    is_process = last is not None and last.kind == STAMP and reading.before.strip() in ("][", "[")
    return is_process and reading.after.startswith("]") and reading.add("", OTHER)


def _count_in_brackets(reading: Reading) -> bool:
    """Recognise what counts at the beginning of a message: "[20] loss=0.5"."""
    last = reading.last if reading.is_fresh else None
    is_count = last is not None and last.kind == OTHER and reading.before.strip() in ("[", "] [")
    return is_count and reading.after.startswith("] ") and reading.count("", "count")


def _rank(reading: Reading) -> bool:
    """Recognise the number of a process: "rank: 3"."""
    if reading.has_value or not _RANK.search(reading.before[-16:]):
        return False
    reading.is_fresh = True
    return reading.add("rank", RANK)


def _total(reading: Reading) -> bool:
    """Recognise the total behind what counts: "3/9", "3 of 9"."""
    last = reading.last
    between = reading.before.strip()
    if last is None or last.kind in (STAMP, RANK, TOTAL) or between not in _BETWEEN:
        return False
    if last.kind in (METRIC, MAYBE):
        _turn_into_part(reading, last)
    elif last.kind == "count" and not last.name:
        reading.slots[-1] = Slot("", PART)
    reading.is_fresh = False
    return reading.add("", TOTAL)


def _turn_into_part(reading: Reading, last: Slot) -> None:
    """Say of the number before a total whether it counts."""
    text = reading.texts[reading.at - 1]
    is_drawn = text.lstrip().startswith("%|")
    is_phase = bool(last.name) and phase(last.name) == last.name
    is_part = (not reading.has_value or is_drawn or is_phase) and last.kind == MAYBE
    is_part = is_part and (not last.name or is_phase)
    is_part = is_part or (not last.name and text.rstrip().endswith("[") and reading.after.startswith("]"))
    if is_phase and is_part:
        reading.heading = last.name
        reading.has_value = any(slot.name for slot in reading.slots[:-1] if slot.kind in (METRIC, MAYBE))
        last = Slot("", PART)
    reading.slots[-1] = Slot(last.name, PART if is_part else OTHER)
    reading.has_counter = reading.has_counter or is_part


def _rank_of_mpi(reading: Reading) -> bool:
    """Recognise the process that mpirun names: "[1,0]<stdout>"."""
    is_process = reading.at == 1 and reading.before == "," and reading.texts[0] == "["
    if not (is_process and reading.after.startswith("]<std")):
        return False
    reading.slots[0] = Slot("", OTHER)
    reading.is_fresh = True
    return reading.add("rank", RANK)


def _count_of_a_phase(reading: Reading) -> bool:
    """Recognise what MMEngine counts: "Epoch(train) [3]"."""
    of_phase = _COUNTS_PHASE.search(reading.before[-48:])
    if of_phase is None:
        return False
    reading.heading = f"({of_phase[2]})"
    return reading.count(of_phase[1], "epoch" if of_phase[1].lower() == "epoch" else "step")


def _part_behind_an_epoch(reading: Reading) -> bool:
    """Recognise the place within an epoch: "[3][50/99]"."""
    last = reading.last
    if last is None or last.kind != "epoch" or reading.before.strip() != "][":
        return False
    reading.is_fresh = False
    return reading.add("", PART)


def _part_behind_a_total(reading: Reading) -> bool:
    """Recognise the place within an epoch whose total is told: "[3/9][50/99]"."""
    is_behind = reading.before.strip() == "][" and [slot.kind for slot in reading.slots[-2:]] == [PART, TOTAL]
    if not is_behind:
        return False
    reading.slots[-2] = Slot("", "epoch")
    return reading.add("", PART)


def _batch_behind_an_epoch(reading: Reading) -> bool:
    """Recognise the batch behind the epoch that stands alone with its total: "[3/9] batch 50/99"."""
    is_behind = [slot.kind for slot in reading.slots[-2:]] in ([PART, TOTAL], [OTHER, TOTAL])
    batch = _BATCH_BEHIND.fullmatch(reading.before) if is_behind else None
    if batch is None or not reading.after.startswith("/"):
        return False
    reading.slots[-2] = Slot("", "epoch")
    return reading.count(batch[1], "batch")


def _count_before_its_word(reading: Reading) -> bool:
    """Recognise what counts before its word: "Test accuracy after 300 steps: 0.5"."""
    may_count = reading.before.endswith((" after ", " after", " in ")) and not reading.has_counter
    word = _COUNTED_UNIT.match(reading.after) if may_count else None
    if word is None:
        return False
    reading.heading = reading.before
    return reading.count("", counter(word[1]) or "step")


def _part_of_a_first_count(reading: Reading) -> bool:
    """Recognise the place within an epoch behind its number, with which the line begins: "3:50 - loss"."""
    first = reading.slots[0] if reading.slots else None
    is_behind = reading.at == 1 and first == Slot("", "count") and reading.before.strip() in (":", ",")
    if not (is_behind and reading.after.startswith((" -", "]"))):
        return False
    reading.slots[0] = Slot("", "epoch")
    reading.is_fresh = False
    return reading.add("", PART)


RECOGNISERS: tuple[Recogniser, ...] = (
    _index_of_a_tuple,
    _time,
    _place_in_the_program,
    _process_behind_a_time,
    _count_in_brackets,
    _rank,
    _total,
    _rank_of_mpi,
    _count_of_a_phase,
    _part_behind_an_epoch,
    _part_behind_a_total,
    _batch_behind_an_epoch,
    _count_before_its_word,
    _part_of_a_first_count,
)
"""What knows a number by what stands around it, in the order in which it is asked."""


def _named_number(reading: Reading) -> None:
    """Add a number that has the name before it, which says what it is."""
    before = reading.before
    after = reading.after
    is_behind_comma = before.rstrip().endswith((",", ";"))
    name = "" if is_behind_comma else name_before(before)
    if before in (", '", ', "'):
        name = reading.tuple_name
    kind = counter(name) if name else None
    if kind == "step" and is_length(name) and any(slot.kind == "episode" for slot in reading.slots):
        kind = None
    last = reading.last
    if kind and last == Slot("", kind) and _COUNTED_UNIT.match(before):
        name = ""
        kind = None
    if name and (after.strip() == "[" or before.endswith("#")) and phase(name) == name:
        reading.heading = name
        kind = "epoch"
        reading.is_fresh = False
    if reading.is_fresh or (kind and not reading.has_counter):
        _add_to_heading(reading, name, kind, before)
    if (
        not name
        and reading.at == 0
        and before.strip() in ("", "[", "#", ".")
        and after[:1] in (":", "]", "\t", " ", "/", "_", ",")
    ):
        kind = "count"
    if not name and not kind:
        name = _name_elsewhere(reading, is_behind_comma)
    if name and before.rstrip().endswith(("(", "[")) and after.strip(" '\"") == ",":
        reading.members = 1
        reading.members_of = name
    _note_section(reading, name, before)
    if reading.is_fresh and not kind and not reading.label:
        reading.label = _line_label(name, before)
    reading.is_fresh = False
    if kind:
        reading.has_counter = True
        reading.add(name, kind)
    else:
        _add_value(reading, name)


def _add_value(reading: Reading, name: str) -> None:
    """Add a number that counts nothing: a metric, or what its unit or its name says is none."""
    name = _with_metric(reading, name)
    unit = unit_of_other(reading.after)
    if unit or says_other(name):
        has_name = bool(name) and name != name_before(_ENDING.sub("", reading.heading))
        name = f"{name} {unit.strip('%|')}".rstrip() if _COST.fullmatch(name) else name
        reading.add(name if has_name else unit.strip("%|"), MEASURE if is_measure(name) else OTHER)
        return
    is_metric = says_metric(name) or (bool(reading.label and name) and says_metric(reading.label))
    reading.add(name, METRIC if is_metric else MAYBE)
    reading.has_value = reading.has_value or bool(name)


def _with_metric(reading: Reading, name: str) -> str:
    """Return the name of a part of the data with the metric that stands before it, or before the parts that
    came first: "LOSS train 0.3 valid 0.4", "loss: train 0.3, val 0.4". A batch within an epoch measures no
    held-out data: it repeats the last evaluation.
    """
    if not name or phase(name) != name:
        metric = name.replace(phase(name) or "\0", "").strip(_TRIM)
        reading.metric = metric if metric != name and says_metric(metric) else ""
        return name
    metric = name_before(reading.before[: reading.before.rfind(name)])
    if says_metric(metric):
        reading.metric = metric
    kinds = {slot.kind for slot in reading.slots}
    is_repeated = "epoch" in kinds and not kinds.isdisjoint(("step", "batch")) and "train" not in name.lower()
    return f"{name} {reading.metric}" if reading.metric and not is_repeated else name


def _add_to_heading(reading: Reading, name: str, kind: str | None, before: str) -> None:
    """Add the words before a number, without those that name it."""
    words = before.rstrip(_TRIM)
    own_words = name.replace("-", " ").split()[-1] if kind and name else name
    words = words[: len(words) - len(own_words)] if words.endswith(own_words) else before
    reading.heading = f"{reading.heading} {words}" if reading.heading else words


def _name_elsewhere(reading: Reading, is_behind_comma: bool) -> str:
    """Return the name of a number without one: what stands behind it, before the others or in the heading."""
    before = reading.before
    after = reading.after
    word = _WORD_AFTER.match(after)
    next_name = _NAME_AFTER.match(after) if is_behind_comma else None
    earlier = reading.latest_name
    if word and earlier and before.strip() in ("(", "[") and not unit_of_other(after):
        return f"{earlier} {word[1]}"
    if next_name:
        return next_name[1]
    if before.strip(" '\"") == "," and reading.members and earlier:
        reading.members += 1
        member = f"{reading.members_of} {reading.members}"
        return _MEMBERS.get(member, member)
    if is_behind_comma or after.strip() in _BETWEEN:
        return ""
    if not (before.strip(_TRIM) or before.strip() in ("", ":", "=", "|")):
        return ""
    if reading.has_value or not reading.has_counter:
        return ""
    return heading_name(reading.heading)


def _note_section(reading: Reading, name: str, before: str) -> None:
    """Note the part of the data that stands before a name."""
    name_begin = before.rfind(name) if name else -1
    is_nested = before[: max(name_begin, 0)].rstrip(" '\"").endswith("{")
    if (reading.has_counter or reading.has_value or is_nested) and name_begin > 0:
        parts = (part[1] for part in _SECTION.finditer(before[:name_begin]))
        is_behind_count = reading.last is not None and counter(reading.last.kind)
        of_count = _SECTION_OF_A_COUNT.match(before) if is_behind_count else None
        reading.section = of_count[1] if of_count else next(parts, reading.section)
    reading.sections += [reading.section] * (len(reading.slots) + 1 - len(reading.sections))


def _line_label(name: str, before: str) -> str:
    """Return what stands before the first name of a line, as in "metrics: loss 0.5"; empty for nothing."""
    label = _LABEL.match(before)
    if label is None or counter(label[1]) or name == label[1]:
        return ""
    return label[1] if before[label.end() :].strip(_TRIM) else ""


def heading_name(heading: str) -> str:
    """Return the name that a heading gives to numbers without one."""
    return name_before(_ENDING.sub("", _ENDING.sub("", heading)))


def _message(text: str) -> str:
    """Return the text without what a logger puts before a message."""
    for level in _LOG_LEVEL.finditer(text[:240]):
        text_after = text[level.end() :]
        if text_after.strip(" \t:|-]>)[") or level.start() == 0:
            text = text_after
            break
    text = text.lstrip(" \t:|-]>)")
    logger = _LOGGER.match(text)
    return text[logger.end() :] if logger else text


def name_before(before: str) -> str:
    """Return the words before a number that name it."""
    text = before[-240:].rstrip()
    detailed = _DETAILED.search(text)
    if detailed:
        return detailed[1]
    wrapper = _WRAPPER.search(text)
    if wrapper:
        text = text[: wrapper.start()]
    text = text.rstrip(_TRIM)
    last = 0
    for separator in _SEPARATOR.finditer(text):
        if (
            text[separator.start()] != "/"
            or not text[: separator.start()][-1:].isalnum()
            or not text[separator.end() :][:1].isalnum()
        ):
            last = separator.end()
    phrase = text[last:].strip(_TRIM)
    phrase = _COPULA.sub("", phrase)
    stop = _STOP.match(phrase)
    if stop and (" " in phrase or not counter(phrase)) and not _SPREAD_OF.search(stop[0]):
        phrase = phrase[stop.end() :]
    words = phrase.split()
    return " ".join(words[-MAX_WORDS:]).strip(_TRIM)[:MAX_NAME]
