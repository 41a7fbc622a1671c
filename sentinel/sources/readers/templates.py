"""One line becomes a masked template and slots, each named by the words before its number."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

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
from sentinel.sources.readers.words import may_be_metric, phase, says_metric

MAX_LINE = 8192
"""Characters of a line; longer ones are skipped."""

MAX_SLOTS = 128
"""Numbers of a line; further ones are not read."""

_IS_TOTAL = re.compile(r"(?:^|/)(?:total|global)[ _/]?", re.IGNORECASE)
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


@lru_cache(2048)
def template(masked: str) -> Template:
    """Name the slots of a masked line and tell what each is."""
    masked, _, marks = masked.partition("\1")
    stamps = frozenset(int(mark) for mark in marks.split(",") if mark)
    texts = masked.split("\0")
    return _of(read_slots(texts, stamps), texts)


def _of(reading: Reading, texts: list[str]) -> Template:
    slots = reading.slots
    sections = reading.sections
    label = reading.label
    heading = reading.heading
    elapsed = reading.elapsed
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
        heading_name(heading),
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
