"""What loggers put before a message beside the time: the place in the program, and days in words or halves.

A line of source is no metric, the name of its file tells no part of the data, and "08/03" counts no batches.
"""

import re

from sentinel.common.lazy_pattern import lazy_pattern

MAX_PREFIX = 240
"""Characters of a line in which a logger may name the place in the program."""

_PLACE = lazy_pattern(
    r"[\[({<]?(?<![\w./\\-])[\w./\\-]{0,200}\.py[\])]?(?:[\s,:|-]{0,3}[\[(]{0,2})"
    r"(?:line(?:no)?[\s:=]{1,2}|L)?\d{1,5}(?![\d.])[\])}>]{0,2}"
)
_CLOCK = r"\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?"
_DAY = lazy_pattern(
    r"(\W{0,3})(?:\d\d?/\d\d? |(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w{0,6},? )?"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w{0,6} {1,2}\d\d?,? )"
    rf"({_CLOCK})(?: \d{{4}}(?![\d.]))?"
)
_HALF = lazy_pattern(rf"(\W{{0,3}}(?:[\d/.-]{{8,10}} )?{_CLOCK}) [AP]M(?![A-Za-z])")
_CHINESE_DAY = lazy_pattern(r"(\d{4})年(\d\d?)月(\d\d?)日")


def without_places(line: str) -> str:
    """Return a line without the place in the program that a logger names, and with days that are plain."""
    if not line.isascii():
        line = _CHINESE_DAY.sub(r"\1-\2-\3", line)
    if ":" not in line:
        return line
    for pattern, plain in ((_DAY, r"\1\2"), (_HALF, r"\1")):
        if found := pattern.match(line):
            line = found.expand(plain) + line[found.end() :]
    if ".py" in line[:MAX_PREFIX]:
        line = _PLACE.sub(_blank, line[:MAX_PREFIX], 1) + line[MAX_PREFIX:]
    return line


def _blank(place: re.Match[str]) -> str:
    """Return what stands in the place of a place in the program; glog ends its prefix with one."""
    if place[0].endswith("]") and "[" not in place.string[: place.end()]:
        return place[0]
    return "| " if place.start() == 0 else " "
