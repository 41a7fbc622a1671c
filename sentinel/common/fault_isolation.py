"""Keeps an error of one run from stopping the others."""

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from sentinel.common.errors import is_defect
from sentinel.common.processor_budget import Budget, unlimited
from sentinel.common.text import clean_text

_MAX_MESSAGE_CHARACTERS = 300  # of an error's own message

_T = TypeVar("_T")
_R = TypeVar("_R")


class Guarded(Protocol):
    """A run, of which a guard needs to know no more than this."""

    @property
    def id(self) -> str:
        """The name by which it differs from all other runs."""

    @property
    def path(self) -> object:
        """A `Path` if it lies on this machine, else its address."""


class Guard(msgspec.Struct):
    """Does the work of a stage for one run at a time and records which runs failed.

    ``failures`` holds, by run id, the first stage that failed and the reason. The state of a failed run may
    be half changed, so the run must start again from its last commit. ``budget`` does the work of one run,
    and raises an error where that takes too long.
    """

    failures: dict[str, str] = msgspec.field(default_factory=dict)
    budget: Budget = unlimited

    def __call__(self, run: Guarded, stage: str, work: Callable[[], _R]) -> _R | None:
        """Return the result of the work; None if it raises."""
        try:
            return self.budget(work)
        except BaseException as error:
            if not is_defect(error):
                raise
            self.failures.setdefault(run.id, f"{stage} failed: {reason(run, error)}")
            return None

    def batch(
        self,
        runs: Sequence[Guarded],
        stage: str,
        work: Callable[[Sequence[_T]], list[_R]],
        arguments: Sequence[_T],
    ) -> list[_R]:
        """Do the work on one thing of each run: on all things at once, or if that raises, on each alone.

        Return the results.
        """
        try:
            return work(arguments)
        except BaseException as error:
            if not is_defect(error):
                raise
            results: list[_R] = []
            for run, argument in zip(runs, arguments, strict=True):
                results += self(run, stage, partial(work, [argument])) or ()
            return results


def reason(run: Guarded, error: BaseException) -> str:
    """Return an error in one line: its type, its message and where it was raised.

    The message is left out for a run at an address, because it may hold a secret of that address.
    """
    frames = traceback.extract_tb(error.__traceback__)
    location = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    words = clean_text(str(error), _MAX_MESSAGE_CHARACTERS) if isinstance(run.path, Path) else ""
    return f"{type(error).__name__}{': ' if words else ''}{words}{location}"
