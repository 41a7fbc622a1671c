"""What each log is, as the side of the trainings tells it to the side that judges them."""

import json
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "runs.json"


@dataclass(frozen=True)
class Run:
    """A training with or without a fault; ``visible`` is the first step whose log shows the fault."""

    path: str
    fault: str
    title: str
    strength: str
    seed: int
    healthy: bool
    catalogue: tuple[str, ...]
    visible: int


def read(logs: Path) -> list[Run]:
    """The runs below a directory, in the order in which they were trained."""
    return [
        Run(**one | {"catalogue": tuple(one["catalogue"])})
        for one in json.loads((logs / MANIFEST).read_text())
    ]
