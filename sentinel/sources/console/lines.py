"""Parses one line that a training printed.

Frameworks print a few shapes: a dictionary (HF Trainer, ms-swift, fairseq's JSON), a table of two columns
(Spinning Up, Baselines, Stable-Baselines3), a step with indented pairs of name and number below it (Composer,
OLMo), or a step followed by such pairs (nearly all others). A line counts only if both its step and its names
are surely those of metrics. Every pattern takes time linear in the length of the line.
"""

import math
import re
from collections.abc import Iterator, Mapping

from sentinel.sources.console.printed import NUMBER, OPENING, Record, entries, number
from sentinel.sources.console.shapes import SHAPES, WORDS, Shape
from sentinel.sources.reading import records
from sentinel.sources.reading.records import EPOCH_KEYS, STEP_KEYS, is_metrics, named

_STEPS = ("num_updates", "timestepssofar", "round")
"""More names of the step: those of fairseq, of older Baselines and of CatBoost's lines."""

_COUNTS = (*STEP_KEYS, *EPOCH_KEYS)

_METRIC = re.compile(
    r"loss|acc|reward|return|perplexity|ppl|(?<![a-z])lr|learning.?rate|grad|(?<![a-z])kl|entropy"
    r"|(?<![a-z])(?:mse|mae|psnr|ssim|f1|bleu|iou|auc)(?![a-z])",
    re.IGNORECASE,
)

_VALUE = (
    rf"(?:tensor\(|np\.float\d\d\()?(?P<list>[\[(]{{0,2}})(?P<value>{NUMBER})"
    r"(?P<unit> ?%| ?(?:ms|s|sec|secs|seconds|it/s|GiB|GB|MiB|MB)(?!\w))?+(?![\w/]|[.:]\w)"
)
_WORD = r"[A-Za-z_][\w./@-]*+"
_COLON = re.compile(
    rf"(?<![\w./@'\"-])(?P<name>{_WORD}(?: \(?{_WORD}\)?){{0,5}}+)(?<!\.py)\s{{0,9}}[:=]\s{{0,9}}{_VALUE}",
    re.IGNORECASE,
)
_SPACE = re.compile(
    rf"(?:^|[|,\t:]) *+(?P<name>{_WORD}(?: {_WORD}){{0,3}}+) ++{_VALUE}"
    r" *+(?:\([^()|,\t]{0,40}\) *+)?(?=[|,\t]|$)",
    re.IGNORECASE,
)
"""Pairs such as "name: 1.0" or "name=1.0"; if a line has none, pairs such as "name 1.0, other 2.0"."""

_DASHED = re.compile(rf" - (?P<name>{_WORD}) (?P<list>)(?P<value>{NUMBER})(?P<unit>)(?= - |$)", re.IGNORECASE)
"""Pairs between dashes. flair prints its loss so, among other pairs with a colon."""

_SPACED = re.compile(rf"[\s|]*+(?P<name>{_WORD}(?: {_WORD}){{0,3}}+) ++{_VALUE}(?=[\s|]|$)", re.IGNORECASE)
"""A pair "name 1.0" among others that only blanks separate, if a line holds nothing else."""

_OF_GROUPS = re.compile(r"(?<![a-z])lr|learning.?rate|mom", re.IGNORECASE)
"""What an optimizer has for each of its parameter groups. The value of the first group counts."""

_PART = re.compile(
    r"\s{0,9}(?P<part>train(?:ing)?|valid(?:ation)?|val|test)(?: set)?\s{0,9}[:|-]?\s{1,9}(?=\w)",
    re.IGNORECASE,
)
_SHARE = re.compile(r"(\d{1,15})/(\d{1,15}) \(\d{1,3}(?:\.\d{1,9})?%\)")

_PARTS = {"%": 100, "ms": 1000}  # of what metrics are in: shares and seconds

_ROW = re.compile(r"[|│┃](?P<name>[^|│┃]++)[|│┃](?P<value>[^|│┃]*+)[|│┃]\s*+")
_RULE = re.compile(r"[|+]?[-=─━]{3}[-=─━+|┼]*+\s*+")

_BEGUN_BLOCK = (
    re.compile(r"\[epoch=(?P<epoch>\d{1,9})\]\[batch=(?P<iter>\d{1,15})(?:/\d{1,15})?\]:"),
    re.compile(r"\[(?:batch|iteration|sample|token)=(?P<step>\d{1,15})/(?P<planned>\d{1,15})\]:"),
    re.compile(
        r"(?:.*\s)?\[step=(?P<step>\d{1,15})/(?:(?P<planned>\d{1,15})|\?{3})"
        r"(?:,epoch=(?P<epoch>\d{1,9}))?(?:,eta=[^\],]{1,40})?\]"
    ),
)
"""Steps of Composer, which have a line of their own, and of OLMo."""

_ENTRY = re.compile(rf"\s+(?P<name>[A-Za-z][^:=]*+)(?:: |=)(?P<value>{NUMBER})", re.IGNORECASE)

_BEGUN_EPOCH = re.compile(
    r"[-=*]{0,99}\s{0,9}Epoch:? \[?(?P<epoch>\d{1,9})/\d{1,9}\]?:?\s{0,9}[-=*]{0,99}", re.IGNORECASE
)

_EVALUATES = re.compile(r"\((?:val|test)\)")
"""A word in MMEngine's counts of the batches of a validation, which are no steps."""

_STAMP = re.compile(r"\d{4}([-/])\d\d\1\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
_STAMP_WITHIN = 80  # characters
_LEVEL = re.compile(r"\b(?:INFO|DEBUG|WARNING)\b")

_PLANS = {
    "Num examples": "num_train_examples",
    "Num Epochs": "num_train_epochs",
    "Instantaneous batch size per device": "per_device_train_batch_size",
    "Gradient Accumulation steps": "gradient_accumulation_steps",
    "Total optimization steps": "max_steps",
}
"""What transformers' Trainer and the scripts of diffusers print before they train (trainer.py)."""

_PLANNED = re.compile(rf"(?:^|>>|-) {{0,9}}(?P<name>{'|'.join(_PLANS)}) = (?P<number>\d[\d,]{{0,15}})$")


def seconds(line: str) -> float:
    """The time with which a line begins, in seconds since the epoch; NaN if it has none."""
    found = _STAMP.search(line, 0, _STAMP_WITHIN)
    when = records.seconds(found[0].replace("/", "-")) if found else None
    return math.nan if when is None else when


def planned(line: str) -> dict[str, int]:
    """The setting that transformers' Trainer states in a line before it trains, by its name there."""
    found = _PLANNED.search(line)
    return {_PLANS[found["name"]]: int(found["number"].replace(",", ""))} if found else {}


def is_rule(line: str) -> bool:
    """Whether the line is the rule with which a table begins and ends."""
    return bool(_RULE.fullmatch(line))


def row(line: str) -> tuple[str, str] | None:
    """The name and the value in a row of a table with two columns. The name keeps its indentation."""
    found = _ROW.fullmatch(line)
    return (found["name"].rstrip(), found["value"].strip()) if found else None


def begun_block(line: str) -> Record | None:
    """The step in a line that holds nothing else, whose metrics stand on the lines below."""
    if not line.endswith(("]", "]:")):
        return None
    found = next(filter(None, (pattern.fullmatch(line) for pattern in _BEGUN_BLOCK)), None)
    return _count(found) if found else None


def entry(line: str) -> tuple[str, float] | None:
    """The name and the value in an indented line of a block."""
    found = _ENTRY.fullmatch(line)
    value = number(found["value"]) if found else None
    return (found["name"], value) if found and value is not None else None


def is_metric(name: str) -> bool:
    """Whether the name is that of a known metric."""
    return bool(_METRIC.search(name))


def begun_epoch(line: str) -> float | None:
    """The epoch in a line that only says that this epoch begins."""
    found = _BEGUN_EPOCH.fullmatch(line)
    return float(found["epoch"]) if found else None


def of_part(line: str) -> Record:
    """The metrics of a line that begins with a part of the data, as in "Test set: Average loss: 0.2".

    The names begin with that part. The step or epoch of the line stands above it.
    """
    found = _PART.match(line)
    if found is None:
        return {}
    text = _SHARE.sub(lambda share: str(int(share[1]) / max(1, int(share[2]))), line[found.end() :])
    pairs: Record = {f"{found['part']} {name}": value for name, value in _pairs(text, {})}
    return pairs if any(map(_METRIC.search, pairs)) else {}


def parse(line: str) -> tuple[str, Record] | None:
    """The shape and the content of a line that holds both a step and metrics."""
    if (opening := OPENING.search(line)) is not None:
        record = with_step(entries(line, opening.end()))
        if not is_metrics(record) and any(map(_METRIC.search, record)):
            record |= _count_before(line[: opening.start()])
        return ("dictionary", record) if is_metrics(record) and len(record) > 1 else None
    lowered = line.lower()
    if not any(word in lowered for word in WORDS):
        return None
    for shape, found in _counts(line):
        if record := _counted(shape, found):
            return shape.name, record
    return None


def _counts(text: str) -> Iterator[tuple[Shape, re.Match[str]]]:
    """The places at which the text counts steps, and not something else, with their shapes."""
    for shape in SHAPES:
        matches = shape.line.finditer(text)
        if found := next((m for m in matches if not m.groupdict().get("other")), None):
            yield shape, found


def _count_before(text: str) -> Record:
    """The step with which the text ends, as in "step 100: "."""
    ends = (found for _, found in _counts(text) if not any(map(str.isalpha, text[found.end() :])))
    return next(map(_count, ends), {})


def with_step(record: Record) -> Record:
    """The record with its step under a name that `reading.records` knows."""
    if (name := named(record, _STEPS)) is not None and named(record, STEP_KEYS) is None:
        record["step"] = record.pop(name)
    return record


def _counted(shape: Shape, found: re.Match[str]) -> Record:
    before, after = found.string[: found.start()], found.string[found.end() :]
    text = f"{_LEVEL.sub('|', _STAMP.sub('|', before, 1), 1)}|{after}".replace("'s ", " ")
    pairs = dict(_pairs(text, shape.names or {}))
    metrics = {name: value for name, value in pairs.items() if name.lower() not in _COUNTS}
    if not shape.plain and not any(map(_METRIC.search, metrics)):
        return {}
    return with_step({**metrics, **_count(found)})


def _count(found: re.Match[str]) -> Record:
    groups = {name: text for name, text in found.groupdict().items() if text is not None}
    if _EVALUATES.search(found[0]):
        groups = {name: text for name, text in groups.items() if name == "epoch"}
    record: Record = {name: float(groups[name]) for name in groups if name != "planned"}
    if "planned" in groups:
        record["step"] = f"{groups['step']}/{groups['planned']}"
    return record


def _only_pairs(text: str) -> list[re.Match[str]]:
    """The pairs of a text that holds nothing else; none if it does."""
    pairs, end, text = [], 0, text.rstrip(" |")
    while (pair := _SPACED.match(text, end)) is not None:
        pairs.append(pair)
        end = pair.end()
    return pairs if end == len(text) else []


def _pairs(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    pairs = [*_DASHED.finditer(text), *_COLON.finditer(text)]
    spaced = _SPACE.finditer(text)
    pairs += [pair for pair in spaced if not pairs or _METRIC.search(pair["name"])]
    pairs = pairs or _only_pairs(text)
    for pair in pairs:
        value = number(pair["value"])
        is_list = pair["list"] and text.startswith(",", pair.end()) and not _OF_GROUPS.search(pair["name"])
        if value is not None and pair["name"] != "eta" and not is_list:
            unit = (pair["unit"] or "").strip().lower()
            yield names.get(pair["name"], pair["name"]), value / _PARTS.get(unit, 1)
