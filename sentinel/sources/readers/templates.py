"""One line becomes a masked template and slots, each named by the words before its number."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.listed import one_by_one
from sentinel.sources.readers.prefixes import without_places
from sentinel.sources.readers.printed_numbers import NUMBER
from sentinel.sources.readers.slots import (
    MAYBE,
    MEASURE,
    METRIC,
    PART,
    RANK,
    STAMP,
    TOTAL,
    Reading,
    Slot,
    heading_name,
    read_slots,
)
from sentinel.sources.readers.thresholds import plain_thresholds
from sentinel.sources.readers.words import may_be_metric, phase, says_metric, without_remarks

MAX_LINE = 8192
"""Characters of a line; longer ones are skipped."""

MIN_NAMES = 2
"""Names of a header with commas; a line with no more may be a sentence."""

MAX_SLOTS = 128
"""Numbers of a line; further ones are not read."""

_IS_TOTAL = lazy_pattern(r"(?:^|/)(?:total|global)[ _/]?", re.IGNORECASE)
_SAYS_NOTHING = lazy_pattern(r"(?:averaged? )?(?:stats|metrics|results?|losses)", re.IGNORECASE)
"""Headings of metrics that are no part of their names."""

_OF_TRAINING = lazy_pattern(r"(?:train|training|trn)", re.IGNORECASE)
_SHARE = lazy_pattern(
    r"(acc|accuracy|correct|precision|recall)(\s{0,3}[:=]\s{0,3})(\d{1,15})/(\d{1,15})"
    r"(?: \(\d{1,3}(?:\.\d{1,9})?%\)| = \d{1,3}(?:\.\d{1,20})?%)",
    re.IGNORECASE,
)
"""What of a whole was right: "Accuracy: 9836/10000 (98%)", "correct: 9836/10000 = 98.36%"."""

_WINDOW = lazy_pattern(
    r" (?:(?:of|over|in|for|from) )?(?:the )?(last|over) (\d{1,7})"
    r" (?:eps?|episodes?|games?|steps|iterations|iters|epochs|batches|updates)(?![a-z])",
    re.IGNORECASE,
)
"""What an average is of: "Avg reward last 100 episodes: 3.5"."""

_WINDOW_ASIDE = lazy_pattern(
    r" \((?:(?:(?:of|over) )?(?:the )?(?:last|past) (\d{1,7})"
    r"(?: (?:eps?|episodes?|games?|steps|epochs|updates))?"
    r"|(1\d{0,6}) (?:eps?|episodes?|games?))\)(?=\s{0,3}[:=])",
    re.IGNORECASE,
)
"""The same in parentheses: "Mean reward (100 episodes): 3.5", "Mean reward (last 20): 3.5"."""

_ON_PART = lazy_pattern(
    r"(accuracy|acc|loss|error|f1|f1[ -]score|score)(?: of the (?:network|model))?"
    r" (?:on|over) (?:the )?(?:\d{1,9} )?"
    r"(train|training|test|testing|val|valid|validation|dev|eval|evaluation)"
    r"(?:[ -](?:set|data|dataset|images|samples|examples|split))?(?=\s{0,3}[:=]| (?:is|was) )",
    re.IGNORECASE,
)
"""The part of the data behind a name: "Accuracy of the network on the 10000 test images: 55 %"."""

_SQUARED = lazy_pattern(r"(?<![A-Za-z])R(?:\^|\*\*)2(?!\d)")
"""How the coefficient of determination is printed: "R^2 = 0.8"."""

_SEVERAL = lazy_pattern(
    r"(?<![\w/])([A-Za-z]{3,20}(?:/[A-Za-z]{3,20}){1,3})(?: ([A-Za-z]{3,20}))?\s?[:=]?\s?"
    r"([-+]?\d{1,20}(?:\.\d{1,20})?(?:/[-+]?\d{1,20}(?:\.\d{1,20})?){1,3})(?![\w./])"
)
"""Several numbers under one name: "mean/median reward 20.5/21.0"."""

_FULL_WIDTH = str.maketrans(
    {
        "\N{FULLWIDTH COLON}": ": ",
        "\N{FULLWIDTH COMMA}": ", ",
        "\N{FULLWIDTH SEMICOLON}": "; ",
        "\N{FULLWIDTH LEFT PARENTHESIS}": " (",
        "\N{FULLWIDTH RIGHT PARENTHESIS}": ") ",
        "\N{FULLWIDTH PERCENT SIGN}": "%",
        "\N{FULLWIDTH EQUALS SIGN}": "=",
    }
)
"""Signs of Chinese and Japanese texts that separate names and numbers as those of ASCII do."""

_ORDINAL = lazy_pattern(r"第\s?(\d{1,9})\s?(?:/\s?(\d{1,9})\s?)?(?:个\s?)?(轮|回合|代|步|epoch)")
_COUNTED = {"轮": "epoch", "回合": "episode", "代": "generation", "步": "step", "epoch": "epoch"}
"""How Chinese texts count: "第3轮" is the third epoch."""

_SPANS = lazy_pattern(r"(?:Span|Classify)FPreRecMetric: f=(\S{1,20}), pre=(\S{1,20}), rec=(\S{1,20})")
"""What fastNLP measured of the names in texts, or of classes."""

_EVALUATED = "Saving dict for global step "
"""How TensorFlow's estimators begin the results of an evaluation."""

_DOTTED = lazy_pattern(r"poch\.(?=\d)")
"""What stands between the word and the number: "---Epoch.12"."""

_LAYER = lazy_pattern(r"\s*\([\w.\0-]+\): [A-Z]\w*\(")
"""A line of a printed model: "(norm1): BatchNorm2d(64, eps=1e-05)"."""

_RAISED = lazy_pattern(r"\s*(?:\w+\.)*[A-Z]\w*Error: (?=[\[A-Za-z'\"])")
"""The last line of a traceback, which names no metric: "FileNotFoundError: [Errno 2] ..."."""

_PAD = lazy_pattern(r"   +")


class Template(msgspec.Struct, frozen=True):
    """The slots of a line, and what its beginning says.

    ``values`` are the slots and names of what may be a metric, ``counters`` the slots, kinds and places of
    the totals (-1 for none) of what counts. ``sure`` says that one name surely is that of a metric,
    ``is_named`` that a person named the slots.
    """

    slots: tuple[Slot, ...]
    values: tuple[tuple[int, str], ...]
    counters: tuple[tuple[int, str, int], ...]
    rank: int
    stamp: int
    elapsed: int
    is_nameless_bar: bool
    sure: bool
    weak: bool
    bare: bool
    names: tuple[str, ...]
    heading: str
    is_named: bool = False


def mask(line: str) -> tuple[str, list[str]]:
    """Return the masked line and the numbers in it, in time linear in its length."""
    line = without_places(line)
    if not line.isascii():
        line = _ORDINAL.sub(_counted, line.translate(_FULL_WIDTH))
    if "95" in line:
        line = plain_thresholds(line)
    if "/" in line:
        line = _SEVERAL.sub(_one_by_one, line)
    line = one_by_one(line)
    if "%" in line:
        line = _SHARE.sub(_share, line)
    if "   " in line:
        line = _PAD.sub("  ", line)
    if "FPreRecMetric" in line:
        line = _SPANS.sub(r"dev f1: \1, dev precision: \2, dev recall: \3", line)
    if _EVALUATED in line:
        line = line.replace(_EVALUATED, "eval at global step ")
    if " last " in line or " over " in line:
        line = _WINDOW.sub(r" \1\2", line)
    if " (" in line:
        line = _WINDOW_ASIDE.sub(lambda window: f" (last{window[1] or window[2]})", line)
    if " on " in line:
        line = _ON_PART.sub(r"\2 \1", line)
    line = without_remarks(line)
    if "R^2" in line or "R**2" in line:
        line = _SQUARED.sub("R2", line)
    if "poch." in line:
        line = _DOTTED.sub("poch ", line)
    parts = NUMBER.split(line, MAX_SLOTS)
    numbers = parts[1::2]
    masked = "\0".join(parts[::2])
    printed = "".join(numbers)
    if ":" in printed or "m" in printed:  # clocks, and durations
        masked += "\1" + ",".join([str(at) for at, text in enumerate(numbers) if ":" in text or "m" in text])
    return masked, numbers


def _counted(ordinal: re.Match[str]) -> str:
    """Return a count in Chinese as it is printed in English."""
    of = f"/{ordinal[2]}" if ordinal[2] else ""
    return f"{_COUNTED[ordinal[3]]} {ordinal[1]}{of} "


def _share(part: re.Match[str]) -> str:
    """Return what of a whole was right as a share: as the accuracy, where it is only called correct."""
    name = "accuracy" if part[1].lower() == "correct" else part[1]
    return f"{name}{part[2]}{int(part[3]) / max(1, int(part[4]))}"


def _one_by_one(several: re.Match[str]) -> str:
    """Return several numbers under one name each with a name of its own."""
    names = several[1].split("/")
    numbers = several[3].split("/")
    if len(names) != len(numbers):
        return several[0]
    of = several[2] or ""
    return ", ".join(f"{name} {of}: {each}" for name, each in zip(names, numbers, strict=True))


def header(line: str) -> list[str]:
    """Return the names in a line that is the header of columns; none if it is none."""
    text = line.partition(": ")[0].partition("|")[0].strip()
    words = text.split()
    if not 4 <= len(words) <= 32 or len(text) > 400 or text.count("  ") < 3:
        return []
    if not all(word[0].isalpha() and len(word) <= 24 and not word.endswith((",", ".")) for word in words):
        return []
    if any("=" in word or ":" in word for word in words):
        return []
    return [word.rstrip("):") for word in words]


_CELL_NAME = lazy_pattern(r"[A-Za-z][\w./@-]{0,39}(?: [A-Za-z][\w./@-]{0,39})?")
"""The name of a column of a table with commas, of two words at most."""

_DASHED = lazy_pattern(r".*[a-z]-(?:\d{1,9}\.\d{1,20}|nan|inf)", re.IGNORECASE)
"""A name with its value behind a dash: "loss-0.5"."""


def comma_header(line: str) -> list[str]:
    """Return the names in a line that is the header of a table with commas; none if it is none.

    Pandas leaves the column that numbers the rows without a name.
    """
    first, *others = (cell.strip() for cell in line.split(",", MAX_SLOTS))
    names = [first or "index", *others]
    is_header = len(names) > MIN_NAMES and all(map(_CELL_NAME.fullmatch, names))
    is_header = is_header and not any(map(_DASHED.fullmatch, names))
    return names if is_header and any(map(says_metric, names)) else []


@lru_cache(2048)
def template(masked: str) -> Template:
    """Name the slots of a masked line and tell what each is."""
    masked, _, marks = masked.partition("\1")
    stamps = frozenset(int(mark) for mark in marks.split(",") if mark)
    texts = masked.split("\0")
    if _LAYER.match(masked) or _RAISED.match(masked):
        return _of(Reading(texts, stamps))
    return _of(read_slots(texts, stamps))


Count = tuple[int, str, int]
"""The slot, the kind and the slot of the total of what counts; -1 for no total."""


def _of(reading: Reading) -> Template:
    """Put together what is known of the numbers of a line."""
    slots = reading.slots
    _take_for_epoch(slots)
    counters = _counters(slots)
    rank = next((at for at, slot in enumerate(slots) if slot.kind == RANK), -1)
    if rank < 0 and _begins_with_process(reading.texts, counters):
        rank = 0
        del counters[0]
    _take_names_behind(slots)
    nameless = [at for at, slot in enumerate(slots) if slot.kind == MAYBE and not slot.name]
    has_names = any(slot.name for slot in slots if slot.kind in (METRIC, MAYBE))
    is_bare = bool(nameless) and not has_names
    values = _bare_values(nameless, bool(counters), reading.texts) if is_bare else []
    if has_names or values:
        values = sorted([*values, *_beside_values(slots), *_named_values(reading, bool(counters))])
    else:
        is_bare = False
    stamp = next((at for at, slot in enumerate(slots) if slot.kind == STAMP), -1)
    return Template(
        slots=tuple(slots),
        values=tuple(values),
        counters=tuple(counters),
        rank=rank,
        stamp=stamp if values else -1,
        elapsed=reading.elapsed,
        is_nameless_bar=not reading.texts[0].strip() and reading.texts[1].startswith("%|"),
        sure=any(slot.kind == METRIC and slot.name for slot in slots),
        weak=any(slot.kind == MAYBE and may_be_metric(slot.name) for slot in slots),
        bare=is_bare,
        names=tuple(name for _, name in values),
        heading=heading_name(reading.heading) if values else "",
    )


def _take_for_epoch(slots: list[Slot]) -> None:
    """Take an iteration that tells which of its steps it is at for an epoch: "iteration:3 step:20/90", as
    ChineseNER prints it.
    """
    for at, three in enumerate(zip(slots, slots[1:], slots[2:], strict=False)):
        if [slot.kind for slot in three] == ["step", "step", TOTAL] and three[0].name.lower() == "iteration":
            slots[at] = Slot("epoch", "epoch")


def _counters(slots: Sequence[Slot]) -> list[Count]:
    """Return what counts, first what counts over the whole training."""
    counters: list[Count] = []
    for at, slot in enumerate(slots):
        if slot.kind in ("epoch", "step", "batch", "episode", "frame", "count", PART):
            has_total = at + 1 < len(slots) and slots[at + 1].kind == TOTAL
            counters.append((at, slot.kind, at + 1 if has_total else -1))
    counters.sort(key=lambda each: not _IS_TOTAL.search(slots[each[0]].name) or each[1] == "count")
    return counters


def _begins_with_process(texts: Sequence[str], counters: Sequence[Count]) -> bool:
    """Return whether the first number of a line that counts is that of a process: "3: step 5 ..."."""
    is_count = len(counters) > 1 and counters[0] == (0, "count", -1)
    return is_count and not texts[0].strip() and texts[1].startswith(": ")


def _take_names_behind(slots: list[Slot]) -> None:
    """Give numbers without a name that of their average behind them: "loss 0.5 avg loss 0.6"."""
    for at, slot in enumerate(slots[:-1]):
        following = slots[at + 1]
        if slot.kind == MAYBE and not slot.name and following.name[:4].lower() in ("avg ", "mean"):
            slots[at] = Slot(following.name[4:].strip(), following.kind)


def _bare_values(nameless: Sequence[int], counts: bool, texts: Sequence[str]) -> list[tuple[int, str]]:
    """Return the numbers of a line that names none: the only one, or all if it holds no words."""
    has_words = any(map(str.isalpha, "".join(texts)))
    if len(nameless) == 1 and (counts or not has_words):
        return [(nameless[0], "")]
    return [] if has_words else [(at, str(at)) for at in nameless]


def _beside_values(slots: Sequence[Slot]) -> Iterator[tuple[int, str]]:
    """Yield what counts and is read beside the metrics: a total, too, of what the steps are."""
    kinds = {slot.kind for slot in slots}
    of_steps = next((kind for kind in ("epoch", "step", "frame", "episode") if kind in kinds), "")
    for at, slot in enumerate(slots):
        if slot.kind == "epoch":
            yield at, "epoch"
        elif slot.kind in ("step", "episode", "frame") and slot.name:
            yield at, slot.name
        elif slot.kind == TOTAL and slots[at - 1].kind == of_steps != "epoch":
            yield at, "max_steps"


def _named_values(reading: Reading, counts: bool) -> Iterator[tuple[int, str]]:
    """Yield the values that have a name, each with a name of its own."""
    slots = reading.slots
    names = _with_parts([slot.name if slot.kind in (METRIC, MAYBE) else "" for slot in slots], not counts)
    uses: Counter[str] = Counter()
    for at, slot in enumerate(slots):
        if slot.kind not in (METRIC, MAYBE, MEASURE) or not slot.name:
            continue
        name = names[at] or slot.name
        if slot.kind != MEASURE:
            name = _with_prefix(name, _prefix(reading, at, name, counts), reading.heading)
        uses[name] += 1
        if uses[name] > 1:
            name = f"{name} {uses[name]}"
        yield at, name


def _prefix(reading: Reading, at: int, name: str, counts: bool) -> str:
    """Return what stands before the name of a value: the part of the data, or the label of the line."""
    label = "" if _SAYS_NOTHING.fullmatch(reading.label) else reading.label
    prefix = reading.sections[at] or phase(reading.heading) or label
    if counts and _OF_TRAINING.fullmatch(prefix):
        prefix = ""
    if not prefix and reading.slots[at].kind == METRIC and not says_metric(name):
        return reading.label  # "Losses {'ner': 0.5}"
    return prefix


def _with_prefix(name: str, prefix: str, heading: str) -> str:
    """Return the name with what stands before it, if it does not say so itself."""
    is_stated = (
        prefix.lower() in name.lower() or phase(name) or (heading.startswith("(") and "loss" not in name)
    )
    return name if not prefix or is_stated else f"{prefix} {name}"


def _with_parts(names: list[str], is_whole: bool) -> list[str]:
    """Return the names with the part of the data that stands before an earlier one: "train loss 2, acc 0.1".

    A name that comes twice belongs to the part before it. Of a line that ``is_whole`` about one part, all do.
    """
    parts = [part for part in map(phase, filter(None, names)) if part]
    first_name = next(filter(None, names), "")
    above, _, metric = first_name.partition(f" {parts[0]} ") if parts else ("", "", "")
    is_of_one = is_whole and len(parts) == 1 and first_name.startswith(f"{parts[0]} ")
    uses = Counter(names)
    part = ""
    named_slots = []
    for name in names:
        part = phase(name) or part
        belongs = name and not phase(name) and part and (is_of_one or uses[name] > 1)
        if metric and name and name != first_name and name == f"{phase(name)} {metric}":
            part_above = above  # "bench val acc: 1, test acc: 2"
        else:
            part_above = part if belongs else ""
        named_slots.append(f"{part_above} {name}".strip())
    return named_slots
