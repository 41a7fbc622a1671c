"""The truth table of outcomes, which somebody made by reading each run before the product said anything."""

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parent / "outcomes.tsv"

PARTS = ("first", "second", "third")
"""Two halves by repository, of which the second was kept for the last measurement, and further ones."""

KINDS = ("metric", "reward", "held-out loss", "training loss")

NOTHING = "-"


@dataclass(frozen=True)
class Row:
    """One run. ``kind`` is "-" for a run without an outcome; ``also_right`` are tags that are as good."""

    path: str  # begins with the name of the folder of logs
    format: str
    outcome: str
    kind: str
    direction: str
    split: str
    unit: str
    training_loss: str
    held_out_loss: str
    also_right: Collection[str]
    part: str


def rows() -> Sequence[Row]:
    """Return all rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        table = [*csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return [Row(**{**row, "also_right": _tags(row["also_right"])}) for row in table]


def _tags(text: str) -> Collection[str]:
    return frozenset() if text == NOTHING else frozenset(text.split(","))
