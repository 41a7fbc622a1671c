"""One line becomes a masked template and slots, each named by the words before its number."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from sentinel.sources.readers.printed_numbers import NUMBER
from sentinel.sources.readers.words import (
    MAX_NAME,
    counter,
    is_measure,
    may_be_metric,
    phase,
    says_metric,
    says_other,
    unit_of_other,
)

MAX_LINE = 8192
"""Characters of a line; longer ones are skipped."""

MAX_SLOTS = 128
"""Numbers of a line; further ones are not read."""

MAX_WORDS = 5
"""Words of a name."""

_LEVEL = re.compile(r"\b(?:INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL|SUCCESS|NOTICE)\b")
_LOGGER = re.compile(r"(?:root|__main__|[A-Za-z_]\w{0,40}(?:\.\w{1,40}){1,6})\s{0,2}[:\]|>-]{1,2}\s?")
_SEPARATOR = re.compile(
    r"[,;|:=()\[\]{}\t/<>~*!?\u2502\u2503\u2192]|\s{2,}|(?<=\s)[-\u2013\u2014]{1,3}(?=\s|\w)|\s-{2,}|^-\s"
)
_WRAPPER = re.compile(r"(?:tensor|array|np\.float\d\d|np\.array|Array|Var|float|numpy\.float\d\d)\($")
_STOP = re.compile(
    r"(?:^|.*\s)(?:is|of|at|to|was|the|and|in|for|after|with|by|on|from|a|an|as|are|it|got|has|than|"
    r"improved|decreased|increased|reached|this|until|=>|->|After|At|For|In|The|This|Is)(?=\s|$)"
)
_DETAILED = re.compile(
    r"(?:^|[\s,|;:\]])([A-Za-z_]\w{0,30}(?: [A-Za-z]\w{0,30})? \([A-Za-z]\w{0,11}\))\s?[:=]$"
)
"""A name with a word in parentheses: "time (data): 0.3"."""

_GLUED = re.compile(r"(?:%|/?[A-Za-z]{1,6}(?:/[A-Za-z]{1,8})?)(?=[\s,;|)\]])")
"""The unit behind a number."""

_SECTION = re.compile(
    r"(?<![a-z])(train|training|val|valid|validate|validation|dev|test|testing|eval|evaluation)"
    r"(?: set| [A-Za-z]\w{0,15}(?=:))?"
    r"(?:\s{0,3}[\])>|:;]| on |\s-\s)",
    re.IGNORECASE,
)
"""What stands before the metrics of a part of the data: "[Val] loss 0.5", "Val: loss 0.6"."""

_RANK = re.compile(r"(?:\[default|(?<![a-z_])rank:?)\s{0,9}$", re.IGNORECASE)
"""What stands before the number of a process."""

_COPULA = re.compile(r"(?<=\S)\s(?:is|was|are|of)$")
"""What stands between a name and its number: "loss is 0.5"."""

_TRIM = " \t'\"`#$@&.:=-|([{,<>~*_\u2502\u2503+^\u2192%)]}/!?;"
_LABEL = re.compile(r"\s{0,200}([A-Za-z][\w .-]{0,40}?)\s{0,24}(?::\s|=>|(?:(?<=oss)|(?<=osses))\s\{)")
_COUNTS_PHASE = re.compile(r"(Epoch|Iter|epoch|iter)\s?\((\w{1,20})\):?\s{0,3}\[{0,2}\s{0,3}$")
_WORD_AFTER = re.compile(r"\s?([A-Za-z_][A-Za-z_/]{0,20})\s{0,2}[)\]|,]")

_NAME_AFTER = re.compile(r"\s([A-Za-z][\w /]{0,30}?)\s{0,3}(?=[,;|)]|$)")
_ENDING = re.compile(r"(?:\s{1,3}(?:is|of|at|to|in|for|after|on|by|from))$|[\s:|=-]{1,9}$")
_BETWEEN = ("/", "of", "out of", "]/[")
"""What stands between a count and its total."""

_MEMBERS = {"fit progress 2": "loss"}
"""What programs print into a tuple without a name: Flower prints (round, loss, metrics, seconds)."""

_IS_TOTAL = re.compile(r"(?:^|/)(?:total|global)[ _/]?", re.IGNORECASE)
_COUNTED = re.compile(r"\s?(?:training )?(steps|iterations|updates|epochs|episodes|games)(?=\s?[:=,]| is )")
_SAYS_NOTHING = re.compile(r"(?:averaged? )?(?:stats|metrics|results?|losses)", re.IGNORECASE)
"""Headings of metrics that are no part of their names."""

_OF_TRAINING = re.compile(r"(?:train|training|trn)", re.IGNORECASE)
_SHARE = re.compile(
    r"((?:acc|accuracy|correct|precision|recall)\s{0,3}[:=]\s{0,3})(\d{1,15})/(\d{1,15})"
    r" \(\d{1,3}(?:\.\d{1,9})?%\)",
    re.IGNORECASE,
)
"""What of a whole was right: "Accuracy: 9836/10000 (98%)"."""

_WINDOW = re.compile(
    r" (?:(?:of|over|in|for|from) )?(?:the )?(last|past|over) (\d{1,7})"
    r" (?:eps?|episodes?|games?|steps|iterations|iters|epochs|batches|updates)(?![a-z])",
    re.IGNORECASE,
)
"""What an average is of: "Avg reward last 100 episodes: 3.5"."""

_WINDOW_ASIDE = re.compile(r" \((1\d{0,6}) (?:eps?|episodes?|games?)\)(?=\s?[:=])", re.IGNORECASE)
"""The same in parentheses: "Mean reward (100 episodes): 3.5"."""

_DOTTED = re.compile(r"poch\.(?=\d)")
"""What stands between the word and the number: "---Epoch.12"."""

_PAD = re.compile(r"   +")

METRIC = "metric"
MAYBE = "maybe"
TOTAL = "total"
PART = "part"
RANK = "rank"
STAMP = "stamp"
MEASURE = "measure"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Slot:
    """One number of a template. ``kind`` is one of the words above, or what it counts."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Template:
    """The slots of a line, and what its beginning says.

    ``values`` are the places and names of what may be a metric, ``counters`` the places, kinds and places of
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
    if "%)" in line:
        line = _SHARE.sub(lambda share: f"{share[1]}{int(share[2]) / max(1, int(share[3]))}", line)
    if "   " in line:
        line = _PAD.sub("  ", line)
    if " last " in line or " past " in line or " over " in line:
        line = _WINDOW.sub(r" \1\2", line)
    if " (1" in line:
        line = _WINDOW_ASIDE.sub(r" (last\1)", line)
    if "poch." in line:
        line = _DOTTED.sub("poch ", line)
    parts = NUMBER.split(line, MAX_SLOTS)
    numbers = parts[1::2]
    masked = "\0".join(parts[::2])
    if ":" in "".join(numbers):
        masked += "\1" + ",".join([str(at) for at, text in enumerate(numbers) if ":" in text])
    return masked, numbers


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


def _message(text: str) -> str:
    """Return the text without what a logger puts before a message."""
    for level in _LEVEL.finditer(text[:240]):
        text_after = text[level.end() :]
        if text_after.strip(" \t:|-]>)[") or level.start() == 0:
            text = text_after
            break
    text = text.lstrip(" \t:|-]>)")
    logger = _LOGGER.match(text)
    return text[logger.end() :] if logger else text


def _name(before: str) -> str:
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
    if stop and (" " in phrase or not counter(phrase)):
        phrase = phrase[stop.end() :]
    words = phrase.split()
    return " ".join(words[-MAX_WORDS:]).strip(_TRIM)[:MAX_NAME]


@lru_cache(2048)
def template(masked: str) -> Template:
    """Name the slots of a masked line and tell what each is."""
    masked, _, marks = masked.partition("\1")
    stamps = {int(mark) for mark in marks.split(",") if mark}
    texts = masked.split("\0")
    slots: list[Slot] = []
    label = ""
    fresh = True
    heading = ""
    has_value = False
    has_counter = False
    members = 0
    members_of = ""
    section = ""
    sections: list[str] = []
    tuple_name = ""
    elapsed = -1
    for at in range(len(texts) - 1):
        before = texts[at]
        after = texts[at + 1]
        if at and (glued := _GLUED.match(before)):
            before = before[glued.end() :]
        if fresh:
            before = _message(before)
        if before.endswith("(") and after.startswith((", '", ', "')):
            tuple_name = _name(before) or tuple_name  # (0, '172.2'): an index, and what is logged for it
            slots.append(Slot("", OTHER))
            continue
        if at in stamps:
            if before.endswith("[") and after.startswith("<"):
                elapsed = at
            slots.append(Slot("", STAMP))
            fresh = fresh or (not has_value and not has_counter)
            continue
        if before.rstrip().endswith((".py:", "pid=", "thread=", "file.py:")) or (
            fresh and not before.strip(_TRIM) and _LEVEL.match(after.lstrip(" ]|:-"))
        ):
            slots.append(
                Slot("pid" if before.endswith("pid=") else "", RANK if before.endswith("pid=") else OTHER)
            )
            fresh = True
            continue
        if (
            fresh
            and at
            and slots[-1].kind == STAMP
            and before.strip() in ("][", "[")
            and after.startswith("]")
        ):
            slots.append(Slot("", OTHER))
            continue
        if (
            fresh
            and at
            and before.strip() in ("[", "] [")
            and after.startswith("] ")
            and slots[-1].kind == OTHER
        ):
            slots.append(Slot("", "count"))
            has_counter = True
            fresh = False
            continue
        if not has_value and _RANK.search(before[-16:]):
            slots.append(Slot("rank", RANK))
            fresh = True
            continue
        if (
            slots
            and slots[-1].kind not in (STAMP, RANK, TOTAL)
            and before.strip() in _BETWEEN
            and (before.strip() != "][" or slots[-1].kind != "epoch")
        ):
            previous = slots[-1]
            if previous.kind in (METRIC, MAYBE):
                is_drawn = texts[at - 1].lstrip().startswith("%|")
                is_phase = bool(previous.name) and phase(previous.name) == previous.name
                is_part = (not has_value or is_drawn or is_phase) and previous.kind == MAYBE
                is_part = is_part and (not previous.name or is_phase)
                is_part = is_part or (
                    not previous.name and texts[at - 1].rstrip().endswith("[") and after.startswith("]")
                )
                if is_phase and is_part:
                    heading = previous.name
                    has_value = any(slot.name for slot in slots[:-1] if slot.kind in (METRIC, MAYBE))
                    previous = Slot("", PART)
                slots[-1] = Slot(previous.name, PART if is_part else OTHER)
                has_counter = has_counter or is_part
            elif previous.kind == "count" and not previous.name:
                slots[-1] = Slot("", PART)
            slots.append(Slot("", TOTAL))
            fresh = False
            continue
        if at == 1 and before == "," and texts[0] == "[" and after.startswith("]<std"):
            slots[0] = Slot("", OTHER)
            slots.append(Slot("rank", RANK))
            fresh = True
            continue
        of_phase = _COUNTS_PHASE.search(before[-48:])
        if of_phase:
            heading = f"({of_phase[2]})"
            slots.append(Slot(of_phase[1], "epoch" if of_phase[1].lower() == "epoch" else "step"))
            has_counter = True
            fresh = False
            continue
        if before.strip() == "][" and slots and slots[-1].kind == "epoch":
            slots.append(Slot("", PART))
            fresh = False
            continue
        if before.strip() == "][" and len(slots) > 1 and slots[-1].kind == TOTAL and slots[-2].kind == PART:
            slots[-2] = Slot("", "epoch")
            slots.append(Slot("", PART))
            continue
        count_after = _COUNTED.match(after) if before.endswith((" after ", " after", " in ")) else None
        if count_after and not has_counter:
            heading = before
            has_counter = True
            fresh = False
            slots.append(Slot("", counter(count_after[1]) or "step"))
            continue
        is_behind_comma = before.rstrip().endswith((",", ";"))
        name = "" if is_behind_comma else _name(before)
        if before in (", '", ', "'):
            name = tuple_name
        kind = counter(name) if name else None
        if kind and slots and slots[-1].kind == kind and not slots[-1].name and at and _COUNTED.match(before):
            name = ""
            kind = None
        if name and after.strip() == "[" and phase(name) == name:
            heading = name
            kind = "epoch"
            fresh = False
        if (
            at == 1
            and slots[0].kind == "count"
            and not slots[0].name
            and before.strip() in (":", ",")
            and after.startswith((" -", "]"))
        ):
            slots[0] = Slot("", "epoch")
            slots.append(Slot("", PART))
            fresh = False
            continue
        if fresh or (kind and not has_counter):
            words = before.rstrip(_TRIM)
            own_words = name.split()[-1] if kind and name else name
            words = words[: len(words) - len(own_words)] if words.endswith(own_words) else before
            heading = f"{heading} {words}" if heading else words
        if (
            not name
            and at == 0
            and before.strip() in ("", "[", "#", ".")
            and after[:1] in (":", "]", "\t", " ", "/", "_", ",")
        ):
            kind = "count"
        if not name and not kind:
            word = _WORD_AFTER.match(after)
            next_name = _NAME_AFTER.match(after) if is_behind_comma else None
            earlier = next(
                (slot.name for slot in reversed(slots) if slot.name and slot.kind in (METRIC, MAYBE)), ""
            )
            if word and earlier and before.strip() in ("(", "[") and not unit_of_other(after):
                name = f"{earlier} {word[1]}"
            elif next_name:
                name = next_name[1]
            elif before.strip(" '\"") == "," and members and earlier:
                members += 1
                name = _MEMBERS.get(f"{members_of} {members}", f"{members_of} {members}")
            elif is_behind_comma or after.strip() in _BETWEEN:
                name = ""
            elif before.strip(_TRIM) or before.strip() in ("", ":", "=", "|"):
                name = (
                    _name(_ENDING.sub("", _ENDING.sub("", heading))) if not has_value and has_counter else ""
                )
        if name and before.rstrip().endswith(("(", "[")) and after.strip(" '\"") == ",":
            members = 1
            members_of = name
        own = before.rfind(name) if name else -1
        if has_counter and own > 0:
            section = next((part[1] for part in _SECTION.finditer(before[:own])), section)
        sections += [section] * (len(slots) + 1 - len(sections))
        if fresh and not kind and not label:
            label_match = _LABEL.match(before)
            if (
                label_match
                and not counter(label_match[1])
                and before[label_match.end() :].strip(_TRIM)
                and name != label_match[1]
            ):
                label = label_match[1]
        unit = unit_of_other(after)
        is_other = bool(unit) or says_other(name)
        if kind:
            has_counter = True
            slots.append(Slot(name, kind))
        elif is_other:
            has_name = bool(name) and name != _name(_ENDING.sub("", heading))
            slots.append(Slot(name if has_name else unit.strip("%|"), MEASURE if is_measure(name) else OTHER))
        else:
            is_metric = says_metric(name) or (bool(label) and bool(name) and says_metric(label))
            slots.append(Slot(name, METRIC if is_metric else MAYBE))
            has_value = has_value or bool(name)
        fresh = False
    sections += [section] * (len(slots) - len(sections))
    return _of(slots, sections, label, heading, elapsed, texts)


def _of(
    slots: list[Slot], sections: list[str], label: str, heading: str, elapsed: int, texts: list[str]
) -> Template:
    counters: list[tuple[int, str, int]] = []
    for at, slot in enumerate(slots):
        if slot.kind in ("epoch", "step", "batch", "episode", "frame", "count", PART):
            has_total = at + 1 < len(slots) and slots[at + 1].kind == TOTAL
            counters.append((at, slot.kind, at + 1 if has_total else -1))
    counters.sort(key=lambda each: not _IS_TOTAL.search(slots[each[0]].name) or each[1] == "count")
    rank = next((at for at, slot in enumerate(slots) if slot.kind == RANK), -1)
    is_first = len(counters) > 1 and counters[0][:2] == (0, "count") and counters[0][2] < 0
    if is_first and rank < 0 and not texts[0].strip() and texts[1].startswith(": "):
        rank = 0
        del counters[0]
    for at, slot in enumerate(slots[:-1]):
        following = slots[at + 1].name
        if slot.kind == MAYBE and not slot.name and following[:4].lower() in ("avg ", "mean"):
            slots[at] = Slot(following[4:].strip(), slots[at + 1].kind)
    whole_prefix = phase(heading) or ("" if _SAYS_NOTHING.fullmatch(label) else label)
    names_of = _with_parts(
        [slot.name if slot.kind in (METRIC, MAYBE) else "" for slot in slots], not counters
    )
    values: list[tuple[int, str]] = []  # of metrics, and what is measured beside them
    uses: dict[str, int] = {}
    nameless = [at for at, slot in enumerate(slots) if slot.kind == MAYBE and not slot.name]
    is_bare = not any(slot.name for slot in slots if slot.kind in (METRIC, MAYBE)) and bool(nameless)
    has_words = any(map(str.isalpha, "".join(texts)))
    if is_bare and len(nameless) == 1 and (counters or not has_words):
        values.append((nameless[0], ""))
    elif is_bare and not has_words:
        values += [(at, str(at)) for at in nameless]
    values_of_metrics = bool(values) or any(slot.name for slot in slots if slot.kind in (METRIC, MAYBE))
    if not values_of_metrics:
        return _without_values(slots, counters, rank, elapsed, texts)
    for at, slot in enumerate(slots):
        if slot.kind == "epoch":
            values.append((at, "epoch"))
        if slot.kind in ("step", "episode", "frame") and slot.name:
            values.append((at, slot.name))
        if (
            slot.kind == TOTAL
            and slots[at - 1].kind == "step"
            and not any(each.kind == "epoch" for each in slots)
        ):
            values.append((at, "max_steps"))
        if slot.kind not in (METRIC, MAYBE, MEASURE) or not slot.name:
            continue
        name = names_of[at] or slot.name
        prefix = sections[at] or whole_prefix
        if counters and _OF_TRAINING.fullmatch(prefix):
            prefix = ""
        if not prefix and slot.kind == METRIC and not says_metric(name):
            prefix = label  # "Losses {'ner': 0.5}"
        is_named = bool(prefix) and (not heading.startswith("(") or "loss" in name)
        if slot.kind != MEASURE and is_named and prefix.lower() not in name.lower() and not phase(name):
            name = f"{prefix} {name}"
        uses[name] = uses.get(name, 0) + 1
        if uses[name] > 1:
            name = f"{name} {uses[name]}"
        values.append((at, name))
    stamp = next((at for at, slot in enumerate(slots) if slot.kind == STAMP), -1)
    return Template(
        tuple(slots),
        tuple(sorted(values)),
        tuple(counters),
        rank,
        stamp,
        elapsed,
        _is_nameless(texts),
        any(slot.kind == METRIC and slot.name for slot in slots),
        any(slot.kind == MAYBE and may_be_metric(slot.name) for slot in slots),
        is_bare,
        tuple(name for _, name in sorted(values)),
        _name(_ENDING.sub("", _ENDING.sub("", heading))),
    )


def _with_parts(names: list[str], is_whole: bool) -> list[str]:
    """Return the names with the part of the data that stands before an earlier one: "train loss 2, acc 0.1".

    A name that comes twice belongs to the part before it. Of a line that ``is_whole`` about one part, all do.
    """
    parts = [part for part in map(phase, filter(None, names)) if part]
    first = next(filter(None, names), "")
    above, _, metric = first.partition(f" {parts[0]} ") if parts else ("", "", "")
    is_of_one = is_whole and len(parts) == 1 and first.startswith(f"{parts[0]} ")
    uses = Counter(names)
    part = ""
    named = []
    for name in names:
        part = phase(name) or part
        belongs = name and not phase(name) and part and (is_of_one or uses[name] > 1)
        if metric and name and name != first and name == f"{phase(name)} {metric}":
            part_above = above  # "bench val acc: 1, test acc: 2"
        else:
            part_above = part if belongs else ""
        named.append(f"{part_above} {name}".strip())
    return named


def _without_values(
    slots: list[Slot], counters: list[tuple[int, str, int]], rank: int, elapsed: int, texts: list[str]
) -> Template:
    nameless = _is_nameless(texts)
    return Template(
        tuple(slots), (), tuple(counters), rank, -1, elapsed, nameless, False, False, False, (), ""
    )


def _is_nameless(texts: list[str]) -> bool:
    """Return whether a line begins with the percentage of a bar, as that of a whole training does."""
    return not texts[0].strip() and texts[1].startswith("%|")
