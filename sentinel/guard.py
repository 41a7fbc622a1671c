"""Keeps what one run holds from stopping the others."""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from sentinel.errors import is_defect
from sentinel.sources.base import Run
from sentinel.text import clean_text

_LONGEST = 300  # characters of an error's own words

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass
class Guard:
    """Does the work of a stage for one run at a time and notes which of them failed.

    ``failures`` says by run id which stage failed first, and how. State that the stage was changing may
    be half changed, so the run has to begin again from what was kept of it.
    """

    failures: dict[str, str] = field(default_factory=dict)

    def __call__(self, run: Run, stage: str, work: Callable[[], _R]) -> _R | None:
        """What the work gives; None where it raises."""
        try:
            return work()
        except BaseException as error:
            if not is_defect(error):
                raise
            self.failures.setdefault(run.id, f"{stage} failed: {reason(run, error)}")
            return None

    def at_once(
        self, runs: Sequence[Run], stage: str, work: Callable[[Sequence[_T]], list[_R]], things: Sequence[_T]
    ) -> list[_R]:
        """What the work gives for the things of all runs, one each; where it raises, for each run alone."""
        try:
            return work(things)
        except BaseException as error:
            if not is_defect(error):
                raise
            alone = [(run, partial(work, [thing])) for run, thing in zip(runs, things, strict=True)]
            return [result for run, one in alone for result in self(run, stage, one) or ()]


def reason(run: Run, error: BaseException) -> str:
    """An error in one line: its kind, its words and where it was raised.

    The words of an error about an address may hold what is secret there, so they are left out.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    words = clean_text(str(error), _LONGEST) if isinstance(run.path, Path) else ""
    return f"{type(error).__name__}{': ' if words else ''}{words}{place}"
