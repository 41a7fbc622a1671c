"""Finds the lines of a text that may tell metrics, so that no time is spent on the others.

A few signs are searched in all lines at once, which is some hundred times faster than to parse each line.
"""

import functools
import operator
from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from sentinel.sources.console.splits import LEVELLED

_LINE_COLUMN = "line"

_OF_METRICS = (
    "loss", "acc", "rew", "return", "perplexity", "ppl", "bpb", "lr", "learning", "grad", "kl",
    "entropy", "mse", "mae", "psnr", "ssim", "f1", "bleu", "iou", "map", "dice", "auc", "score", "cost",
    "nll",
)  # fmt: skip
_STRONG = (
    "loss", "reward", "learn: ", " avg", "]\t", " up. ",
    "{",  # dictionaries
    "%|", "it/s", "s/it",  # progress bars, and what a notebook leaves of them
    "---", "===", "───", "━━━",  # the rules of tables
    "[sample=", "[token=",  # blocks
    "gpu_mem",  # a table of YOLO
    " hella ", "tel:", "trl:",  # build-nanogpt and llm.c
    " sent/s - ", " equations/s - ",  # XLM, SymbolicMathematics
    "result for ",  # Ray Tune
    "evaluation over ",  # TD3
    "***** ",  # the heading of results of an evaluation
)  # fmt: skip
_OF_A_PLAN = ("num ex", "num ep", "batch size", "accumulation", "optimization", "namespace(")
_WEAK = ("step", "iter", "epoch", "update", "train", "episode", "batch", "val", "test")
"""Signs that many other lines have as well. A line that has no other also needs one of `_TELLING`."""

_TELLING = (
    *_OF_METRICS,
    "iteration ", "iters:", "[metric]", "skipped=", "micro_step=", "total t: ", "/step",
    "global_step: ", "saving dict", "[step=", "[batch=", "[epoch=", "[iteration=",
)  # fmt: skip
_COUNTED_LINE = (
    r"(?i)epoch[: ]{1,3}\[?\d",
    r"(?i)^(?:update|iteration|step): \d+\s*$",
    r"^\d{1,9} (?:train|val) [\dn]",  # build-nanogpt
    r":\s*$",
)  # or a heading
_LINE_BEGIN = r"^(?:\x1b\[[0-9;]*m|\[\w{1,30}\]:? ?|\([^)]{1,120}\) ?)*[ \t]{0,9}"  # and a process
_IN_TABLE = _LINE_BEGIN + "[|│┃]"
_IN_COLUMNS = (
    _LINE_BEGIN
    + rf"(?:{LEVELLED})?"
    + r"(?:(?:\d{1,15}| {0,20}all) {2}|(?:[|│┃] {0,9})?\d{1,15}(?:/\d{1,15})? {0,9}[|│┃])"
)


class Wanted(msgspec.Struct, frozen=True):
    """What else than lines with a step counts, given the lines so far."""

    table: bool  # rows of a table of two columns
    columns: bool  # rows of a table with a column for each metric
    rows: bool  # metrics without a step
    plan: bool  # what is printed before the first step


def may_count(lines: Sequence[str], wanted: Wanted) -> list[int]:
    """Return the numbers of the lines that may count."""
    signs = ("\r", *_STRONG, *(_OF_A_PLAN if wanted.plan else ()), *(_OF_METRICS if wanted.rows else ()))
    patterns = [*([_IN_TABLE] if wanted.table else []), *([_IN_COLUMNS] if wanted.columns else [])]
    text = pl.DataFrame({_LINE_COLUMN: lines}, schema={_LINE_COLUMN: pl.String})
    signs_by_line = text.select(strong=_holds(signs, patterns), weak=_holds(_WEAK))
    counts = signs_by_line["strong"].to_numpy(writable=True)
    weak = np.flatnonzero(signs_by_line["weak"].to_numpy() & ~counts)
    if len(weak):
        counts[weak] = text[weak].select(_holds(_TELLING, _COUNTED_LINE)).to_series().to_numpy()
    numbers: list[int] = np.flatnonzero(counts).tolist()
    return numbers


def _holds(signs: Sequence[str], patterns: Sequence[str] = ()) -> pl.Expr:
    """Return whether each line holds one of the signs or matches one of the patterns.

    Several patterns take less time than one pattern of them all.
    """
    line = pl.col(_LINE_COLUMN)
    holds = line.str.contains_any([*signs], ascii_case_insensitive=True)
    return functools.reduce(operator.or_, map(line.str.contains, patterns), holds)
