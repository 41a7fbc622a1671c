"""What the last lines that a run printed say about its end: an error, a banner, or counts at their end."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from sentinel.common.last_words import says_why_it_ends
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.text import quoted
from sentinel.detectors.api import Severity
from sentinel.runs.console import ConsoleState
from sentinel.runs.preemption import preempts
from sentinel.runs.torchrun import first_failure
from sentinel.sources.base import Ending, EndKind

_MAX_LINES_AFTER = 50  # launchers and loggers print fewer after a run's own last word

_BANNER = lazy_pattern(
    r"\bend of (?:the )?training\b"
    r"|\btrain(?:ing)?(?: run| job| process)?(?: is| has| was)? ?(?:been )?"
    r"(?:completed?|finished|done|ended|successful|over)\b"
    r"(?!\s*[:=]?\s*\d*\s*(?:%|/|of\b|steps?\b|batch))"
    r"|\b(?:finished|completed|done)(?: with)?(?: the)? training\b"
    r"|\btraining (?:time|took)\b\W*(?:[\w.]+ )?\d|\btime consumed\b"
    r"|\b(?:experiment|job|run|script|program)(?: is| has)? (?:finished|completed?|ended|done)\b"
    r"|\bjob end at\b"
    r"|`?Trainer\.\w+`? stopped: `?max_\w+"  # Lightning
    r"|^Process finished with exit code 0$"  # PyCharm
    r"|\b\d+ epochs completed in\b|\bOptimizer stripped from\b"  # Ultralytics
    r"|\bwandb: (?:Run history|Run summary|Synced)\b"
    r"|\bsav(?:ed|ing)\b.{0,80}\bfinal\b"
    r"|\bfinal (?:model|checkpoint|weights|policy)\b.{0,80}\b(?:saved|written)\b"
    r"|^\W*(?:all )?(?:done|finished|completed?|success(?:ful(?:ly)?)?)\W*$",
    re.IGNORECASE,
)
_OF_A_BANNER = (
    "end of", "complete", "finished", "done", "ended", "success", "over", "training t", "time consumed",
    "job end", "stopped", "exit code", "stripped", "wandb:", "final",
)  # fmt: skip
"""One of these is in each banner. They are found in a hundredth of the time."""

_OF_A_PART = lazy_pattern(
    r"\bepochs?\W{0,3}\d+\b|\b(?:val|valid|validation|eval|evaluation|test|warm-?up|fold|round|stage|phase|iteration|step|batch)\b",
    re.IGNORECASE,
)
"""Words of a line that speaks of an end of less than the run."""

_EARLY = lazy_pattern(
    r"^(?:epoch \d+: |\[?info\]?:? |info:\w+: ?)*(?:early[ _-]?stopp(?:ing|ed)|stopp(?:ing|ed)[ _-]early)\b"
    r"(?!.*\b(?:counter|patience of|enabled)\b)",
    re.IGNORECASE,
)
_EPOCH = lazy_pattern(
    r"\bepochs?\b\s{0,4}[:#=]?\s{0,4}[\[(]?\s{0,4}(\d{1,6})\s{0,2}(?:/|of)\s{0,2}(\d{1,6})", re.IGNORECASE
)
_COUNT_OF_TOTAL = lazy_pattern(r"(?<![\w./])(\d{1,9})\s?/\s?(\d{1,9})(?![\w./])")
_BAR = lazy_pattern(r"100%(?:\s?\|[^|]{0,200}\|)?\s?(\d{1,9})/(\d{1,9}) \[")
_ANY_BAR = lazy_pattern(r"\d{1,3}%(?:\s?\|[^|]{0,200}\|)?\s?(\d{1,9})/(\d{1,9}) \[")
_OF_AN_EPOCH = lazy_pattern(r"(?<!num )(?<!['\"])\bepoch(?!_\d)", re.IGNORECASE)
"""The word of a run whose bars may be those of epochs. In the rows of Hugging Face's Trainer, whose bar
counts all steps, it is a key, and in the name of a checkpoint it is a part."""
_METRIC_VALUE = lazy_pattern(r"(?<!\w)[^\Wa-z]*+[a-z]\w*+\s{0,2}[:=]\s{0,2}[-+]?\d", re.IGNORECASE)
_OPEN_BAR = lazy_pattern(r"\dit \[")  # that does not know its total
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = lazy_pattern(r"[ \t]+\S")
_PYTHON_ERROR = lazy_pattern(r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): \S")
_DIGITS = lazy_pattern(r"\d+")


def ending_in(lines: Sequence[str], attempts: int, head: Callable[[], Iterable[str]]) -> Ending | None:
    """Return the end of a run that the last lines of a file state; None if they state none.

    The run began ``attempts`` times. ``head`` reads the first lines of the file, and may raise OSError.
    """
    last = lines[-_MAX_LINES_AFTER:]
    error = first_failure(last) or _crash(lines) or _cut_traceback(last)
    if error is not None:
        return error
    for line in reversed(last):
        if preempts(line):
            return _printed_ending(EndKind.PREEMPTED, line)
        states_end = _EARLY.search(line) or (_is_banner(line) and not _OF_A_PART.search(line))
        if states_end and _is_rare(line, lines, attempts):
            return _printed_ending(EndKind.FINISHED, line)
    early_stop = _early_stop(lines, attempts)
    if early_stop is not None:
        return early_stop
    counts = next(filter(_COUNT_OF_TOTAL.search, reversed(last)), None)
    if counts is None:
        return None
    ended = _counts_are_full(counts, lines, attempts) or _ends_its_last_epoch(counts, lines, head)
    return _printed_ending(EndKind.FINISHED, counts) if ended else None


def _is_banner(line: str) -> bool:
    """Return whether a line is one that frameworks print at the end of a training."""
    folded = line.casefold()
    return any(sign in folded for sign in _OF_A_BANNER) and _BANNER.search(line) is not None


def _printed_ending(outcome: EndKind, line: str) -> Ending:
    return Ending(outcome, f"it printed {quoted(line)}", inferred=True)


def _is_rare(line: str, lines: Sequence[str], attempts: int) -> bool:
    """Return whether a line was printed at most once in each attempt. One of each epoch states no end."""
    shape = _DIGITS.sub("0", line.strip())
    return sum(_DIGITS.sub("0", other.strip()) == shape for other in lines) <= attempts


def _early_stop(lines: Sequence[str], attempts: int) -> Ending | None:
    """Return the end that an earlier line states, if nothing that was printed before it was printed again."""
    for index in range(len(lines) - _MAX_LINES_AFTER - 1, -1, -1):
        if _EARLY.search(lines[index]) and _is_rare(lines[index], lines, attempts):
            before = {_DIGITS.sub("0", line) for line in lines[max(0, index - _MAX_LINES_AFTER) : index]}
            is_over = before.isdisjoint(_DIGITS.sub("0", line) for line in lines[index + 1 :])
            return _printed_ending(EndKind.FINISHED, lines[index]) if is_over else None
    return None


def _counts_are_full(line: str, lines: Sequence[str], attempts: int) -> bool:
    """Return whether all counts of the line are at their end, as in `epoch: 20/20`, at most once an attempt.

    A line that announces an epoch says nothing of its end, so an epoch counts only beside a value.
    """
    counts = _COUNT_OF_TOTAL.findall(line)
    if any(int(count) != int(total) for count, total in counts):
        return False
    epoch = _EPOCH.search(line)
    if epoch is not None:
        rows_of_epoch = sum(_is_row_of_epoch(other, epoch[0], counts) for other in lines)
        return _METRIC_VALUE.search(line[epoch.end() :]) is not None and rows_of_epoch <= attempts
    bar = _BAR.search(line)
    if bar is not None:
        return _full_bars(bar[1], lines) <= attempts and not any(map(_OF_AN_EPOCH.search, lines))
    return False


def _is_row_of_epoch(line: str, epoch: str, counts: Sequence[tuple[str, str]]) -> bool:
    """Return whether a line has a value, names the epoch in these words, and begins with these counts."""
    match = _EPOCH.search(line)
    if match is None or match[0] != epoch or not _METRIC_VALUE.search(line):
        return False
    return _COUNT_OF_TOTAL.findall(line)[: len(counts)] == counts


def _full_bars(total: str, lines: Sequence[str]) -> int:
    """Return how many progress bars with this total filled up.

    A bar that was seen to fill up may be drawn once more, so its full drawings in a row count once. If all
    drawings are full, each is a bar of its own.
    """
    bars = [bar for bar in map(_ANY_BAR.search, lines) if bar is not None and bar[2] == total]
    drawings = [bar[1] for bar in bars]
    if set(drawings) == {total}:
        return len(drawings)
    return sum(count == total for count, _ in groupby(drawings))


def _ends_its_last_epoch(line: str, lines: Sequence[str], head: Callable[[], Iterable[str]]) -> bool:
    """Return whether the last epoch is the last one planned, and has as many lines as the one before.

    ``line`` is the last one that counts. What it counts beside epochs must be at its end.
    """
    if any(int(count) != int(total) for count, total in _COUNT_OF_TOTAL.findall(_EPOCH.sub("", line))):
        return False
    epochs = _epochs(lines)
    if len(epochs) < 2:
        return False
    previous, previous_at, _ = epochs[-2]
    last, last_at, total = epochs[-1]
    step = previous - epochs[-3][0] if len(epochs) > 2 else 1  # some print each hundredth epoch
    is_next = 0 < last - previous == step
    is_complete = last_at - previous_at <= len(lines) - last_at
    if not (is_next and is_complete) or _OPEN_BAR.search(lines[-1]):
        return False
    if not any(map(_METRIC_VALUE.search, lines[last_at:])):
        return False
    if last == total - 1:  # it counts from 0
        firsts = (_EPOCH.search(text) for text in head())
        return any(match is not None and match.groups() == ("0", str(total)) for match in firsts)
    return last == total


def _epochs(lines: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return the epochs that lines name, in order: the number, the index of its first line, and the total."""
    matches = ((index, match) for index, line in enumerate(lines) if (match := _EPOCH.search(line)))
    return [
        (int(epoch), next(group)[0], int(total))
        for (epoch, total), group in groupby(matches, key=lambda item: item[1].groups())
    ]


def _cut_traceback(lines: Sequence[str]) -> Ending | None:
    """Return the crash of a run whose lines end within a traceback, or with an error without one.

    A progress bar may have overwritten the rest.
    """
    if lines and (_PYTHON_ERROR.match(lines[-1]) or says_why_it_ends(lines[-1])):
        return None if preempts(lines[-1]) else _printed_ending(EndKind.CRASHED, lines[-1])
    begin = next((index for index, line in enumerate(lines) if line.startswith(_TRACEBACK)), len(lines))
    frames = lines[begin + 1 :]
    return _printed_ending(EndKind.CRASHED, frames[-1]) if frames and all(map(_FRAME.match, frames)) else None


def _crash(lines: Sequence[str]) -> Ending | None:
    """Return the error with which the lines end. The line that names it may lack its line break."""
    error = None
    for news in ConsoleState().scan_text("", "".join(f"{line}\n" for line in lines), ()):
        if news.location or news.severity is Severity.CLEAN:
            error = news if news.location else None
    return _printed_ending(EndKind.CRASHED, error.text) if error else None
