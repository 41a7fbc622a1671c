"""Finds the directories of held-out data that belong to the training in the directory beside them.

Keras writes `train/` and `validation/`, scripts write `train/` and `val/`, and ``add_scalars`` of torch
writes `loss_train/` and `loss_val/`, or `Loss_Training/` and `Loss_Validation/`. Such names prove nothing:
Ultralytics calls its trainings `train` and `train2`, and a validation of its own `val`. So the first files of
both must come from the same process on the same host, and that of the training must have been there first.
The names of the files tell both and never change, so the answer is the same whenever one looks and whatever
the files hold by then.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from sentinel.sources.tensorboard.names import is_event_file, order, writer_in

PARTS = ("val", "valid", "validation", "eval", "test")
"""Names of directories with held-out data. A tag without one belongs to the training."""

_TRAININGS = ("train", "training", "Train", "Training")
_PART_FOLDERS = (*PARTS, *(part.capitalize() for part in PARTS))


def possible_parts(training: Path) -> Iterator[Path]:
    """Yield the directories, there or not, that hold held-out data of a training in this directory."""
    word = _ending_word(training.name, _TRAININGS)
    if word:
        candidates = (part for part in _PART_FOLDERS if part.istitle() == word.istitle())
        yield from (training.with_name(f"{training.name.removesuffix(word)}{part}") for part in candidates)


def held_out(training: Path) -> list[Path]:
    """Return the directories with held-out data that belong to the training in this directory."""
    return [path for path in possible_parts(training) if wrote_both(training, path)]


def part_in(directory: Path) -> str:
    """Return the part of the data in the name of a directory: "val" in `loss_val`; empty if there is none."""
    return _ending_word(directory.name, _PART_FOLDERS).lower()


def is_of_part(directory: Path) -> bool:
    """Return whether a directory is called like a part of the data."""
    return bool(_ending_word(directory.name, (*_PART_FOLDERS, *_TRAININGS)))


def training_of(directory: Path) -> Path | None:
    """Return the directory of the training whose held-out data this directory has; None if of none."""
    part = _ending_word(directory.name, _PART_FOLDERS)
    candidates = (word for word in _TRAININGS if part and word.istitle() == part.istitle())
    trainings = (directory.with_name(f"{directory.name.removesuffix(part)}{word}") for word in candidates)
    return next((training for training in trainings if wrote_both(training, directory)), None)


def _ending_word(name: str, words: Sequence[str]) -> str:
    """Return the word with which a name ends, apart from what stands before; empty if there is none."""
    before = ((name.removesuffix(word), word) for word in words if name.endswith(word))
    return next((word for rest, word in before if not rest or rest.endswith(("_", "-", "."))), "")


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
