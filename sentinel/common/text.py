"""Makes text from a run safe to show to a person.

Run names, tags and configuration are written by whatever trained the model. They may hold terminal
escape sequences, characters that reverse the reading direction, line breaks that fake further
output, or half a megabyte of anything. Code that shows such text passes it through ``clean_text``.
"""

import re
import unicodedata
from collections.abc import Iterable

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.secrets import masked_text

# A control sequence introducer with its parameters, an operating system command up to its
# terminator, or any other two-character escape; both the 7-bit and the 8-bit forms.
_ESCAPE_SEQUENCE = lazy_pattern(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_MAX_QUOTED = 1000  # characters of a line that are looked at
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_MAX_DURATION_SECONDS = 3650 * 86400.0  # of a duration that a person writes
_AGES_SECONDS = 36500 * 86400.0  # of which nobody needs to know more
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # controls, formats (bidi), surrogates, private, separators


def clean_text(text: str, limit: int = 300) -> str:
    """Return one line of at most ``limit`` visible characters. An ellipsis marks a cut.

    Escape sequences are removed. Every other invisible character becomes a space, and each run of white
    space becomes one space.
    """
    if len(text) <= limit and text.isprintable():
        return " ".join(text.split())
    # Invisible characters may outnumber the visible ones; text beyond this length is cut.
    visible = _ESCAPE_SEQUENCE.sub("", text[: 8 * limit])
    spaced = "".join(" " if unicodedata.category(char) in _INVISIBLE else char for char in visible)
    line = " ".join(spaced.split())
    cut = len(line) > limit or len(text) > 8 * limit
    return line[: limit - 1] + "…" if cut else line


def quoted(line: str) -> str:
    """Return a printed line in quotation marks, safe to show and without secrets."""
    return repr(clean_text(masked_text(line.strip()[:_MAX_QUOTED]), 120))


def one_of(words: Iterable[str]) -> str:
    """Return the words as a choice: "info, warning or critical"."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def elided(text: str, max_characters: int) -> str:
    """Return the text with at most so many characters: the middle is left out, because names differ at both
    ends. `sentinel.common.distinct_names` shortens all names of a table.
    """
    if len(text) <= max_characters:
        return text
    head = (max_characters - 1) // 2
    return f"{text[:head]}…{text[head + 1 - max_characters :]}"


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: "1 run", "1,200 runs"."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def counted_runs(runs: int, logs: int) -> str:
    """Return the numbers of runs and logs: "26 runs in 34 logs", or "34 runs" if each has one log."""
    in_logs = f" in {counted(logs, 'log')}" if logs != runs else ""
    return f"{counted(runs, 'run')}{in_logs}"


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: "40 s", "12 min 5 s", "3 h 20 min", "2 d 4 h"."""
    if not seconds < _AGES_SECONDS:
        return "over 100 years"
    whole_seconds = max(0, round(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, whole_seconds = divmod(whole_seconds, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count) or "0 s"


def seconds_in(duration: str) -> float:
    """Return the seconds in "90s", "30m", "2h", "1.5d" or "1w".

    Raises ValueError for anything else, and for more than ten years.
    """
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)([smhdw])", duration, re.ASCII)
    if not match or not float(match[1]):
        raise ValueError(f"{clean_text(duration, 60)!r} is not a duration; write 30m, 2h, 1d or 1w")
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > _MAX_DURATION_SECONDS:
        raise ValueError(f"{duration!r} is longer than ten years")
    return seconds


def sentence(words: str) -> str:
    """Return the words as a sentence, with a capital letter and a full stop. They are cleaned.

    The name of a metric, such as `eval/loss` or `kl`, keeps its letters if it comes first.
    """
    line = clean_text(words, 1000)
    has_end = not line or line.endswith((".", "!", "?", "…"))
    first_word = line.split(" ", 1)[0]
    is_word = first_word.replace("-", "").replace("'", "").isalpha()
    return (line[:1].upper() + line[1:] if is_word else line) + ("" if has_end else ".")
