"""Finds the directories in which ``add_scalars`` of torch leaves the curves of one plot.

With `add_scalars("Loss", {"G": ..., "D": ...})` it writes `Loss_G/` and `Loss_D/` below that of the training.
The tag in both is `Loss`, and only the name of the directory tells which of the curves it is.
"""

from collections.abc import Sequence
from pathlib import Path

from sentinel.sources.tensorboard.held_out import word_in, wrote_both


def is_of_one_curve(directory: Path) -> bool:
    """Return whether the process that writes the training above writes this directory as well. Those of parts
    of the data are told by their own names.
    """
    return wrote_both(directory.parent, directory) and not word_in(directory)


def names_of_curve(directory: Path, tags: Sequence[str]) -> list[str]:
    """Return the tags with the name of their curve behind them: "Loss/G" for "Loss" in `Loss_G/`."""
    return [_name_of_curve(directory.name, tag) for tag in tags]


def _name_of_curve(directory: str, tag: str) -> str:
    plot = tag.replace("/", "_") + "_"
    curve = directory.removeprefix(plot)
    return tag if curve in ("", directory) else f"{tag}/{curve}"
