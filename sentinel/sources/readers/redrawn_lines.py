"""Printed bytes become lines: without colours, what a container's log puts around them, and drawn bars."""

import re
from collections.abc import Iterator

from sentinel.common.lazy_pattern import lazy_pattern

MAX_CHARACTERS = 8192
"""Characters of a line that is read; longer ones are skipped."""

_ESCAPE = lazy_pattern(r"\x1b(?:\[[0-9;?]{0,32}[ -/]{0,4}[@-~]?|\][^\x07\x1b]{0,256}\x07?|.)|[\x08\ufeff]")
_LINE_END = lazy_pattern(r"\r?\n|\r(?!\n)")
_DRAWING = r"\|(?![^|]{0,600}[A-Za-z_]\)?\s{0,3}[:=]?\s{0,3}[-+]?\d)[^|]{0,600}\|"
"""What a bar draws between two strokes. Between those of columns stands a name with its number."""

_DRAWN_BAR = lazy_pattern(rf"%\s?{_DRAWING}")
_BAR_OF_PART = lazy_pattern(
    r"^(\s{0,9}(?:train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|eval(?:uation)?)\s{0,3}: )"
    rf"\s{{0,4}}\d{{1,3}}%\s?{_DRAWING}",
    re.IGNORECASE,
)
_INTRUDER = lazy_pattern(
    r"(?<=\S)20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: [IWEF] [\w./]{1,200}\.cc:\d{1,6}\] .*", re.DOTALL
)
"""A message of TensorFlow's C++ that stands right behind what a bar had printed."""

_CRI = lazy_pattern(r"\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[-+]\d\d:\d\d) std(?:out|err) [FP] ")
_DOCKER = lazy_pattern(r'\{"log":"((?:[^"\\]|\\.){0,16384})","stream":"std(?:out|err)","time":"[^"]{1,60}"\}')


def bar_free(line: str) -> str:
    """Return the line without what a progress bar draws, and how much of its part of the data is done."""
    if "%" not in line:
        return line
    return _DRAWN_BAR.sub("%| ", _BAR_OF_PART.sub(r"\1", line))


def end_of_lines(data: bytes) -> int:
    """Return where the last whole line of the data ends. A line that is redrawn ends with a carriage return.

    A carriage return at the very end may be followed by a line break.
    """
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(0, len(data) - 1))) + 1


def printed_lines(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield the lines of data that ends with a line, and whether each was redrawn."""
    text = data.decode("utf-8", "replace")
    if "\0" in text or "\1" in text:
        text = text.replace("\0", "").replace("\1", "")
    start = 0
    for end in _LINE_END.finditer(text):
        line = text[start : end.start()]
        start = end.end()
        if line and len(line) <= MAX_CHARACTERS and not line.isspace():
            yield from _message(line, end[0] == "\r")


def _message(line: str, is_redrawn: bool) -> Iterator[tuple[str, bool]]:
    """Yield what a process printed, of a line that a container's log may hold."""
    if "\x1b" in line or "\x08" in line or "\ufeff" in line:
        line = _ESCAPE.sub("", line)
    if line.startswith('{"log":') and (wrapper := _DOCKER.fullmatch(line)):
        text = wrapper[1].replace('\\"', '"').replace("\\r", "\\n").replace("\\t", "\t")
        yield from ((part, False) for part in text.split("\\n") if part)
        return
    if ".cc:" in line:
        line = _INTRUDER.sub("", line)
    if line[:2] == "20" and " std" in line[:60]:
        prefix = _CRI.match(line)
        line = line[prefix.end() :] if prefix else line
    if line and not line.isspace():
        yield line, is_redrawn
