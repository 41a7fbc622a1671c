"""One judgement of content, the same for a file that is named and for one that a walk finds.

It reads the beginning of a file and says what it is: a console, a table or a tree of JSON; and whether it
looks like the log of a training, like data, or like a training that crashed before its first number.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

from sentinel.sources.console.recurring import RecurringLines
from sentinel.sources.csv import delimited as tables
from sentinel.sources.json import tree as trees
from sentinel.sources.readers.measured_rows import Row
from sentinel.sources.readers.redrawn_lines import end_of_lines
from sentinel.sources.readers.words import counter, may_be_metric, phase, says_metric, says_other

MAX_SAMPLE = 1 << 16
"""Bytes of the beginning that are judged."""

MAX_COLUMNS = 64
"""Columns of a table of metrics; one with more is data unless it counts and names metrics."""

MIN_REDRAWN = 1 << 14
"""Bytes from which on redrawn bars count: a format may yet know the first full bar."""

MIN_METRICS = 4
"""Metrics of a text that counts nothing, such as that of an evaluation."""

MIN_POINTS = 3
"""Points of a series that counts."""

MIN_OF_SPLITS = 2
"""Metrics with the name of a split of the data that make a table that counts a log."""

MIN_SERIES = 4
"""Series of lines in which only its growth shows what counts."""

MAX_ENDING = 4096
"""Characters at the end of a text that may be the error that ended it."""

MIN_TEXT_SHARE = 0.99
"""Share of the bytes of a text that are no control characters."""

MAX_TEXT_SHARE = 0.5
"""Share of lines of a table that are no rows."""

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):|(?:srun|slurmstepd): error:|ChildFailedError"
    r"|\bexitcode\s{0,3}:\s{0,3}-?\d"
)
_ERROR = re.compile(r"^(?:\[rank\d+\]: ?)?[\w.]+(?:Error|Exception|Interrupt)\b", re.MULTILINE)
"""The last line of a traceback, which may be long."""

_TRAINS = re.compile(
    r"torch|tensorflow|keras|jax|lightning|transformers|train|cuda|epoch|deepspeed|paddle|mxnet|stable_baselines|gym|flwr",
    re.IGNORECASE,
)
_DATA_NAME = re.compile(
    r"(?:data(?:set)?|iris|annotations?|labels?|vocab|token|split|prediction|pred_true|samples?|grid_?search|params)",
    re.IGNORECASE,
)


_LOG_NAME = re.compile(
    r"(?<![a-z])(?:train|training|valid|validation|val|history|progress|monitor|learning|log)(?![a-z])",
    re.IGNORECASE,
)
_SPLIT_OF_DATA = re.compile(r"(?:x_|y_)?(?:train|training|test|valid|validation|val|dev)", re.IGNORECASE)
"""The whole name of a table that may be a part of a data set."""

_PREFIX = re.compile(rb"\s*\[(?:\d{4}-|[ A-Za-z(]|\d{1,9}[\],/ :])")
"""What a console begins its lines with, and no JSON."""

_IS_REWARD = re.compile(r"(?:episode_|ep_)?(?:reward|return)", re.IGNORECASE)
"""Names that only a training gives."""

_REQUEST = re.compile(rb"HTTP/[12]\b")
_UNITS = frozenset({"epoch", "step", "episode", "batch", "frame", "part"})
_BOARD = ["Wall time", "Step", "Value"]
"""The header of a table that TensorBoard exports."""

_CONTROLS = bytes([*range(1, 8), *range(14, 27), *range(28, 32)])
"""Bytes that no text holds."""


class Kind(StrEnum):
    """What reads a file."""

    CONSOLE = "console"
    TABLE = "table"
    TREE = "tree"


class Judgement(msgspec.Struct, frozen=True):
    """What a file is. ``reason`` says, for a person, why it is no log, or what came nearest."""

    kind: Kind | None
    is_training: bool
    is_crash: bool
    reason: str


def _series(rows: Iterable[Row]) -> dict[str, list[tuple[int, float, str]]]:
    series: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for row in rows:
        for name, value in zip(row.names, row.values, strict=True):
            series[name].append((row.step, value, row.unit))
    return dict(series)


def _rows(reader: RecurringLines | tables.Table, data: bytes) -> list[Row]:
    """Return the rows of a text, which may end within a line."""
    end = end_of_lines(data)
    return reader.read(data[:end]) + reader.end(data[end:])


def kind_of(data: bytes, name: str) -> Kind:
    """Return how a text is read, by its beginning."""
    data = data[:MAX_SAMPLE]
    first_byte = data.lstrip()[:1]
    if trees.is_of_plain_rows(data):
        return Kind.TREE
    may_be_tree = first_byte in (b"{", b"[") and not _PREFIX.match(data)
    if may_be_tree and (name.endswith((".json", ".jsonl")) or _is_tree(data)):
        return Kind.TREE
    table = tables.Table(name)
    rows = _rows(table, data)
    total = table.rows + table.others
    is_row = len(rows) >= MIN_POINTS and table.rows >= (1 - MAX_TEXT_SHARE) * total
    if (
        is_row
        and table.is_plain
        and (table.header or not table.labels or table.delimiter in (",", "\t", ";"))
        and not _reads_words(data)
    ):
        return Kind.TABLE
    return Kind.CONSOLE


def _has_texts(data: bytes) -> bool:
    """Return whether a JSON object among the first lines holds a text."""
    return any(re.search(rb":\s?\"", line) for line in data.split(b"\n", 40)[:40])


def _is_tree(data: bytes) -> bool:
    return bool(trees.read(data, ""))


def _reads_words(data: bytes) -> bool:
    """Return whether most lines hold words beside numbers within a cell, as a console does."""
    lines = data.decode("utf-8", "replace").splitlines()[2:42]
    words = [line for line in lines if re.search(r"[A-Za-z]{2}[\w ]{0,20}[:=]\s?[-\d]", line)]
    return len(words) * 2 > len(lines) > 0


def judge(data: bytes, name: str, is_over: bool = True, is_whole: bool = True) -> Judgement:
    """Judge a file by its first and last bytes and its name.

    ``is_over`` says that nobody writes it any more, so that a metric that was logged once is all there is.
    ``is_whole`` says that what is redrawn now will not be a line of another kind.
    """
    if not is_whole and len(data) < MIN_REDRAWN:
        data = b"\n".join(line.rpartition(b"\r")[2] for line in data.replace(b"\r\n", b"\n").split(b"\n"))
    sample = data[:MAX_SAMPLE]
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    text = sample.strip(b"\0")
    if len(text.translate(None, _CONTROLS)) < MIN_TEXT_SHARE * len(text):
        return Judgement(None, False, False, "is binary")
    kind = kind_of(data, name)
    if kind is Kind.TREE:
        all_series = trees.read(data, stem)
        names = {
            each.name: [*zip(each.steps, each.values, [each.unit] * len(each.steps), strict=True)]
            for each in all_series
        }
        if _has_texts(sample) and name.endswith((".jsonl", ".ndjson")):
            return Judgement(kind, False, False, "its lines hold texts")
        is_named = not trees.is_of_plain_rows(data)
        is_document = not name.endswith((".jsonl", ".ndjson"))
        return _of_series(kind, names, stem, len(all_series), is_over, is_named, is_document=is_document)
    if kind is Kind.TABLE:
        table = tables.Table(stem)
        rows = _rows(table, sample)
        return _of_series(
            kind,
            _series(rows),
            stem,
            len(table.values),
            is_over,
            bool(table.header),
            table.step >= 0,
            table.header[:3] == _BOARD,
        )
    console = RecurringLines(stem)
    tail = data[max(MAX_SAMPLE, len(data) - MAX_SAMPLE) :]
    rows = console.read(sample[: end_of_lines(sample)])
    rows += console.read(tail[tail.find(b"\n") + 1 : end_of_lines(tail)]) if tail else []
    rows += console.end() if is_over else []
    series = _series(rows)
    if series:
        return _of_console(series, stem, sample, is_over)
    ending = data[-MAX_SAMPLE:].decode("utf-8", "replace")
    is_end = _TRACEBACK.search(ending[-MAX_ENDING:]) or _ERROR.search(ending[-MAX_ENDING:])
    if is_end and _TRACEBACK.search(ending) and _TRAINS.search(ending):
        return Judgement(kind, False, True, "crashed before it logged a number")
    return Judgement(kind, False, False, "no line of numbers comes again")


def _of_console(
    series: Mapping[str, Sequence[tuple[int, float, str]]], stem: str, sample: bytes, is_over: bool
) -> Judgement:
    """Judge a text by its records: one names a metric that changes, and counts or is surely of a training."""
    if len(_REQUEST.findall(sample)) * 4 > sample.count(b"\n"):
        return Judgement(Kind.CONSOLE, False, False, "its lines are requests to a server")
    speaks = says_metric(stem) or bool(_LOG_NAME.search(stem))
    speaks = speaks or _TRAINS.search(sample.decode("utf-8", "replace")) is not None
    reason = "no name of a metric and nothing that counts"
    has_nan = any(value != value for points in series.values() for _, value, _ in points)
    changing = [name for name, points in series.items() if len({value for _, value, _ in points}) > 1]
    if sum(says_metric(name) and len(series[name]) >= MIN_POINTS for name in changing) >= MIN_METRICS:
        return Judgement(Kind.CONSOLE, True, False, "")
    for name, points in series.items():
        is_counted = points[0][2] not in ("row", "number") or (
            points[0][2] == "number" and len(series) >= MIN_SERIES
        )
        is_nameless = not name.strip("0123456789 ") or len(series) == 1
        is_metric = says_metric(name) or (is_nameless and says_metric(stem))
        if not (is_metric or (may_be_metric(name) and points[0][2] not in ("row", "number"))):
            if speaks and _is_measured(name, points):
                return Judgement(Kind.CONSOLE, True, False, "")
            continue
        varies = has_nan or len({value for _, value, _ in points}) > 1
        varies = varies or (is_metric and is_counted and len({step for step, _, _ in points}) > 1)
        if (len(points) >= MIN_POINTS and varies and (is_counted or speaks)) or (
            is_over and is_metric and speaks
        ):
            return Judgement(Kind.CONSOLE, True, False, "")
        reason = f"“{name}” comes {len(points)} times and {'counts nothing' if varies else 'does not change'}"
    return Judgement(Kind.CONSOLE, False, False, reason)


def _is_measured(name: str, points: Sequence[tuple[int, float, str]]) -> bool:
    """Return whether a series whose name says nothing is counted by epochs or steps and holds fractions that
    change: "(epoch: 1, iters: 100) D_A: 0.285 G_A: 0.412".
    """
    if points[0][2] not in _UNITS or len(points) < MIN_POINTS or says_other(name) or counter(name):
        return False
    fractions = {value for _, value, _ in points if value != value or not value.is_integer()}
    return len(fractions) >= MIN_POINTS and len({step for step, _, _ in points}) >= MIN_POINTS


def _of_series(
    kind: Kind,
    series: Mapping[str, Sequence[tuple[int, float, str]]],
    stem: str,
    columns: int,
    is_over: bool,
    has_header: bool = True,
    has_step: bool = False,
    is_of_board: bool = False,
    is_document: bool = True,
) -> Judgement:
    long = {name: points for name, points in series.items() if len(points) >= MIN_POINTS}
    if not series:
        return Judgement(kind, False, False, "no numbers that come in rows")
    words = [name for name in series if says_metric(name)]
    weak = [name for name in series if may_be_metric(name)]
    file_speaks = says_metric(stem) or bool(_LOG_NAME.search(stem) and not _SPLIT_OF_DATA.fullmatch(stem))
    is_counted = any(
        points[0][2] in _UNITS or counter(points[0][2].rsplit("/", 1)[-1]) for points in series.values()
    )
    counts = has_step or any(points[0][2] != "row" for points in series.values())
    if columns > MAX_COLUMNS and not (counts and words):
        return Judgement(kind, False, False, f"{columns} columns, of which none counts")
    if kind is Kind.TABLE and len(long) * 2 < len(series):
        return Judgement(kind, False, False, "most of its series have one or two values")
    if kind is Kind.TABLE and not _is_in_order(series):
        return Judgement(kind, False, False, "its counter is in no order")
    if _DATA_NAME.search(stem) and not (counts and words):
        return Judgement(kind, False, False, "the name is that of data")
    if not is_over and not long:
        return Judgement(kind, False, False, "most of its series have one or two values")
    is_log = is_counted and bool(words or weak or file_speaks or is_of_board)
    is_log = (
        is_log
        or (bool(words) and file_speaks)
        or (says_metric(stem) and (not has_header or len(series) == 1))
    )
    is_log = is_log or (file_speaks and not has_header)
    is_log = is_log or (kind is Kind.TREE and any(map(_IS_REWARD.fullmatch, series)) and not is_document)
    is_log = is_log or (counts and sum(bool(phase(name)) for name in words) >= MIN_OF_SPLITS)
    if not is_log:
        return Judgement(kind, False, False, "no counter of a training and no name of a metric")
    return Judgement(kind, True, False, "")


def _is_in_order(series: Mapping[str, Sequence[tuple[int, float, str]]]) -> bool:
    """Return whether the counter mostly grows."""
    points = max(series.values(), key=len)
    falls = sum(later[0] < earlier[0] for earlier, later in pairwise(points))
    return falls * 4 <= len(points)
