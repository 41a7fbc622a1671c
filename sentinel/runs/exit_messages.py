"""What the last lines that a run printed say about its end: an error, a banner, or counts at their end."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from sentinel.common.text import quoted
from sentinel.detectors.api import Severity
from sentinel.runs.console import ConsoleState
from sentinel.runs.preemption import preempts
from sentinel.runs.torchrun import first_failure
from sentinel.sources.base import Ending, EndKind

_LAST_LINES = 50  # launchers and loggers print fewer after a run's own last word

_BANNER = re.compile(
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

_OF_A_PART = re.compile(
    r"\bepochs?\W{0,3}\d+\b|\b(?:val|valid|validation|eval|evaluation|test|warm-?up|fold|round|stage|phase|iteration|step|batch)\b",
    re.IGNORECASE,
)
"""Words of a line that speaks of an end of less than the run."""

_EARLY = re.compile(
    r"^(?:epoch \d+: |\[?info\]?:? |info:\w+: ?)*(?:early[ _-]?stopp(?:ing|ed)|stopp(?:ing|ed)[ _-]early)\b"
    r"(?!.*\b(?:counter|patience of|enabled)\b)",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"\bepochs?\b\s{0,4}[:#=]?\s{0,4}[\[(]?\s{0,4}(\d{1,6})\s{0,2}(?:/|of)\s{0,2}(\d{1,6})", re.IGNORECASE
)
_COUNT = re.compile(r"(?<![\w./])(\d{1,9})\s?/\s?(\d{1,9})(?![\w./])")
_BAR = re.compile(r"100%(?:\s?\|[^|]{0,200}\|)?\s?(\d{1,9})/(\d{1,9}) \[")
_ANY_BAR = re.compile(r"\d{1,3}%(?:\s?\|[^|]{0,200}\|)?\s?(\d{1,9})/(\d{1,9}) \[")
_OF_AN_EPOCH = re.compile(r"(?<!num )(?<!['\"])\bepoch(?!_\d)", re.IGNORECASE)
"""The word of a run whose bars may be those of epochs. In the rows of Hugging Face's Trainer, whose bar
counts all steps, it is a key, and in the name of a checkpoint it is a part."""
_VALUE = re.compile(r"[a-z]\w*\s{0,2}[:=]\s{0,2}[-+]?\d", re.IGNORECASE)
_OPEN_BAR = re.compile(r"\d+it \[")  # that does not know its total
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r"[ \t]+\S")
_ERROR = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): \S")
_DIGITS = re.compile(r"\d+")


def ending_in(lines: Sequence[str], attempts: int, head: Callable[[], Iterable[str]]) -> Ending | None:
    """Return the end that the last lines of a file tell; None if they tell none. The run began ``attempts``
    times.

    ``head`` reads the first lines of the file, and may raise OSError.
    """
    last = lines[-_LAST_LINES:]
    if (error := first_failure(last) or _crash(lines) or _cut_traceback(last)) is not None:
        return error
    for line in reversed(last):
        if preempts(line):
            return _ending(EndKind.PREEMPTED, line)
        ends = _EARLY.search(line) or (_is_banner(line) and not _OF_A_PART.search(line))
        if ends and _is_rare(line, lines, attempts):
            return _ending(EndKind.FINISHED, line)
    if (stopped := _stopped_early(lines, attempts)) is not None:
        return stopped
    counts = next(filter(_COUNT.search, reversed(last)), None)
    if counts is None:
        return None
    ended = _is_whole(counts, lines, attempts) or _ends_its_last_epoch(counts, lines, head)
    return _ending(EndKind.FINISHED, counts) if ended else None


def _is_banner(line: str) -> bool:
    folded = line.casefold()
    return any(sign in folded for sign in _OF_A_BANNER) and _BANNER.search(line) is not None


def _ending(outcome: EndKind, line: str) -> Ending:
    return Ending(outcome, f"it printed {quoted(line)}", inferred=True)


def _is_rare(line: str, lines: Sequence[str], attempts: int) -> bool:
    """Return whether a line was printed no more often than the run ended; one that each epoch prints is no
    end.
    """
    shape = _DIGITS.sub("0", line.strip())
    return sum(_DIGITS.sub("0", other.strip()) == shape for other in lines) <= attempts


def _stopped_early(lines: Sequence[str], attempts: int) -> Ending | None:
    """Return the end that an earlier line tells, if nothing that was printed before it was printed again."""
    for at in range(len(lines) - _LAST_LINES - 1, -1, -1):
        if _EARLY.search(lines[at]) and _is_rare(lines[at], lines, attempts):
            counted = {_DIGITS.sub("0", line) for line in lines[max(0, at - _LAST_LINES) : at]}
            over = counted.isdisjoint(_DIGITS.sub("0", line) for line in lines[at + 1 :])
            return _ending(EndKind.FINISHED, lines[at]) if over else None
    return None


def _is_whole(line: str, lines: Sequence[str], attempts: int) -> bool:
    """Return whether all counts of the line are at their end, as in `epoch: 20/20`, and no other line has
    them.

    A line that announces an epoch says nothing of its end, so an epoch counts only beside a value.
    """
    counts = _COUNT.findall(line)
    if any(int(done) != int(of) for done, of in counts):
        return False
    if epoch := _EPOCH.search(line):
        same = sum(
            bool((match := _EPOCH.search(other)) and match[0] == epoch[0] and _VALUE.search(other))
            and _COUNT.findall(other)[: len(counts)] == counts
            for other in lines
        )
        return _VALUE.search(line[epoch.end() :]) is not None and same <= attempts
    if bar := _BAR.search(line):
        drawn = [match[1] for other in lines if (match := _ANY_BAR.search(other)) and match[2] == bar[1]]
        # A bar that was seen to fill up may be drawn once more; full ones alone are each one of its own.
        filled = (len([*full]) if len({*drawn}) == 1 else 1 for of, full in groupby(drawn) if of == bar[1])
        return sum(filled) <= attempts and not any(map(_OF_AN_EPOCH.search, lines))
    return False


def _ends_its_last_epoch(line: str, lines: Sequence[str], head: Callable[[], Iterable[str]]) -> bool:
    """Return whether the last epoch is the last one planned, and has as many lines as the one before.

    ``line`` is the last one that counts. What it counts beside epochs must be at its end.
    """
    if any(int(done) != int(of) for done, of in _COUNT.findall(_EPOCH.sub("", line))):
        return False
    counted = ((at, match) for at, text in enumerate(lines) if (match := _EPOCH.search(text)))
    groups = [
        (int(epoch), int(of), next(members)[0])
        for (epoch, of), members in groupby(counted, key=lambda item: item[1].groups())
    ]
    if len(groups) < 2:
        return False
    (before, _, begun), (number, of, last) = groups[-2:]
    every = before - groups[-3][0] if len(groups) > 2 else 1  # some print each hundredth epoch
    is_long = 0 < number - before == every and last - begun <= len(lines) - last
    if not is_long or _OPEN_BAR.search(lines[-1]) or not any(map(_VALUE.search, lines[last:])):
        return False
    if number == of - 1:
        firsts = (_EPOCH.search(text) for text in head())
        return any(match is not None and match.groups() == ("0", str(of)) for match in firsts)
    return number == of


def _cut_traceback(lines: Sequence[str]) -> Ending | None:
    """Return that the lines end within a traceback, or with the name of its error where bars overwrote the
    rest.
    """
    begun = next((at for at, line in enumerate(lines) if line.startswith(_TRACEBACK)), len(lines))
    if lines and _ERROR.match(lines[-1]):
        return None if preempts(lines[-1]) else _ending(EndKind.CRASHED, lines[-1])
    inside = lines[begun + 1 :]
    return _ending(EndKind.CRASHED, inside[-1]) if inside and all(map(_FRAME.match, inside)) else None


def _crash(lines: Sequence[str]) -> Ending | None:
    """Return the error with which the lines end. The line that names it may lack its line break."""
    error = None
    for news in ConsoleState().scan_text("", "".join(f"{line}\n" for line in lines), ()):
        if news.location or news.severity is Severity.CLEAN:
            error = news if news.location else None
    return _ending(EndKind.CRASHED, error.text) if error else None
