"""Decides which CSV and JSON files are training logs, by their names and their first bytes."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeVar

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.files import open_log, plain_utf_8
from sentinel.sources.readers.plain import flattened
from sentinel.sources.readers.records import EPOCH_KEYS, NUMBER, STEP_KEYS, TIME_KEYS, named, seconds

HEAD_BYTES = 1 << 16
"""How much of a file is looked at."""

_LOG_NAME = lazy_pattern(
    r"metrics|progress|^results|summary|monitor|history|loss|log|^train|^rewards?$|^wandb_export|-tag-",
    re.IGNORECASE,
)
_LOG_WORD = lazy_pattern(
    r"(?<![a-z])(?:metrics?|progress|(?:train(?:ing|er)?)?logs?|logging|losses|scalars|history|monitor)(?![a-z])"
)
"""A word in the name of logs, not of data sets: `train.jsonl` and `dialogs.jsonl` are data."""

_LONG_TEXT = 200  # characters of a text that belongs into a data set: a prompt, a completion, an answer
_MIN_REMEMBERED = 1 << 10  # files
_QUESTIONS_A_FILE = 8  # a search may ask for a file more than once
_LOGGERS = frozenset({"metrics", "progress"})  # names that loggers choose: a column of steps is enough
_OF_TRACKER = frozenset({"debug-internal.log", "debug-core.log"})  # beside the settings in W&B's debug.log
_INDEX = ("", "unnamed: 0")  # what pandas writes before the columns
_EXPORTED = {"wall time", "step", "value"}  # the columns of TensorBoard's CSV files
COUNTS = (*STEP_KEYS, *EPOCH_KEYS)
"""Names of what counts the steps of a log."""

_METRIC_NAME = lazy_pattern(
    r"loss|accuracy|reward|perplexity|entropy|grad.?norm|learning.?rate|ep_?rew|ep_?ret"
    r"|(?<![a-z])(acc|lr|kl|ppl|map|m?iou|wer|cer|bleu|auc|f1|mae|mse|rmse|top1|ndcg|mrr)(?![a-z])|pearson|spearman",
    re.IGNORECASE,
)


def is_log_name(stem: str) -> bool:
    """Return whether a training log may well have this name, without its ending."""
    return _LOG_NAME.search(stem) is not None


def is_of_tracker(name: str, names: Collection[str]) -> bool:
    """Return whether a file beside others of these names is what W&B says of itself."""
    return name in _OF_TRACKER or (name == "debug.log" and not _OF_TRACKER.isdisjoint(names))


def is_log(stem: str, columns: Collection[str], counts: Sequence[Any] | None = None) -> bool:
    """Return whether a file of this name, without its ending, with these columns is a log.

    Under any name, it is one if it counts steps or epochs beside metrics, or if TensorBoard exported it.
    ``counts`` are the first cells that count, None if they are not known: they have to grow. A file with the
    name of a log may count by an index, too, and its metrics need no names that are known. If the file has
    the name of a metric, or one that loggers choose, it need not count; its rows are then counted.
    """
    if {name.lower() for name in columns} == _EXPORTED:
        return True
    counted = len(columns) > 1 and named(columns, COUNTS) is not None
    metrics = any(map(_METRIC_NAME.search, columns))
    if not is_log_name(stem):
        return counted and metrics and (counts is None or _steps_rise(counts))
    counted |= len(columns) > 1 and named(columns, _INDEX) is not None
    chosen = stem in _LOGGERS or _names_a_metric(stem)
    return (counted and (chosen or metrics)) or (metrics and chosen)


def _names_a_metric(stem: str) -> bool:
    from sentinel.sources.readers.words import says_other_loss  # whose many patterns are slow to make

    return _METRIC_NAME.search(stem) is not None and not says_other_loss(stem)


def are_metrics(columns: Collection[str]) -> bool:
    """Return whether there is a column for a loss, and no column but for metrics."""
    return any("loss" in name.lower() for name in columns) and all(map(_METRIC_NAME.search, columns))


def are_log(stem: str, records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a file of this name with these first records is the log of a training, and no data set.

    A log holds numbers, and one of these is true:

    - A step or an epoch grows.
    - A time grows, and one of the names is that of a metric.
    - The file has the name of a log. It may then be empty.

    If most records hold a long text, the file is a data set, unless it has the name of a log and its step
    grows.
    """
    rows = [flattened(record) for record in records]
    is_named = _LOG_WORD.search(stem.lower()) is not None
    if not rows:
        return is_named
    counted = _grows(rows, COUNTS)
    prose = sum(any(isinstance(v, str) and len(v) > _LONG_TEXT for v in row.values()) for row in records)
    if 2 * prose > len(rows):
        return is_named and counted
    if is_named:
        return any(_cell_number(value) is not None for row in rows for value in row.values())
    metrics = {name for row in rows for name in _metric_names(row)}
    timed = _grows(rows, TIME_KEYS) and any(map(_METRIC_NAME.search, metrics))
    return bool(metrics) and (counted or timed)


def _grows(rows: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> bool:
    """Return whether the value of a key grows: at least a quarter of its changes reach a new maximum.

    It need not grow each time, because two writers of one file, epochs between steps and resumes also make it
    fall. One row alone that has the key is enough.
    """
    return _steps_rise([count for row in rows if (count := _counted_step(row, keys)) is not None])


def _steps_rise(values: Iterable[Any]) -> bool:
    counts = [count for value in values if (count := _cell_number(value)) is not None]
    changes = sum(count_before != count_after for count_before, count_after in pairwise(counts))
    rises = sum(count_before < count_after for count_before, count_after in pairwise(accumulate(counts, max)))
    return 4 * rises >= changes > 0 or len(counts) == 1


def _counted_step(row: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    value: Any = row.get(named(row, keys) or "")
    if keys is TIME_KEYS:
        return seconds(value) if isinstance(value, (int, float, str)) else None
    return _cell_number(value)


def _metric_names(row: Mapping[str, Any]) -> Iterable[str]:
    """Return the names of the numbers in a row, except its step and its time."""
    counts = {named(row, keys) for keys in (STEP_KEYS, EPOCH_KEYS, TIME_KEYS)}
    return (name for name, value in row.items() if name not in counts and _cell_number(value) is not None)


def _cell_number(value: Any) -> float | None:
    """Return the value as a number: 12, "12" or the 12 of "12/500"; None if it is none."""
    if isinstance(value, str):
        value = value.partition("/")[0]
        return float(value) if NUMBER.fullmatch(value) else None
    return value if type(value) in (int, float) else None


def why_no_log(path: Path) -> str:
    """Return why the file, which no format claims, is no log."""
    try:
        with open_log(path) as file:
            head = plain_utf_8(file.read(HEAD_BYTES))
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if not head:
        return "is empty; a log has at least a header or some lines with metrics"
    if b"\0" in head:
        return "is no text, and no binary log that sentinel knows by this name"
    return "is no log: no table, JSON or printed lines with a step or a loss near its beginning"


Answer = TypeVar("Answer")


def remembered(sniff: Callable[[Path], Answer]) -> Callable[[Path], Answer]:
    """Remember the answer of ``sniff`` for each file, and ask again only if the file changed.

    A log stays a log as long as it only grows. A file that cannot be read is no log. A search asks for all
    files that are there, so a file for which none of many questions asks is gone, and is forgotten.
    """
    before_that: dict[Path, tuple[tuple[int, int, int, int], Answer]] = {}
    answers: dict[Path, tuple[tuple[int, int, int, int], Answer]] = {}
    questions = 0

    @wraps(sniff)
    def answer(path: Path) -> Answer:
        nonlocal before_that, answers, questions
        questions += 1
        if questions > _QUESTIONS_A_FILE * max(len(answers), _MIN_REMEMBERED):
            before_that = answers
            answers = {}
            questions = 0
        if path in before_that:
            answers[path] = before_that.pop(path)
        try:
            status = os.stat(path)
        except OSError:
            return sniff(path)
        inode = status.st_ino
        size = status.st_size
        modified = status.st_mtime_ns
        now = (inode, size, modified, status.st_ctime_ns)  # the last changes with the permissions
        if path in answers:
            before, last = answers[path]
            if before == now or (last and before[0] == inode and before[1] <= size and before[2] <= modified):
                return last
        answer_now = sniff(path)
        answers[path] = now, answer_now
        return answer_now

    return answer
