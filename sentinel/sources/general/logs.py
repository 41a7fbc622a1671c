"""Finds logs of no known format: where no format finds a run, and in files that a person named.

One judgement of their content counts for both: see `sentinel.sources.general.content`.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from errno import EACCES
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import exists, is_denied
from sentinel.sources.base import ReadIssue, Run
from sentinel.sources.console.log import FORMAT as CONSOLE
from sentinel.sources.console.log import Console
from sentinel.sources.csv.log import FORMAT as TABLE
from sentinel.sources.csv.log import Table
from sentinel.sources.json.log import FORMAT as DOCUMENT
from sentinel.sources.json.log import JsonDocument
from sentinel.sources.json.trainer_state import STATE
from sentinel.sources.readers.files import open_log, plain_utf_8
from sentinel.sources.readers.sniffing import HEAD_BYTES, is_log_name, is_of_tracker, remembered
from sentinel.sources.registry import formats

if TYPE_CHECKING:
    from sentinel.sources.console.line_forms import LineForm

MAX_FILES = 24
"""Files of one ending in a directory; of more, those that are called as logs are count."""

MAX_LOGS = 256
"""Files of one ending that are called as logs are; more are data."""

MAX_DOCUMENT = 1 << 20
"""Bytes of a JSON document that a walk finds; a larger one is data, unless its name is that of a history."""

MAX_HISTORY = 8 << 20
"""Bytes of a JSON document that a walk finds and that is called as what a training keeps of its steps."""

MIN_REDRAWN = 4
"""States for each line, from which on a text consists of progress bars."""

MAX_OF_BARS = 1 << 20
"""Bytes of a text of progress bars that are judged by what stands behind them."""

MAX_NAMED_DOCUMENT = 32 << 20
"""Bytes of a JSON document that a person names."""

_MAX_DENIED = 5  # names in a line

_TEXTS = frozenset({"", ".log", ".out", ".err", ".txt", ".stdout", ".stderr", ".o", ".e"})
_TABLE_ENDINGS = frozenset({".csv", ".tsv", ".dat"})
_DOCUMENTS = frozenset({".json", ".jsonl", ".ndjson"})
_LINES = frozenset({".jsonl", ".ndjson"})
_LINES_NAME = lazy_pattern(
    r"(?:(?:train|episode|eval|monitor)[_-]?)?(?:stats|metrics|episodes?|rewards?|progress|history|log)\.\w",
    re.IGNORECASE,
)
"""Names of JSON lines that a walk judges; others that no format claims are data."""

_ENDINGS = _TEXTS | _TABLE_ENDINGS | _DOCUMENTS
"""Endings of the files that a walk judges."""

_BARE_NAME = lazy_pattern(
    r"(?<![a-z])(?:logs?|nohup|stdout|stderr|output|console|screenlog)(?![a-z])"
    r"|^metrics$|(?<!\d)20\d\d[-_]?[01]\d[-_]?[0-3]\d(?!\d)",
    re.IGNORECASE,
)
"""Names without an ending that a walk judges, such as one with the date of a day, or the metrics of Sockeye;
others may be metrics of a tracker.
"""
_LOG_NAME = lazy_pattern(
    r"\.(?:log|out)$|(?<![a-z])"
    r"(?:train(?:ing)?|log|loss(?:es)?|rewards?|metrics|nohup|history)(?![a-z])",
    re.IGNORECASE,
)
"""Names of files that a person would call logs of a training."""

_HISTORY_NAME = lazy_pattern(
    r"(?<![a-z])(?:logs?|loss(?:es)?|rewards|metrics|history)(?![a-z])", re.IGNORECASE
)
"""Names of documents that a training writes, and hardly a data set."""

_JOB = lazy_pattern(r"\.[oe]\d{1,12}")
"""The ending of what a batch system writes."""

_NO_LOGS = lazy_pattern(
    r"requirements.*|licen[cs]e.*|readme.*|copying|notice|authors|makefile|dockerfile|vocab.*|merges.*|"
    r"tokenizer.*|special_tokens.*|added_tokens.*|package(?:-lock)?\.json|tsconfig.*|label\.json|"
    r"(?:.*[_-])?(?:install|setup|pip|build|access|tb|tensorboard)\.log|"
    r"cmakelists.*|manifest.*|.*(?:config|params?|settings|arguments)\.json|generation_config.*",
    re.IGNORECASE,
)


class Answer(msgspec.Struct, frozen=True):
    """What a file is: the format of its run, or, in ``reason``, why it is none."""

    format: str
    is_crash: bool
    reason: str

    def __bool__(self) -> bool:
        return bool(self.format)


def find(directory: Path, names: Sequence[str], are_over: bool = False) -> Iterator[Run]:
    """Yield the runs among the files of a directory where no format finds one.

    ``are_over`` says that no log is expected to grow, so that what was redrawn counts, and a metric that was
    logged once in a file with the name of a log.
    """
    names = candidates(names)
    if names and not any(each.has_text_of(directory) for each in formats().values()):
        for name in names:
            path = directory / name
            answer = judged(path)
            if are_over and not answer.format:
                answer = _judge(path, MAX_DOCUMENT, _is_log_name(name), is_whole=True, is_named=False)
            if answer.format:
                yield _general_run(directory / name, answer)


def others(names: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """Return the names of further tables of metrics beside tables in which a format finds runs."""
    if any(run.format != TABLE or not run.path.suffix for run in runs if isinstance(run.path, Path)):
        return []
    read = {run.path.name for run in runs if isinstance(run.path, Path)}
    return [
        name
        for name in candidates(names)
        if name not in read and name.endswith((".csv", ".tsv")) and _is_log_name(name)
    ]


def of_forms(directory: Path, names: Sequence[str], forms: tuple["LineForm", ...]) -> Iterator[Run]:
    """Yield the runs among the files of a directory some of whose lines have a form that a person named."""
    has_form = _form_sniffer(forms)
    for name in candidates(names):
        path = directory / name
        if path.suffix.lower() not in _TABLE_ENDINGS | _DOCUMENTS and has_form(path):
            yield Run(path, CONSOLE, Console(path, True, forms), has_parallel_streams=True)


@lru_cache(8)
def _form_sniffer(forms: tuple["LineForm", ...]) -> Callable[[Path], bool]:
    """Return a function that remembers which files have a line of one of the forms."""

    @remembered
    def has_form(path: Path) -> bool:
        from sentinel.sources.console.line_forms import is_of_a_form

        return is_of_a_form(forms, sample_lines(path))

    return has_form


def sample_lines(path: Path) -> list[str]:
    """Return the first and the last lines of a text; none of a file that cannot be read."""
    from sentinel.sources.readers.redrawn_lines import printed_lines

    try:
        with open_log(path) as file:
            head = file.read(HEAD_BYTES)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(len(head), size - HEAD_BYTES))
            data = plain_utf_8(head + file.read(HEAD_BYTES))
    except OSError:
        return []
    return [line for line, _ in printed_lines(data + b"\n")]


def unread(directory: Path, names: Sequence[str]) -> list[ReadIssue]:
    """Return the files of a directory that look like logs and hold no numbers that are understood.

    Each comes with what was missing.
    """
    answers = (
        (directory / name, judged(directory / name)) for name in candidates(names) if _is_log_name(name)
    )
    return [ReadIssue(path, "", _missing(path, answer)) for path, answer in answers if answer.reason]


def _missing(path: Path, answer: Answer) -> str:
    """Return why a file is no run and, of a text, the line that came nearest."""
    is_text = path.suffix.lower() not in _TABLE_ENDINGS | _DOCUMENTS
    return f"{answer.reason}; {_nearest(path)}" if is_text else answer.reason


@remembered
def _nearest(path: Path) -> str:
    from sentinel.sources.general.nearest import nearest  # slow to import

    return nearest(sample_lines(path))


def denied(directory: Path, names: Sequence[str], other_files: Collection[Path]) -> Iterator[ReadIssue]:
    """Yield what this user may not read of a directory, among the files that are called as logs are and are
    none of ``other_files``: one file, or in one line how many.
    """
    files = [directory / name for name in names if _may_be_log_name(name)]
    files = [file for file in files if file not in other_files and not _may_read(file)]
    reason = f"cannot be read ({os.strerror(EACCES)})"
    if len(files) > 1:
        ellipsis = ", ..." if len(files) > _MAX_DENIED else ""
        names_of_denied = ", ".join(file.name for file in files[:_MAX_DENIED])
        yield ReadIssue(directory, "", f"{len(files)} logs {reason}: {names_of_denied}{ellipsis}")
    elif files:
        yield ReadIssue(files[0], "", reason)


def _may_be_log_name(name: str) -> bool:
    stem, ending = os.path.splitext(name)  # noqa: PTH122  as a Path is slow
    return ending.lower() in _ENDINGS and is_log_name(stem)


def _may_read(file: Path) -> bool:
    """Return whether this user may read a file, or whether it is gone."""
    return not is_denied(file) and (os.access(file, os.R_OK) or not exists(file))


def _is_log_name(name: str) -> bool:
    return bool(_LOG_NAME.search(name)) and not name.lower().endswith(".json")


def run_in(path: Path, is_over: bool) -> Run | None:
    """Return the run in a file that a person named, if its content is a log.

    If the file ``is_over``, a metric that was logged once is enough.
    """
    answer = _judge(path, MAX_NAMED_DOCUMENT, is_over)
    return _general_run(path, answer) if answer.format else None


def candidates(names: Sequence[str]) -> list[str]:
    """Return the names that a log may have."""
    by_ending: dict[str, list[str]] = {}
    for name in names:
        ending = os.path.splitext(name)[1].lower()  # noqa: PTH122  as a Path is slow
        if _JOB.fullmatch(ending):
            ending = ".o"
        if not ending and not _BARE_NAME.search(name):
            continue
        if (ending in _LINES and not _LINES_NAME.match(name)) or is_of_tracker(name, names):
            continue
        if ending in _ENDINGS and name != STATE and not _NO_LOGS.fullmatch(name):
            by_ending.setdefault(ending, []).append(name)
    groups = (
        group if len(group) <= MAX_FILES else [*filter(_is_log_name, group)] for group in by_ending.values()
    )
    return [name for group in groups if len(group) <= MAX_LOGS for name in group]


@remembered
def judged(path: Path) -> Answer:
    """Return what a file is that a walk found."""
    max_document = MAX_HISTORY if _HISTORY_NAME.search(path.stem) else MAX_DOCUMENT
    return _judge(path, max_document, False, is_named=False)


def _judge(
    path: Path, max_document: int, is_over: bool, is_whole: bool = False, is_named: bool = True
) -> Answer:
    from sentinel.sources.general.content import MAX_SAMPLE, Kind, judge  # slow to import

    try:
        with open_log(path) as file:
            head = file.read(HEAD_BYTES)
            size = file.seek(0, os.SEEK_END)
            is_document = head.lstrip()[:1] in (b"{", b"[") and path.suffix.lower() in _DOCUMENTS
            if is_document and size > max_document:
                return Answer("", False, "is a large document")
            file.seek(len(head) if is_document else max(len(head), size - MAX_SAMPLE))
            data = head + file.read(max_document if is_document else MAX_SAMPLE)
            bars = b""
            if not is_document and head.count(b"\r") > MIN_REDRAWN * head.count(b"\n"):
                file.seek(0)
                bars = file.read(MAX_OF_BARS)
    except OSError:
        return Answer("", False, "")
    if not data.strip():
        return Answer("", False, "")
    judgement = judge(plain_utf_8(data), path.name, is_over, is_over or is_whole, is_named)
    if bars and not judgement.is_training:
        last_states = b"\n".join(line[line.rstrip(b"\r").rfind(b"\r") + 1 :] for line in bars.split(b"\n"))
        judgement = judge(plain_utf_8(last_states), path.name, is_over, is_over or is_whole, is_named)
    formats_of = {Kind.CONSOLE: CONSOLE, Kind.TABLE: TABLE, Kind.TREE: DOCUMENT}
    if judgement.kind is None or not (judgement.is_training or judgement.is_crash):
        return Answer("", False, judgement.reason if judgement.kind else "")
    return Answer(formats_of[judgement.kind], judgement.is_crash, judgement.reason)


def _general_run(path: Path, answer: Answer) -> Run:
    if answer.is_crash or answer.format == CONSOLE:
        return Run(path, CONSOLE, Console(path, is_general=True), has_parallel_streams=True)
    if answer.format == DOCUMENT:
        return Run(path, DOCUMENT, JsonDocument(path, is_general=True), has_parallel_streams=True)
    return Run(path, TABLE, Table(path, is_general=True), has_parallel_streams=True)
