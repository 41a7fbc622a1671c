"""Names the last checkpoint from before an incident, by the names of the files beside the run.

Checkpoints are only listed, never opened.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_file

_CHECKPOINT_STEP = lazy_pattern(
    r"(?:^|[-_.])(?:checkpoint|ckpt|global_?step|step|steps|iter|iteration|itr|model)[-_=]?(?P<step>\d+)(?!\d|\.\d)"
    r"|_(?P<steps>\d+)_steps",
    re.IGNORECASE,
)
"""Hugging Face's ``checkpoint-500``, Lightning's ``epoch=1-step=500.ckpt``, DeepSpeed's ``global_step500``,
torchtitan's ``step-500``, Stable-Baselines' ``rl_model_500_steps.zip``."""
_FILE_ENDINGS = (".ckpt", ".pt", ".pth", ".safetensors", ".zip", ".keras", ".h5", ".distcp")
_STEP_FOLDER = lazy_pattern(r"(?:checkpoint|ckpt|global_?step|step)[-_=]?\d+", re.IGNORECASE)
_CHECKPOINT_FOLDERS = ("checkpoints", "checkpoint", "ckpts", "weights", "models")
_LOG_FOLDERS = ("runs", "logs", "log", "tensorboard", "tb", "wandb", "csv_logs", "lightning_logs")
"""The checkpoints of a training that logs into such a folder lie beside or above it."""
_MAX_NAMES_LISTED = 5000  # of one folder


def last_checkpoint(run_path: str, onset_step: int, onset_time: float | None) -> str:
    """Return the path of the last checkpoint from before the onset; empty if there is none.

    A checkpoint whose name has no step counts by the time at which it was last changed, if ``onset_time``
    (seconds since the epoch) is known.
    """
    by_step: list[tuple[int, str]] = []
    by_time: list[tuple[float, str]] = []
    for step, checkpoint in checkpoints(run_path):
        if step is not None and step < onset_step:
            by_step.append((step, checkpoint.path))
        elif step is None and onset_time is not None:
            with suppress(OSError):
                changed_at = checkpoint.stat().st_mtime
                if changed_at < onset_time:
                    by_time.append((changed_at, checkpoint.path))
    candidates = by_step or by_time
    return max(candidates)[1] if candidates else ""


def checkpoints(run_path: str) -> Iterator[tuple[int | None, os.DirEntry[str]]]:
    """Yield what looks like a checkpoint of the run at this path, with the step in its name or None."""
    run = Path(run_path)
    folder = run.parent if is_file(run) else run
    for checkpoint in _checkpoint_entries(folder):
        steps = [match["step"] or match["steps"] for match in _CHECKPOINT_STEP.finditer(checkpoint.name)]
        yield int(steps[-1]) if steps else None, checkpoint


def _checkpoint_entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what looks like a checkpoint in the folders where those of the run may lie."""
    bases = [folder]
    if folder.parent.name in _LOG_FOLDERS:
        bases.append(folder.parent.parent)
    for base in bases:
        for checkpoint_folder in (base, *(base / name for name in _CHECKPOINT_FOLDERS)):
            with suppress(OSError), os.scandir(checkpoint_folder) as entries:
                yield from filter(_is_checkpoint, islice(entries, _MAX_NAMES_LISTED))


def _is_checkpoint(entry: os.DirEntry[str]) -> bool:
    if entry.name.lower().endswith(_FILE_ENDINGS):
        return True
    with suppress(OSError):
        return _STEP_FOLDER.fullmatch(entry.name) is not None and entry.is_dir()
    return False
