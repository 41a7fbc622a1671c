"""Which files of a common kind, CSV or JSON, are training logs: by their names and by what they hold."""

import os
import re
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path

from sentinel.sources.records import EPOCH_KEYS, STEP_KEYS, named

HEAD_BYTES = 1 << 16
"""How much of a file is looked at."""

_NAME = re.compile(r"metrics|progress|^results|summary|monitor|history|losses|log|^train", re.IGNORECASE)
_MOST_REMEMBERED = 1 << 16  # files; then all are looked at anew
_LOGGERS = frozenset({"metrics", "progress"})  # names that loggers choose: a column of steps is enough
_INDEX = ("", "unnamed: 0")  # what pandas writes before the columns
_METRIC = re.compile(
    r"loss|accuracy|reward|perplexity|entropy|grad.?norm|learning.?rate|ep_?rew|ep_?ret"
    r"|(?<![a-z])(acc|lr|kl|ppl|map|m?iou|wer|cer|bleu|auc|f1|mae|mse|rmse|top1)(?![a-z])",
    re.IGNORECASE,
)


def is_log_name(stem: str) -> bool:
    """Whether a file of this name, without its ending, may be a training log."""
    return _NAME.search(stem) is not None


def is_log(stem: str, columns: Collection[str]) -> bool:
    """Whether the columns of a file of such a name count steps or epochs and hold metrics of training."""
    counted = named(columns, (*STEP_KEYS, *EPOCH_KEYS, *_INDEX)) is not None
    return counted and (stem in _LOGGERS or any(map(_METRIC.search, columns)))


def remembered(look: Callable[[Path], bool]) -> Callable[[Path], bool]:
    """``look`` at a file, asked again only if the file changed: a log stays one as long as it only grows.

    A file that cannot be looked at is none.
    """
    known: dict[Path, tuple[tuple[int, int, int], bool]] = {}

    @wraps(look)
    def answer(path: Path) -> bool:
        try:
            status = os.stat(path)
        except OSError:
            return False
        inode, size, modified = now = status.st_ino, status.st_size, status.st_mtime_ns
        before, found = known.get(path, ((0, 0, 0), False))
        if before == now or (found and before[0] == inode and before[1] <= size and before[2] <= modified):
            return found
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        found = look(path)
        known[path] = now, found
        return found

    return answer
