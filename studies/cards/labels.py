"""What people said of logs: the `label.json` of each directory below some folders."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDS = 5

WEIGHTS = {"programs": 0.3, "faults": 0.1}
"""What a repository of a folder of this name weighs; 1 elsewhere. Made logs are many and much alike."""


@dataclass(frozen=True)
class Label:
    """One directory of logs. ``healthy`` is None where the label only says that it can be read."""

    home: str
    folder: str
    repository: str
    fold: int
    healthy: bool | None
    expect: tuple[frozenset[str], ...]
    also_ok: frozenset[str]
    family: str

    @property
    def weight(self) -> float:
        """What its repository weighs in a fit."""
        return WEIGHTS.get(self.folder, 1.0)

    def truth(self, detectors: frozenset[str]) -> bool | None:
        """Return whether a claim that stands for these detectors is true; None if the label does not say."""
        if self.healthy is False:
            return True if any(detectors & group for group in self.expect) else None
        if self.healthy is True:
            return None if detectors <= self.also_ok else False
        return None


def labels_below(folders: Sequence[Path]) -> dict[str, Label]:
    """Return the labels by their directories, of all folders."""
    return {
        str(file.parent): _label(folder, file)
        for folder in folders
        for file in sorted(folder.rglob("label.json"))
    }


def _label(folder: Path, file: Path) -> Label:
    content = json.loads(file.read_text("utf-8"))
    parts = file.parent.relative_to(folder).parts or (".",)
    own = parts[1] if folder.name == "programs" and len(parts) > 1 else parts[0]
    return Label(
        home=str(file.parent),
        folder=folder.name,
        repository=f"{folder.name}/{own}",
        fold=content.get("fold", zlib.crc32(own.encode()) % FOLDS),
        healthy=content["healthy"],
        expect=tuple(frozenset(group) for group in content.get("expect", ())),
        also_ok=frozenset(content.get("also_ok", ())),
        family=content.get("family", "-"),
    )
