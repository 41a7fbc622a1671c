"""Finds the directories of held-out data that belong to the training in the directory beside them.

Keras writes `train/` and `validation/`, scripts write `train/` and `val/`, and ``add_scalars`` of torch
writes `loss_train/` and `loss_val/`, or `Loss_Train Loss/` and `Loss_Test Loss/`. Such names prove nothing:
Ultralytics calls its trainings `train` and `train2`, and a validation of its own `val`. So the first files of
both must come from the same process on the same host, and that of the training must have been there first.
The names of the files tell both and never change, so the answer is the same whenever one looks and whatever
the files hold by then.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.tensorboard.names import is_event_file, order, writer_in

PARTS = ("val", "valid", "validation", "eval", "test")
"""Names of directories with held-out data. A tag without one belongs to the training."""

_TRAININGS = ("train", "training")
_WORD = lazy_pattern(rf"(?<![A-Za-z])(?:{'|'.join((*PARTS, *_TRAININGS))})(?![A-Za-z0-9])", re.IGNORECASE)


def possible_parts(training: Path) -> Iterator[Path]:
    """Yield the directories, there or not, that hold held-out data of a training in this directory."""
    yield from _with_other_words(training, _TRAININGS, PARTS)


def held_out(training: Path) -> list[Path]:
    """Return the directories with held-out data that belong to the training in this directory."""
    return [path for path in possible_parts(training) if wrote_both(training, path)]


def part_in(directory: Path) -> str:
    """Return the part of the data in the name of a directory: "val" in `loss_val`; empty if there is none."""
    word = word_in(directory)
    return word if word in PARTS else ""


def is_of_part(directory: Path) -> bool:
    """Return whether the name of a directory ends like a part of the data."""
    word = word_in(directory)
    return bool(word) and directory.name.lower().endswith(word)


def training_of(directory: Path) -> Path | None:
    """Return the directory of the training whose held-out data this directory has; None if of none."""
    trainings = _with_other_words(directory, PARTS, _TRAININGS)
    return next((training for training in trainings if wrote_both(training, directory)), None)


def word_in(directory: Path) -> str:
    """Return the last word for a part of the data, or for the training, in the name of a directory."""
    words = _WORD.findall(directory.name)
    return words[-1].lower() if words else ""


def _with_other_words(directory: Path, words: Sequence[str], others: Sequence[str]) -> Iterator[Path]:
    """Yield the directories with each of the other words in place of the last one in this name."""
    last = next(iter([*_WORD.finditer(directory.name)][-1:]), None)
    if last is None or last[0].lower() not in words:
        return
    before, after = directory.name[: last.start()], directory.name[last.end() :]
    for other in others:
        yield directory.with_name(f"{before}{_in_the_case_of(last[0], other)}{after}")


def _in_the_case_of(word: str, other: str) -> str:
    if word.isupper():
        return other.upper()
    return other.capitalize() if word.istitle() else other


def wrote_both(training: Path, part: Path) -> bool:
    """Return whether one process began to write both, the training first."""
    of_training = _first_event_file(training)
    of_part = _first_event_file(part)
    if of_training is None or of_part is None:
        return False
    return of_training[0] == of_part[0] and of_training[1] < of_part[1]


def _first_event_file(directory: Path) -> tuple[str, tuple[int, int, str]] | None:
    """Return the process and the place in the order of the first event file whose name tells them."""
    try:
        names = [name for name in os.listdir(directory) if is_event_file(name)]
    except OSError:
        return None
    writers = ((writer, name) for name in sorted(names, key=order) if (writer := writer_in(name)))
    return next(((writer["process"], order(name)) for writer, name in writers), None)
