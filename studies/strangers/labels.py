"""What people who looked at the curves of a log say about it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

FOLDS = 5


@dataclass(frozen=True)
class Label:
    """What is right to say of the logs in one directory.

    ``expect`` holds groups of detectors: of each group, one has to ring. ``accepted`` may ring as well.
    ``catalogue`` holds the entries that describe the trouble, if somebody said which. ``healthy`` is None for
    a log that is only to be read. ``repository`` is where the log is from, or the program that wrote it; all
    logs of a repository are in one ``fold``.
    """

    kind: str  # the folder of labelled logs
    path: str  # below the folder of all logs
    repository: str
    fold: int
    healthy: bool | None
    expect: Sequence[frozenset[str]]
    accepted: frozenset[str]
    catalogue: frozenset[str]
    info_is_enough: bool
    may_be_unread: bool
    notes: str


def read(folder: Path) -> Iterator[Label]:
    """The labels below a folder, sorted by path."""
    for file in sorted(folder.rglob("label.json")):
        yield _label(file.parent.relative_to(folder), json.loads(file.read_text("utf-8")))


def _label(path: Path, said: Mapping[str, Any]) -> Label:
    repository = said.get("source_repo") or path.parent.name
    expect = [frozenset(group) for group in said.get("expect", ())]
    return Label(
        kind=path.parts[0],
        path=str(path),
        repository=repository,
        fold=said.get("fold", crc32(repository.encode()) % FOLDS),
        healthy=said["healthy"],
        expect=expect,
        accepted=frozenset().union(*expect, said.get("also_ok", ())),
        catalogue=frozenset(said.get("catalogue", ())),
        info_is_enough=said.get("info_is_enough", False),
        may_be_unread=said.get("may_be_unread", False),
        notes=said.get("notes", ""),
    )
