"""Parses one line that a training printed.

Frameworks print a few shapes: a dictionary (HF Trainer, ms-swift, fairseq's JSON), a table of two columns
(Spinning Up, Baselines, Stable-Baselines3), a step with indented pairs of name and number below it (Composer,
OLMo), or a step followed by such pairs (nearly all others). A line counts only if both its step and its names
are surely those of metrics. Every pattern takes time linear in the length of the line.
"""

import re
from collections.abc import Iterator

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.pairs import is_metric, pairs
from sentinel.sources.console.passages import STAMP
from sentinel.sources.console.printed import NUMBER, OPENING, Record, entries, number
from sentinel.sources.console.shapes import COUNT, SHAPES, Shape, has_word
from sentinel.sources.console.splits import message_at, of_part, parted
from sentinel.sources.readers.plain import Plain
from sentinel.sources.readers.printed_numbers import without_deviation
from sentinel.sources.readers.records import EPOCH_KEYS, STEP_KEYS, is_metrics, named

_STEPS = ("num_updates", "timestepssofar", "round")
"""More names of the step: those of fairseq, of older Baselines and of CatBoost's lines."""

_COUNTS = (*STEP_KEYS, *EPOCH_KEYS)

_TABLE_ROW = lazy_pattern(r"[|│┃](?P<name>[^|│┃]++)[|│┃](?P<value>[^|│┃]*+)[|│┃]\s*+")
_TABLE_RULE = lazy_pattern(r"[|+]?(?:---|===|───|━━━)[-=─━+|┼]*+\s*+")

_BEGUN_BLOCK = (
    lazy_pattern(r"\[epoch=(?P<epoch>\d{1,9})\]\[batch=(?P<iter>\d{1,15})(?:/\d{1,15})?\]:"),
    lazy_pattern(r"\[(?:batch|iteration|sample|token)=(?P<step>\d{1,15})/(?P<planned>\d{1,15})\]:"),
    lazy_pattern(r"Learning iteration (?P<step>\d{1,15})/(?P<planned>\d{1,15})"),  # rsl_rl
    lazy_pattern(r"(?:Update|Iteration|Step): (?P<step>\d{1,15})"),
    lazy_pattern(
        r"--> (?:TIME: [\d: -]{1,40} -- )?STEP: \d{1,15}/\d{1,15} -- GLOBAL_STEP: (?P<step>\d{1,15})"
    ),  # Coqui TTS
    lazy_pattern(
        r"(?:.*\s)?\[step=(?P<step>\d{1,15})/(?:(?P<planned>\d{1,15})|\?{3})"
        r"(?:,epoch=(?P<epoch>\d{1,9}))?(?:,eta=[^\],]{1,40})?\]"
    ),
)
"""Steps of Composer, OLMo, rsl_rl, Coqui TTS and plain loops, which have a line of their own."""

_BEGINS_BLOCK = ("Learning", "-->", "Update", "Iteration", "Step")

_BLOCK_ENTRY = lazy_pattern(
    rf"\s+(?:\| > )?(?P<name>[A-Za-z][^:=]*+)(?:: |=)(?P<value>{NUMBER})(?:  \({NUMBER}\))?", re.IGNORECASE
)

_GROUP = lazy_pattern(r"\s+(?P<name>[A-Za-z][\w.]*+(?: [\w.]++){0,5}+)\s*+=>")
"""What stands before the values of a line, as in "Returns => Avg: 0.5, Min: 0.1"."""

_BEGUN_EPOCH = lazy_pattern(
    r"[-=*]{0,99}\s{0,9}(?:Starting )?Epoch(?::? |:)\[?(?P<epoch>\d{1,9})(?:(?:/| of )\d{1,9})?\]?:?"
    r"\s{0,9}[-=*]{0,99}",
    re.IGNORECASE,
)

_ROLLOUT = lazy_pattern(r"(?<![\w.])rollout (?P<step>\d{1,15}): ?$")
"""How slime counts what it sampled."""

_EVALUATES = lazy_pattern(r"\((val|test)\)")
"""A word in MMEngine's counts of the batches of a validation, which are no steps."""

_CLOCK = lazy_pattern(r"[\s\[(]{0,9}(?:\d\d[-/.]\d\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?![\d:])\]?")
"""The time with which a line begins, where it does not tell the year."""

_NO_TRAINING = lazy_pattern(r"[?&]\w{1,80}=|(?<![a-z])(?:fold|trial)(?![a-z])", re.IGNORECASE)
"""What no line of a training holds: the query of an address, and the parts of a cross-validation."""

_LOG_LEVEL = lazy_pattern(r"\b(?:INFO|DEBUG|WARNING)\b")

_CALLER = lazy_pattern(
    r"(?<![^\s|\[(])(?P<module>[A-Za-z_][\w.]{0,80}):(?:[\w<>]{1,80}:)?\d{1,6}(?=\s{0,9}[-|>\])])"
)
"""The place in the code, as loguru prints it: "__main__:train:42 - "."""

_PREPOSITION = lazy_pattern(r" (?:at|after|in|for) ?$", re.IGNORECASE)
"""What stands between the metric and its step in "Loss at step 5: 0.4"."""

_PLANS = {
    "Num examples": "num_train_examples",
    "Num Epochs": "num_train_epochs",
    "Instantaneous batch size per device": "per_device_train_batch_size",
    "Gradient Accumulation steps": "gradient_accumulation_steps",
    "Total optimization steps": "max_steps",
}
"""What transformers' Trainer and the scripts of diffusers print before they train (trainer.py)."""

_PRINTED_PLAN = lazy_pattern(
    rf"(?:^|>>|-) {{0,9}}(?P<name>{'|'.join(_PLANS)}) = (?P<number>\d[\d,]{{0,15}})$"
)


_COUNTED_EPOCH = lazy_pattern(
    r"(?<![a-z])epochs?[\s:=\[(#]{1,6}(?P<epoch>\d{1,9})\s?(?:/|of)\s?(?P<total>\d{1,9})(?![\d.])",
    re.IGNORECASE,
)

_ARGUMENTS = lazy_pattern(r"(?<!\w)Namespace\(")

_ARGUMENT = lazy_pattern(
    r"(?<!\w)(?P<name>[A-Za-z_]\w{0,80})=(?:'(?P<text>[^']{0,200})'|(?P<plain>[\w.+-]{1,40}))"
)


def stated(line: str) -> dict[str, Plain]:
    """Return the settings in a line that a training prints before its first step: those that transformers'
    Trainer states, by their names there, or the arguments of a program.
    """
    if plan := _PRINTED_PLAN.search(line):
        return {_PLANS[plan["name"]]: int(plan["number"].replace(",", ""))}
    if arguments := _ARGUMENTS.search(line):
        found = _ARGUMENT.finditer(line, arguments.end())
        return {argument["name"]: argument["text"] or argument["plain"] for argument in found}
    return {}


def planned(line: str) -> dict[str, Plain]:
    """Return the settings that a line states, or of how many epochs it says that it is one."""
    if settings := stated(line):
        return settings
    if (counted := _COUNTED_EPOCH.search(line)) and int(counted["epoch"]) <= int(counted["total"]):
        return {"num_epochs": int(counted["total"])}
    return {}


def is_rule(line: str) -> bool:
    """Return whether the line is the rule with which a table begins and ends."""
    return bool(_TABLE_RULE.fullmatch(line))


def row(line: str) -> tuple[str, str] | None:
    """Return the name and the value in a row of a table with two columns. The name keeps its indentation."""
    cells = _TABLE_ROW.fullmatch(line)
    return (cells["name"].rstrip(), without_deviation(cells["value"].strip())) if cells else None


def begun_block(line: str) -> Record | None:
    """Return the step in a line that holds nothing else, whose metrics stand on the lines below."""
    if not line.endswith(("]", "]:")) and not line.startswith(_BEGINS_BLOCK):
        return None
    heading = next(filter(None, (pattern.fullmatch(line) for pattern in _BEGUN_BLOCK)), None)
    return _printed_count(heading) if heading else None


def in_block(line: str) -> dict[str, float]:
    """Return the names and the values in an indented line of a block; none if there are none."""
    if not line[:1].isspace():
        return {}
    if (entry := _BLOCK_ENTRY.fullmatch(line)) is not None and (value := number(entry["value"])) is not None:
        return {entry["name"]: value}
    group = _GROUP.match(line)
    before = f"{group['name']} " if group else ""
    return {before + name: value for name, value in pairs(line[group.end() if group else 0 :], {})}


def begun_epoch(line: str) -> float | None:
    """Return the epoch in a line that only says that this epoch begins."""
    heading = _BEGUN_EPOCH.fullmatch(line) or _BEGUN_EPOCH.fullmatch(line, message_at(line))
    return float(heading["epoch"]) if heading else None


def parse(line: str) -> tuple[str, Record] | None:
    """Return the shape and the content of a line that holds both a step and metrics."""
    if (opening := OPENING.search(line)) is not None:
        record = with_step(entries(line, opening.end()))
        if not is_metrics(record) and any(map(is_metric, record)):
            record |= _count_before(line[: opening.start()])
        return ("dictionary", record) if is_metrics(record) and len(record) > 1 else None
    lowered = line.lower()
    if not has_word(lowered):
        return None
    for shape, count in _counts(line, lowered):
        if record := _counted(shape, count):
            return shape.name, record
    return None


def counts_metrics(line: str) -> bool:
    """Return whether the line begins with a number, and this is the only step of the metrics after it."""
    return (parsed := parse(line)) is not None and parsed[0] == COUNT


def uncounted(line: str) -> Record:
    """Return the metrics of a line that tells no step; none if no name is that of a metric."""
    if (opening := OPENING.search(line)) is not None:
        record = entries(line, opening.end())
    elif _NO_TRAINING.search(line):
        return {}
    else:
        record = of_part(line) or dict(parted(_without_prefix(line), {}))
    return record if any(map(is_metric, record)) else {}


def _without_prefix(text: str) -> str:
    """Return a printed line without the time, level and place in the code that a logger puts before it."""
    if not text or text.isspace():
        return text
    if (clock := _CLOCK.match(text)) is not None:
        text = f"|{text[clock.end() :]}"
    text = _LOG_LEVEL.sub("|", STAMP.sub("|", text, 1), 1)
    return _CALLER.sub(lambda caller: caller[0] if is_metric(caller["module"]) else "|", text)


def _counts(text: str, lowered: str) -> Iterator[tuple[Shape, re.Match[str]]]:
    """Yield the places at which the text counts steps, and not something else, with their shapes."""
    for shape in SHAPES:
        if shape.word in lowered:
            matches = shape.line.finditer(text)
            if count := next((m for m in matches if not m.groupdict().get("other")), None):
                yield shape, count


def _count_before(text: str) -> Record:
    """Return the step with which the text ends, as in "step 100: "."""
    ends = (
        count for _, count in _counts(text, text.lower()) if not any(map(str.isalpha, text[count.end() :]))
    )
    if rollout := _ROLLOUT.search(text):
        return _printed_count(rollout)
    return next(map(_printed_count, ends), {})


def with_step(record: Record) -> Record:
    """Return the record with its step under a name that `reading.records` knows."""
    if (name := named(record, _STEPS)) is not None and named(record, STEP_KEYS) is None:
        record["step"] = record.pop(name)
    return record


def _counted(shape: Shape, count: re.Match[str]) -> Record:
    before = _without_prefix(count.string[: count.start()])
    after = count.string[count.end() :]
    joint = _PREPOSITION.search(before)
    text = f"{before[: joint.start()]}{after}" if joint else f"{before}|{after.lstrip('])')}"
    metrics = {name: value for name, value in parted(text, shape.names or {}) if name.lower() not in _COUNTS}
    if not shape.plain and not any(map(is_metric, metrics)):
        return {}
    if part := _EVALUATES.search(count[0]):
        metrics = {f"{part[1]} {name}" if "loss" in name else name: metrics[name] for name in metrics}
    return with_step({**metrics, **_printed_count(count)})


def _printed_count(count: re.Match[str]) -> Record:
    groups = {name: text.replace(",", "") for name, text in count.groupdict().items() if text is not None}
    if _EVALUATES.search(count[0]):
        groups = {name: text for name, text in groups.items() if name == "epoch"}
    for name, total_name in (("step", "planned"), ("iter", "batches")):
        if name in groups and total_name in groups:
            groups[name] = f"{groups[name]}/{groups.pop(total_name)}"
    values = {name: text if "/" in text else number(text) for name, text in groups.items()}
    return {name: value for name, value in values.items() if value is not None}
