"""What a line says that a training printed: the table of known shapes, and how to read one line.

Frameworks print the same few shapes: a dictionary (HF Trainer, ms-swift, fairseq's JSON), a two-column
table (Spinning Up, Baselines, Stable-Baselines3), or a count of steps followed by pairs of name and
number (nearly everybody else). A line counts only if its count *and* its names are plain; all else is
text. Every pattern takes time linear in the line.
"""

import ast
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import orjson

from sentinel.sources import records
from sentinel.sources.records import EPOCH_KEYS, STEP_KEYS, is_metrics, named

Record = dict[str, float | str]
"""Names and numbers of a line, with the keys by which `sentinel.sources.records` knows step and time."""

_STEPS = ("num_updates", "timestepssofar")  # further names of the step: fairseq's, Baselines' older ones


@dataclass(frozen=True)
class Shape:
    """A line that counts and says something.

    ``line`` finds the count, as some of the groups ``step``, ``planned`` (the last step), ``iter`` (may
    begin anew in each epoch) and ``epoch``; a group of another name is a metric. ``plain`` says that the
    count is proof enough; otherwise some name must be a known metric's.
    """

    name: str
    line: re.Pattern[str]
    plain: bool = True
    names: Mapping[str, str] | None = None  # what a metric is called elsewhere, where it is printed otherwise


KERAS = "keras"
"""Shape of the line of a whole epoch, whose number stands in a line before it (`begun_epoch`)."""

_SHAPES = (
    Shape(KERAS, re.compile(r"^\s{0,9}(\d{1,15})/\1 (?:\[=+\] |━+ )?(?:- )?\d{1,9}m?s(?!\w)")),
    Shape(
        "megatron",  # also GPT-NeoX
        re.compile(r"(?<!\w)iteration +(?P<step>\d{1,15})/ *(?P<planned>\d{1,15}) +\|"),
    ),
    Shape(
        "megatron validation",
        re.compile(
            r"(?<!\w)(?:validation|test) (?:loss|results) at (?:iteration|the end)? ?(?P<step>\d{1,15})"
        ),
        names={"lm loss value": "lm loss validation", "lm loss PPL": "lm loss validation ppl"},
    ),
    Shape(
        "cyclegan",  # also pix2pix, "loss_log.txt"
        re.compile(r"\(epoch: (?P<epoch>\d{1,9}), iters: (?P<iter>\d{1,15})"),
    ),
    Shape(
        "deepspeed overflow",
        re.compile(r"loss scale(?:: \d+, reducing| from \d+) to (?P<loss_scale>\d+(?:\.\d+)?)"),
    ),
    Shape(
        "deepspeed",
        re.compile(r"(?<!\w)step=(?P<step>\d{1,15}), (?=skipped=)"),
        names={"skipped": "skipped_steps"},
    ),
    Shape(
        "epoch and iteration",  # timm, mmengine, the examples of PyTorch
        re.compile(
            r"(?<!\w)(?:epoch(?:\(\w{1,9}\))?|train)[\s:=\[]{1,6}(?P<epoch>\d{1,9})(?:/\d{1,9})?\]?,?\s{0,3}"
            r"\[\s{0,9}(?P<iter>\d{1,15})\s?/",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "epoch, step",
        re.compile(
            r"(?<!\w)epoch[\s:=\[(#]{1,6}(?P<epoch>\d{1,9})(?:/\d{1,9})?[\])]?[\s,|:-]{1,5}"
            r"(?:global[ _])?(?:step|iter|iteration|batch)[\s:=\[(#]{1,6}(?P<iter>\d{1,15})(?!\.?\d)",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "step",  # torchtune, nanoGPT, nanochat, verl, Detectron2, Tacotron and many others
        re.compile(
            r"(?<![\w.])(?P<other>(?:total|max|num|of|per|every|warmup|eval|logging|save)[ _-])?"
            r"(?:global[ _]?)?(?:step|iter|iteration|update)s?(?:\(\w{1,9}\))?[\s:=\[(#]{1,12}"
            r"(?P<step>\d{1,15})(?:\s?/\s{0,5}(?P<planned>\d{1,15}))?(?![\d.]|%)",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "epoch",  # fairseq, whose updates are among the pairs
        re.compile(
            r"(?<![\w.])(?P<other>(?:total|max|num|of|per|every|warmup)[ _-])?"
            r"epoch[\s:=\[(#]{1,6}(?P<epoch>\d{1,9}(?:\.\d{1,9})?)(?![\d%])",
            re.IGNORECASE,
        ),
        plain=False,
    ),
)

WORDS = ("step", "iter", "epoch", "update", "train", "loss scale")
"""One of these, in any case, is in every line of the shapes above."""

_COUNTS = (*STEP_KEYS, *EPOCH_KEYS)

_METRIC = re.compile(
    r"loss|acc|reward|return|perplexity|ppl|(?<![a-z])lr|learning.?rate|grad|(?<![a-z])kl|entropy"
    r"|(?<![a-z])(?:mse|mae|psnr|ssim|f1|bleu|iou|auc)(?![a-z])",
    re.IGNORECASE,
)

_NUMBER = (
    r"[+-]?(?:\d{1,3}(?:,\d{3})++(?:\.\d+)?|(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d{1,4}+)?|nan|inf(?:inity)?)"
)
_VALUE = (
    rf"(?:tensor\(|np\.float\d\d\()?[\[(]{{0,2}}(?P<value>{_NUMBER})"
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
"""Pairs written as "name: 1.0" or "name=1.0", and, where a line has none, as "name 1.0, other 2.0"."""

_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_ENTRY = re.compile(
    rf"\s*+(?P<name>{_QUOTED})\s*+:\s*+(?:(?P<value>{_QUOTED}|{_NUMBER}(?!\w))"
    r"|[\w.]++(?:\([^()]*+\))?|\[[^\[\]]*+\])\s*+(?P<end>[,}])",
    re.IGNORECASE,
)
_OPENING = re.compile(r"\{(?=\s{0,9}['\"])")

_ROW = re.compile(r"[|│┃](?P<name>[^|│┃]++)[|│┃](?P<value>[^|│┃]*+)[|│┃]\s*+")
_RULE = re.compile(r"[|+]?[-=─━]{3}[-=─━+|┼]*+\s*+")

_BEGUN_EPOCH = re.compile(r"Epoch (?P<epoch>\d{1,9})/\d{1,9}")

_STAMP = re.compile(r"\d{4}([-/])\d\d\1\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
_STAMP_WITHIN = 80  # characters
_LEVEL = re.compile(r"\b(?:INFO|DEBUG|WARNING)\b")


def seconds(line: str) -> float:
    """Seconds since the epoch, of the date and time with which a line begins; NaN if it has none."""
    found = _STAMP.search(line, 0, _STAMP_WITHIN)
    when = records.seconds(found[0].replace("/", "-")) if found else None
    return math.nan if when is None else when


def is_rule(line: str) -> bool:
    """Whether the line is what a table begins and ends with."""
    return bool(_RULE.fullmatch(line))


def row(line: str) -> tuple[str, str] | None:
    """Name and value of a row of a two-column table; the name keeps its indentation."""
    found = _ROW.fullmatch(line)
    return (found["name"].rstrip(), found["value"].strip()) if found else None


def begun_epoch(line: str) -> float | None:
    """The number of the epoch that the line says begins, where that is all it says."""
    found = _BEGUN_EPOCH.fullmatch(line)
    return float(found["epoch"]) if found else None


def parse(line: str) -> tuple[str, Record] | None:
    """The shape and the content of a line that is a metric line all by itself."""
    if (opening := _OPENING.search(line)) is not None:
        record = with_step(_entries(line, opening.end()))
        return ("dictionary", record) if is_metrics(record) and len(record) > 1 else None
    lowered = line.lower()
    if not any(word in lowered for word in WORDS):
        return None
    for shape in _SHAPES:
        for found in shape.line.finditer(line):
            if "other" not in shape.line.groupindex or not found["other"]:
                record = _counted(shape, found)
                if record:
                    return shape.name, record
                break
    return None


def with_step(record: Record) -> Record:
    """The record with its step under a name that all know."""
    if (name := named(record, _STEPS)) is not None and named(record, STEP_KEYS) is None:
        record["step"] = record.pop(name)
    return record


def _counted(shape: Shape, found: re.Match[str]) -> Record:
    groups = {name: text for name, text in found.groupdict().items() if text is not None}
    before, after = found.string[: found.start()], found.string[found.end() :]
    text = f"{_LEVEL.sub('|', _STAMP.sub('|', before, 1), 1)}|{after}"
    pairs = dict(_pairs(text, shape.names or {}))
    metrics = {name: value for name, value in pairs.items() if name.lower() not in _COUNTS}
    if not shape.plain and not any(map(_METRIC.search, metrics)):
        return {}
    record: Record = {**metrics, **{name: float(groups[name]) for name in groups if name != "planned"}}
    if "planned" in groups:
        record["step"] = f"{groups['step']}/{groups['planned']}"
    return with_step(record)


def _pairs(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    pairs = list(_COLON.finditer(text)) or list(_SPACE.finditer(text))
    for pair in pairs:
        value = number(pair["value"])
        if value is not None and pair["name"] != "eta":
            share = pair["unit"] is not None and pair["unit"].endswith("%")
            yield names.get(pair["name"], pair["name"]), value / 100 if share else value


def _entries(line: str, start: int) -> Record:
    """The entries of a printed dictionary whose values are numbers, or text that may tell a step."""
    record: Record = {}
    for name, value in _as_json(line[start - 1 : line.rfind("}") + 1]) or _one_by_one(line, start):
        if not isinstance(value, str):
            record[name] = float(value)
        elif (found := number(value)) is not None:
            record[name] = found
        elif name in STEP_KEYS:
            record[name] = value
    return record


def _as_json(text: str) -> Collection[tuple[str, float | str]]:
    """The entries, if the text is JSON but for the kind of its quotes and of numbers and texts only."""
    if "\\" in text or ("'" in text and '"' in text):
        return ()
    try:
        found = orjson.loads(text.replace("'", '"'))
    except orjson.JSONDecodeError:
        return ()
    return found.items() if {float, int, str}.issuperset(map(type, found.values())) else ()


def _one_by_one(line: str, start: int) -> list[tuple[str, str]]:
    """The entries whose values are numbers or texts; none where it is no whole dictionary."""
    entries = []
    end = ","
    while end == "," and (entry := _ENTRY.match(line, start)) is not None:
        start, end = entry.end(), entry["end"]
        name, value = _unquoted(entry["name"]), entry["value"]
        if value is not None and name is not None:
            entries.append((name, value.strip("'\"")))
    return entries if end == "}" else []


def _unquoted(text: str) -> str | None:
    if "\\" not in text:
        return text[1:-1]
    try:
        return str(ast.literal_eval(text))  # a string literal: there is nothing to run or to nest
    except (SyntaxError, ValueError):
        return None


def number(text: str) -> float | None:
    """The number that the text is, thousands separated or not; None if it is none."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
