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

from sentinel.common.last_words import says_why_it_ends
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.csv import delimited as tables
from sentinel.sources.json import tree as trees
from sentinel.sources.readers.measured_rows import Row
from sentinel.sources.readers.printed_numbers import cell
from sentinel.sources.readers.redrawn_lines import end_of_lines
from sentinel.sources.readers.splits import ONLY_A_PART
from sentinel.sources.readers.words import counter, is_measure, may_be_metric, phase, says_metric, says_other
from sentinel.sources.recurring.lines import RecurringLines

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

MIN_OF_LISTS = 2
"""Lists of a document that is a log if each of them has the name of a metric."""

MIN_SERIES = 4
"""Series of lines in which only its growth shows what counts."""

MAX_ENDING = 4096
"""Characters at the end of a text that may be the error that ended it."""

MIN_TEXT_SHARE = 0.99
"""Share of the bytes of a text that are no control characters."""

MAX_TEXT_SHARE = 0.5
"""Share of lines of a table that are no rows."""

_TRACEBACK = lazy_pattern(
    r"Traceback \(most recent call last\)(?::|\s*\n| [─-]+[╮┐+])|(?:srun|slurmstepd): error:|ChildFailedError"
    r"|\bexitcode\s{0,3}:\s{0,3}-?\d"
)
_PRINTED_ERROR = lazy_pattern(r"^(?:\[rank\d+\]: ?)?[\w.]+(?:Error|Exception|Interrupt)\b", re.MULTILINE)
"""The last line of a traceback, which may be long."""

_TRAINS = lazy_pattern(
    r"torch|tensorflow|keras|jax|lightning|transformers|train|cuda|epoch|deepspeed|paddle|mxnet|stable_baselines|gym|flwr",
    re.IGNORECASE,
)
_DATA_NAME = lazy_pattern(
    r"(?:data(?:set)?|(?<![a-z])ids?(?![a-z])|iris|annotations?|labels?|vocab|token|split|prediction|pred_true|samples?|grid_?search|params)",
    re.IGNORECASE,
)


_LOG_NAME = lazy_pattern(
    r"(?<![a-z])(?:train|training|valid|validation|val|history|progress|monitor|learning|curves?|log)(?![a-z])",
    re.IGNORECASE,
)
_SPLIT_OF_DATA = lazy_pattern(r"(?:x_|y_)?(?:train|training|test|valid|validation|val|dev)", re.IGNORECASE)
"""The whole name of a table that may be a part of a data set."""

_RESULTS_NAME = lazy_pattern(r"(?:\w*_)?(?:results?|stats|episodes?|games?)", re.IGNORECASE)
"""The whole name of a table without names that is a log if it counts and holds the time."""

_NOT_HEXADECIMAL = lazy_pattern(r"[g-z]", re.IGNORECASE)
"""What names have that are no ids."""

_TRIALS = lazy_pattern(r"(?<![a-z])(?:trials?|sweeps?|leaderboard|ablations?)(?![a-z])", re.IGNORECASE)
"""Names of what compares trainings."""

_METRICS_NAME = lazy_pattern(r"(?<![a-z])metrics(?![a-z])", re.IGNORECASE)
"""Names of a log, if its columns have none."""

_PREFIX = lazy_pattern(rb"\s*\[(?:\d{4}-|[ A-Za-z(]|\d{1,9}[\],/ :])")
"""What a console begins its lines with, and no JSON."""

_IS_REWARD = lazy_pattern(r"(?:episode_|ep_)?(?:reward|return)", re.IGNORECASE)
"""Names that only a training gives."""

_NAMED_NUMBER = lazy_pattern(r"[^\W\d_]{2}[\w ]{0,20}[:=]\s?[-\d]")
"""A word before a number."""

_REQUEST = lazy_pattern(rb"HTTP/[12]\b")
_OUTCOME = lazy_pattern(r"loss|acc|reward|score|error|return|precision|recall|f1", re.IGNORECASE)
"""Names of metrics that are no settings."""

_COUNTER_UNITS = frozenset({"epoch", "step", "episode", "batch", "frame", "part"})
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


class _Columns(msgspec.Struct, frozen=True):
    """What the series of a table or a document have in common.

    ``has_clock`` says that a column without a name holds the time.
    """

    count: int
    has_names: bool
    has_step: bool = False
    has_clock: bool = False
    has_row_names: bool = False
    is_of_board: bool = False
    is_document: bool = True
    is_log_file: bool = False


def _is_log_file(name: str) -> bool:
    return name.lower().endswith((".log", ".out", ".err"))


def _series(rows: Iterable[Row]) -> dict[str, list[tuple[int, float, str]]]:
    series: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for row in rows:
        for name, value in zip(row.names, row.values, strict=True):
            series[name].append((row.step, value, row.unit))
    return dict(series)


def _text_rows(reader: RecurringLines | tables.Table, data: bytes) -> list[Row]:
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
    if may_be_tree and (name.endswith((".json", ".jsonl")) or trees.read(data, "")):
        return Kind.TREE
    table = tables.Table(name)
    rows = _text_rows(table, data)
    total = table.rows + table.others
    is_row = len(rows) >= MIN_POINTS and table.rows >= (1 - MAX_TEXT_SHARE) * total
    is_row = is_row or (
        bool(table.header) and table.delimiter in (",", "\t", ";") and 0 < table.rows == total
    )
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


def _reads_words(data: bytes) -> bool:
    """Return whether most lines hold words beside numbers within a cell, as a console does."""
    lines = data.decode("utf-8", "replace").splitlines()[2:42]
    words = [line for line in lines if cell(line) is None and _NAMED_NUMBER.search(line)]
    return len(words) * 2 > len(lines) > 0


def judge(
    data: bytes, name: str, is_over: bool = True, is_whole: bool = True, is_named: bool = True
) -> Judgement:
    """Judge a file by its first and last bytes and its name.

    ``is_over`` says that nobody writes it any more, so that a metric that was logged once is all there is.
    ``is_whole`` says that what is redrawn now will not be a line of another kind. ``is_named`` says that a
    person named the file; in another one a line that came once has to count, and to hold no setting.
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
        rows_of = _Columns(
            count=len(all_series),
            has_names=not trees.is_of_plain_rows(data),
            is_document=not name.endswith((".jsonl", ".ndjson")),
        )
        return _of_series(kind, names, stem, rows_of, is_over, is_named)
    if kind is Kind.TABLE:
        table = tables.Table(stem)
        rows = _text_rows(table, sample)
        columns = _Columns(
            count=len(table.values),
            has_names=bool(table.header),
            has_step=table.step >= 0,
            has_clock=table.has_clock,
            has_row_names=table.has_row_names,
            is_of_board=table.header[:3] == _BOARD,
            is_log_file=_is_log_file(name),
        )
        return _of_series(kind, _series(rows), stem, columns, is_over, is_named)
    console = RecurringLines(stem)
    tail = data[max(MAX_SAMPLE, len(data) - MAX_SAMPLE) :]
    rows = console.read(sample[: end_of_lines(sample)])
    rows += console.read(tail[tail.find(b"\n") + 1 : end_of_lines(tail)]) if tail else []
    rows += console.end() if is_over else []
    series = _series(rows)
    judgement = Judgement(kind, False, False, "no line of numbers comes again")
    if series:
        judgement = _of_console(series, stem, sample, is_over, _is_log_file(name), is_named)
    if not judgement.is_training and _tells_crash(data[-MAX_SAMPLE:].decode("utf-8", "replace"), stem):
        return Judgement(kind, False, True, "crashed before it logged a number")
    return judgement


def _tells_crash(ending: str, stem: str) -> bool:
    """Return whether the end of a text, which has the name ``stem``, is the error that ended a training."""
    last = ending[-MAX_ENDING:]
    ends = _TRACEBACK.search(last) or _PRINTED_ERROR.search(last)
    is_error = (ends and _TRACEBACK.search(ending)) or says_why_it_ends(last.rstrip().rpartition("\n")[2])
    return bool(is_error) and (_TRAINS.search(ending) or _TRAINS.search(stem)) is not None


def _of_console(
    series: Mapping[str, Sequence[tuple[int, float, str]]],
    stem: str,
    sample: bytes,
    is_over: bool,
    is_log_file: bool,
    is_named: bool,
) -> Judgement:
    """Judge a text by its records: one names a metric that changes, and counts or is surely of a training."""
    if len(_REQUEST.findall(sample)) * 4 > sample.count(b"\n"):
        return Judgement(Kind.CONSOLE, False, False, "its lines are requests to a server")
    speaks = says_metric(stem) or bool(_LOG_NAME.search(stem))
    speaks = speaks or _TRAINS.search(sample.decode("utf-8", "replace")) is not None
    reason = "no name of a metric and nothing that counts"
    has_nan = any(value != value for points in series.values() for _, value, _ in points)
    changing = [name for name, points in series.items() if len({value for _, value, _ in points}) > 1]
    metrics = sum(says_metric(name) and len(series[name]) >= MIN_POINTS for name in changing)
    if metrics >= MIN_METRICS and (speaks or is_log_file):
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
        is_once = (
            len(points) < MIN_POINTS and points[0][2] in _COUNTER_UNITS and _OUTCOME.search(name) is not None
        )
        if (len(points) >= MIN_POINTS and varies and (is_counted or speaks)) or (
            is_over and is_metric and speaks and (is_named or is_once)
        ):
            return Judgement(Kind.CONSOLE, True, False, "")
        reason = f"“{name}” comes {len(points)} times and {'counts nothing' if varies else 'does not change'}"
    return Judgement(Kind.CONSOLE, False, False, reason)


def _is_measured(name: str, points: Sequence[tuple[int, float, str]]) -> bool:
    """Return whether a series whose name says nothing is counted by epochs or steps and holds fractions that
    change: "(epoch: 1, iters: 100) D_A: 0.285 G_A: 0.412".
    """
    if points[0][2] not in _COUNTER_UNITS or len(points) < MIN_POINTS or says_other(name) or counter(name):
        return False
    fractions = {value for _, value, _ in points if value != value or not value.is_integer()}
    return len(fractions) >= MIN_POINTS and len({step for step, _, _ in points}) >= MIN_POINTS


def _of_series(
    kind: Kind,
    series: Mapping[str, Sequence[tuple[int, float, str]]],
    stem: str,
    columns: _Columns,
    is_over: bool,
    is_named: bool,
) -> Judgement:
    if not is_named and _TRIALS.search(stem):
        return Judgement(kind, False, False, "its rows are trainings")
    if not series:
        return Judgement(kind, False, False, "no numbers that come in rows")
    long = [name for name, points in series.items() if len(points) >= MIN_POINTS]
    words = [name for name in series if says_metric(name)]
    counts = columns.has_step or any(points[0][2] != "row" for points in series.values())
    if columns.count > MAX_COLUMNS and not (counts and any(map(_NOT_HEXADECIMAL.search, words))):
        return Judgement(kind, False, False, f"{columns.count} columns, of which none counts")
    is_short = len(long) * 2 < len(series) if kind is Kind.TABLE else not is_over and not long
    if is_short and not (is_over and len(set(map(phase, words))) > 1):
        return Judgement(kind, False, False, "most of its series have one or two values")
    if kind is Kind.TABLE and not _is_in_order(series):
        return Judgement(kind, False, False, "its counter is in no order")
    if _DATA_NAME.search(stem) and not (counts and words):
        return Judgement(kind, False, False, "the name is that of data")
    counts_training = any(points[0][2] in _COUNTER_UNITS for points in series.values())
    if (
        columns.has_row_names
        and not counts_training
        and not (words and _LOG_NAME.search(stem) and not counts)
    ):
        return Judgement(kind, False, False, "its rows have names")
    if not _is_log_of_series(kind, series, words, stem, columns, counts):
        return Judgement(kind, False, False, "no counter of a training and no name of a metric")
    return Judgement(kind, True, False, "")


def _is_log_of_series(
    kind: Kind,
    series: Mapping[str, Sequence[tuple[int, float, str]]],
    words: Sequence[str],
    stem: str,
    columns: _Columns,
    counts: bool,
) -> bool:
    """Return whether the names and counters of some series, with metrics ``words``, are those of a log."""
    weak = any(may_be_metric(name) for name in series)
    is_of_metric = says_metric(stem)
    is_split = _SPLIT_OF_DATA.fullmatch(stem) is not None and not columns.is_log_file
    file_speaks = is_of_metric or bool(_LOG_NAME.search(stem) and not is_split)
    is_counted = any(
        points[0][2] in _COUNTER_UNITS or counter(points[0][2].rsplit("/", 1)[-1])
        for points in series.values()
    )
    return bool(
        (is_counted and bool(words or weak or file_speaks or columns.is_of_board))
        or (bool(words) and file_speaks)
        or (is_of_metric and (not columns.has_names or len(series) == 1))
        or ((file_speaks or _METRICS_NAME.search(stem)) and not columns.has_names and _has_fractions(series))
        or (kind is Kind.TREE and any(map(_IS_REWARD.fullmatch, series)) and not columns.is_document)
        or ((counts or (kind is Kind.TREE and _METRICS_NAME.search(stem))) and _has_splits(words))
        or (kind is Kind.TABLE and _has_twins(words))
        or (kind is Kind.TREE and file_speaks and _has_parts(series))
        or (kind is Kind.TREE and len(words) >= MIN_OF_LISTS and _are_lists_of_metrics(series))
        or (kind is Kind.TREE and _has_lists_of_losses(series))
        or (columns.has_clock and counts and _RESULTS_NAME.fullmatch(stem) is not None)
    )


def _has_splits(words: Sequence[str]) -> bool:
    """Return whether enough metrics have the name of a part of the data."""
    return sum(bool(phase(name)) for name in words) >= MIN_OF_SPLITS


def _has_twins(words: Sequence[str]) -> bool:
    """Return whether a metric stands beside itself on held-out data, as in a history of Keras."""
    return not {f"val_{name}" for name in words}.isdisjoint(words)


def _has_parts(series: Mapping[str, Sequence[tuple[int, float, str]]]) -> bool:
    """Return whether rows or lists of training data stand beside those of held-out data, with the same names:
    "train/total" and "val/total".
    """
    names: dict[str, set[str]] = {}
    for name, points in series.items():
        part, _, rest = name.partition("/")
        if rest and len(points) >= MIN_POINTS and ONLY_A_PART.fullmatch(part):
            names.setdefault(part, set()).add(rest)
    common = set.intersection(*names.values()) if len(names) > 1 else set()
    return len(common) >= MIN_OF_SPLITS and _has_fractions(series)


def _has_fractions(series: Mapping[str, Sequence[tuple[int, float, str]]]) -> bool:
    return any(
        value != value or not value.is_integer() for points in series.values() for _, value, _ in points
    )


def _are_lists_of_metrics(series: Mapping[str, Sequence[tuple[int, float, str]]]) -> bool:
    """Return whether the series are equally long lists that hold fractions, each of a metric or of what is
    measured beside one, such as times and tokens.
    """
    if not all(says_metric(name) or (says_other(name) and is_measure(name)) for name in series):
        return False
    lengths = {len(points) for points in series.values()}
    return len(lengths) == 1 and lengths.pop() >= MIN_POINTS and _has_fractions(series)


def _has_lists_of_losses(series: Mapping[str, Sequence[tuple[int, float, str]]]) -> bool:
    """Return whether a list of losses on training data stands beside one on held-out data. Their lengths may
    differ, as in {"train_losses": [each step], "eval_losses": [each epoch]}.
    """
    long = [name for name, points in series.items() if len(points) >= MIN_POINTS]
    return len({phase(name) for name in long if "loss" in name.lower()} - {""}) > 1


def _is_in_order(series: Mapping[str, Sequence[tuple[int, float, str]]]) -> bool:
    """Return whether the counter mostly grows."""
    points = max(series.values(), key=len)
    falls = sum(later[0] < earlier[0] for earlier, later in pairwise(points))
    return falls * 4 <= len(points)
