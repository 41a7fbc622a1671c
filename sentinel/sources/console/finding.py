"""Finds the lines of a text that may tell metrics, so that no time is spent on the others.

A few signs are searched in the whole text at once, which is some hundred times faster than to look at each
line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OF_METRICS = (
    b"loss", b"acc", b"rew", b"return", b"perplexity", b"ppl", b"bpb", b"lr", b"learning", b"grad", b"kl",
    b"entropy", b"mse", b"mae", b"psnr", b"ssim", b"f1", b"bleu", b"iou", b"auc",
)  # fmt: skip
_STRONG = (
    b"loss", b"reward", b"learn: ", b" avg", b"]\t", b" up. ",
    b"{",  # dictionaries
    b"%|",  # progress bars
    b"---", b"===", "───".encode(), "━━━".encode(),  # the rules of tables
    b"[sample=", b"[token=",  # blocks
)  # fmt: skip
_OF_A_PLAN = (b"num ex", b"num ep", b"batch size", b"accumulation", b"optimization")
_WEAK = (b"step", b"iter", b"epoch", b"update", b"train", b"episode", b"batch", b"val", b"test")
"""Signs that many other lines have as well. A line that has no other also needs what `_TELLING` finds."""

_TELLING = re.compile(
    b"|".join(_OF_METRICS) + rb"|iteration |iters:|\[metric\]|skipped=|micro_step=|total t: |/step|:\s*$"
    rb"|epoch[: ]{1,3}\[?\d|global_step: |saving dict|\[(?:step|batch|epoch|iteration)="
)
_BEGIN = rb"\n(?:\x1b\[[0-9;]*m|\[\w{1,30}\]:? ?|\([^)\n]{1,120}\) ?)*[ \t]{0,9}"  # and a process
_IN_TABLE = re.compile(_BEGIN + rb"(?:\||\xe2\x94[\x82\x83])")
_IN_COLUMNS = re.compile(_BEGIN + rb"\d{1,15} {2}")


@dataclass(frozen=True)
class Wanted:
    """What else than lines with a step counts, given the lines so far."""

    table: bool  # rows of a table of two columns
    columns: bool  # rows of a table whose columns blanks separate
    rows: bool  # metrics without a step
    plan: bool  # what is printed before the first step


def may_count(data: bytes, wanted: Wanted) -> list[int]:
    """Where the lines begin that may count; ``data`` ends with a line break."""
    if b"\0" in data:  # as UTF-16 has between letters
        return [0, *(found.end() for found in re.finditer(rb"\n(?!\Z)", data))]
    lowered = b"\n" + data.lower()
    signs = (*_STRONG, *(_OF_A_PLAN if wanted.plan else ()), *(_OF_METRICS if wanted.rows else ()))
    found = {place for sign in signs for place in _lines_with(lowered, sign)}
    weak = {place for sign in _WEAK for place in _lines_with(lowered, sign)} - found
    found.update(place for place in weak if _TELLING.search(lowered, place, lowered.find(b"\n", place + 1)))
    for is_wanted, pattern in ((wanted.table, _IN_TABLE), (wanted.columns, _IN_COLUMNS)):
        if is_wanted:
            found.update(match.start() for match in pattern.finditer(lowered))
    found.update(_lines_with(lowered.replace(b"\r\n", b" \n"), b"\r"))  # with what was overwritten
    return sorted(found)


def _lines_with(text: bytes, sign: bytes) -> Iterator[int]:
    """Where the lines begin that hold the sign."""
    at = text.find(sign)
    while at >= 0:
        yield text.rfind(b"\n", 0, at)
        at = text.find(sign, text.find(b"\n", at))
