"""Names the last checkpoint from before an incident, by the names of the files beside the run.

Checkpoints are only listed, never opened.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

_STEP = re.compile(
    r"(?:^|[-_.])(?:checkpoint|ckpt|global_?step|step|steps|iter|iteration|itr|model)[-_=]?(?P<step>\d+)(?!\d|\.\d)"
    r"|_(?P<steps>\d+)_steps",
    re.IGNORECASE,
)
"""Hugging Face's ``checkpoint-500``, Lightning's ``epoch=1-step=500.ckpt``, DeepSpeed's ``global_step500``,
torchtitan's ``step-500``, Stable-Baselines' ``rl_model_500_steps.zip``."""
_ENDINGS = (".ckpt", ".pt", ".pth", ".safetensors", ".zip", ".keras", ".h5", ".distcp")
_FOLDER = re.compile(r"(?:checkpoint|ckpt|global_?step|step)[-_=]?\d+", re.IGNORECASE)
_BELOW = ("checkpoints", "checkpoint", "ckpts", "weights", "models")
_LOGS = ("runs", "logs", "log", "tensorboard", "tb", "wandb", "csv_logs", "lightning_logs")
"""Folders for logs: the checkpoints of a training that logs there lie beside or above them."""
_MAX_NAMES = 5000  # of one folder


def last_checkpoint(place: str, onset_step: int, onset_time: float | None) -> str:
    """Return the path of the last checkpoint from before the onset; empty if none is found.

    A checkpoint whose name tells no step counts by the time at which it was last changed, if ``onset_time``
    (seconds since the epoch) is known.
    """
    known: list[tuple[int, str]] = []
    undated: list[tuple[float, str]] = []
    for step, entry in checkpoints(place):
        if step is not None and step < onset_step:
            known.append((step, entry.path))
        elif step is None and onset_time is not None:
            with suppress(OSError):
                if (changed := entry.stat().st_mtime) < onset_time:
                    undated.append((changed, entry.path))
    candidates = known or undated
    return max(candidates)[1] if candidates else ""


def checkpoints(place: str) -> Iterator[tuple[int | None, os.DirEntry[str]]]:
    """Return what looks like a checkpoint of the run at this path, with the step in its name if it tells
    one.
    """
    run = Path(place)
    folder = run.parent if run.is_file() else run
    return ((_step(entry.name), entry) for entry in _entries(folder))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what looks like a checkpoint in the folders where those of the run may lie."""
    homes = [folder]
    if folder.parent.name in _LOGS:
        homes.append(folder.parent.parent)
    for home in homes:
        for place in (home, *(home / below for below in _BELOW)):
            with suppress(OSError), os.scandir(place) as entries:
                yield from filter(_is_checkpoint, islice(entries, _MAX_NAMES))


def _is_checkpoint(entry: os.DirEntry[str]) -> bool:
    if entry.name.lower().endswith(_ENDINGS):
        return True
    with suppress(OSError):
        return _FOLDER.fullmatch(entry.name) is not None and entry.is_dir()
    return False


def _step(name: str) -> int | None:
    steps = [match["step"] or match["steps"] for match in _STEP.finditer(name)]
    return int(steps[-1]) if steps else None
