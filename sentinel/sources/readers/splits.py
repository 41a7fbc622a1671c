"""The part of the data that a row was measured on, where a column of its own states it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.words import says_metric

PART_KEYS = ("split", "phase", "mode", "stage", "subset", "partition", "set", "type", "event", "kind")
"""Names of such a column, in lower case."""

_BATCH = "iter"
HELD_OUT = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "dev"})
"""Names of the parts of the data that a model is not trained on."""

_NAMED_PART = lazy_pattern(rf"(?<![a-z])(?:{'|'.join(sorted(HELD_OUT))})(?![a-z])", re.IGNORECASE)
COMPARED = lazy_pattern(r"train(?:ing)?[ _]+(?:vs\.?|versus)[ _]+val(?:id(?:ation)?)?[ _]+", re.IGNORECASE)
"""Pattern of words that name both parts of the data, before a metric with a curve of each."""

_RECORD_OF_PART = lazy_pattern(
    rf"({'|'.join(sorted(HELD_OUT))})(?:[ _-](?:steps?|epoch|end|metrics|results?|set|split|loop|log))?",
    re.IGNORECASE,
)
"""What such a cell says: "val", or "eval_step" as the kind of a record."""

ONLY_A_PART = lazy_pattern(
    rf"(?:train(?:ing)?|trn|{'|'.join(sorted(HELD_OUT))}|testing)(?:[ _-]?(?:set|total|overall))?"
    "|total|overall",
    re.IGNORECASE,
)
"""Names of columns that say of which data a metric is, or that it is the whole, and not which metric."""

_HELD_OUT_LOSS = lazy_pattern(rf"((?:{'|'.join(sorted(HELD_OUT))})[ _/.-])(?:avg_|mean_)?loss", re.IGNORECASE)
_BARE_LOSS = "loss"
_BARE = frozenset(
    {
        "acc",
        "accuracy",
        "f1",
        "f1-score",
        "f1_score",
        "f1score",
        "precision",
        "recall",
        "auc",
        "auroc",
        "roc_auc",
    }
    | {"mcc", "kappa", "wer", "cer", "bleu", "dice", "iou", "miou", "mae", "mse", "rmse", "mape", "r2"}
)
_OF_NO_PART = ("lr", "learning_rate")
_OF_TRAINING = lazy_pattern(r"(?<![a-z])tr(?:ai)?n", re.IGNORECASE)
_METRIC_OF_TRAINING = lazy_pattern(r"(?:train(?:ing)?|trn)[ _-](.+)", re.IGNORECASE)
_TRAINING = "train"


def held_out(text: str) -> str:
    """Return the held-out part of the data that a cell names, in lower case; empty if it names none."""
    part = _RECORD_OF_PART.fullmatch(text.strip())
    return part[1].lower() if part else ""


def of_part(name: str, part: str) -> str:
    """Return a metric's name with the part, unless it has a part or is that of a learning rate."""
    match = _NAMED_PART.search(COMPARED.sub("", name))
    return name if name.lower() in _OF_NO_PART or match else f"{part}/{name}"


def part_of_file(stem: str) -> str:
    """Return the part of the data that the name of a file says, in lower case.

    A held-out one it begins with. That of the training stands before the metric that the file holds: a file
    named ``train_log`` may hold all there is.
    """
    of_training = _METRIC_OF_TRAINING.fullmatch(stem)
    if of_training and says_metric(of_training[1]) and not _NAMED_PART.search(stem):
        return _TRAINING
    part = _NAMED_PART.match(stem)
    return part[0].lower() if part and not _OF_TRAINING.search(stem) else ""


def part_of_text(stem: str) -> str:
    """Return the held-out part that the name of a text says before a metric; others may hold all there is."""
    part = part_of_file(stem)
    return part if part in HELD_OUT and says_metric(stem[len(part) :]) else ""


def of_file(name: str, part: str) -> str:
    """Return the name that a metric has in a file of that part of the data; what is none keeps its own."""
    is_of_part = part and says_metric(name) and not _OF_TRAINING.search(name)
    return of_part(name, part) if is_of_part else name


def with_part(record: Mapping[str, Any], axes: frozenset[str]) -> Mapping[str, Any]:
    """Return the record with the part of the data in its names, if it was measured on held-out data.

    ``{"epoch": 1, "phase": "val", "loss": 2.0}`` becomes ``{"epoch": 1, "val/loss": 2.0}``. The ``axes`` keep
    their names. They are the lower-case names of steps, epochs and times. OpenMMLab counts the batches of the
    validation in `iter`, so such a record has no step of its own.
    """
    for name, value in record.items():
        part = held_out(value) if isinstance(value, str) and name.lower() in PART_KEYS else ""
        if part:
            others = ((n, number) for n, number in record.items() if n not in (name, _BATCH))
            return {n if n.lower() in axes else of_part(n, part): number for n, number in others}
    return record


def beside_held_out_loss(names: Sequence[str]) -> list[str]:
    """Return the names in a record. Bare metrics beside the loss of held-out data alone are of that data.

    ``{"epoch": 1, "val_loss": 2.0, "accuracy": 0.3}`` has a ``val_accuracy``: another record of that epoch
    may hold an accuracy beside the loss of the training.
    """
    parts = {loss[1] for name in names if (loss := _HELD_OUT_LOSS.fullmatch(name)) is not None}
    if len(parts) != 1 or any(name.lower() == _BARE_LOSS or _OF_TRAINING.search(name) for name in names):
        return [*names]
    (part,) = parts
    return [f"{part}{n}" if n.lower() in _BARE and f"{part}{n}" not in names else n for n in names]
