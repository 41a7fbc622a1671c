"""Printed lines that each shape of the console's reader nearly matches, a quarter of a megabyte of each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import process_time

from sentinel.sources.base import Cursor
from sentinel.sources.console.log import ConsoleLog
from sentinel.sources.console.shapes import SHAPES, Shape
from studies.hostile.attempt import Attempt, require
from tests.near_matches import near_matches

AREA = "Printed lines"
SIZE = 1 << 18
LINE_CHARACTERS = 8192
MAX_RATIO = 20
"""How much longer than as many bytes of an ordinary log."""

_PIECE = 1 << 10  # characters of a text that is repeated
_MAX_TEXTS = 2  # of a shape, those that take longest

ORDINARY = "".join(
    f"step {step} loss: {1 / (step + 1):.5f} lr: 1e-4 grad_norm: 0.5\n" for step in range(20_000)
)


def attempts() -> Iterator[Attempt]:
    """Yield the near-matches of each shape, in lines and in one line."""
    for shape in SHAPES:
        for name, line in (("lines", LINE_CHARACTERS), ("one line", SIZE)):
            yield Attempt(AREA, shape.name, name, partial(_try, shape, line))


def _try(shape: Shape, line_characters: int, place: Path) -> None:
    usual = _seconds(place / "usual.log", ORDINARY[:SIZE])
    texts = [text * (line_characters // len(text)) for text in near_matches(shape.line, _PIECE)]
    texts = sorted(texts, key=lambda text: _search_seconds(shape, text[:_PIECE]))[-_MAX_TEXTS:]
    for number, text in enumerate(texts):
        one_line = text.replace("\n", " ")
        content = f"step 1 loss: 1.0\nstep 2 loss: 1.0\n{(one_line + chr(10)) * (SIZE // line_characters)}"
        seconds = _seconds(place / f"{number}.log", content)
        require(
            seconds < MAX_RATIO * usual,
            f"{seconds / usual:.0f} times as long as an ordinary log: {one_line[:60]!r}",
        )


def _search_seconds(shape: Shape, text: str) -> float:
    begin = process_time()
    for _ in range(5):
        for _ in shape.line.finditer(text):
            pass
    return process_time() - begin


def _seconds(path: Path, text: str) -> float:
    path.write_text(text, encoding="utf-8")
    log = ConsoleLog(path)
    cursor: Cursor = {}
    begin = process_time()
    more = True
    while more:
        result = log.poll(cursor, 1 << 15)
        cursor = result.cursor
        more = result.more
    return process_time() - begin
