"""Compares the runs of an archive from what is kept of them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.archives.record import Comparable, PackedCourses
from sentinel.common.errors import SentinelError
from sentinel.comparison.means import Means
from sentinel.replays.judged import JudgedRun

if TYPE_CHECKING:
    from sentinel.archives.index import Contents
    from sentinel.comparison.measures import Comparison


def comparable(run: JudgedRun) -> Comparable | None:
    """Return what `compared` needs of a run; None if it was read without its means."""
    if run.means is None:
        return None
    from sentinel.comparison.measures import COMPARED  # scipy is slow to import

    log = run.run_pipeline.log
    signals = log.understanding().signals
    tags = dict.fromkeys(tag for signal in COMPARED for tag in signals.get(signal, ()))
    settings = {name: setting.value for name, setting in log.metadata.config.items()}
    return Comparable(settings, packed_courses(run.means, tags))


def packed_courses(means: Means, tags: Iterable[str]) -> PackedCourses:
    """Return the courses of some tags, of which the same tag may come twice."""
    courses = {tag: means.course(tag) for tag in tags}
    return {tag: (step.tobytes(), mean.tobytes()) for tag, (step, mean) in courses.items()}


def compared(contents: "Contents") -> "Sequence[Comparison]":
    """Return what `replay --compare` finds in the same runs.

    Raises SentinelError if their courses are not stored.
    """
    from sentinel.comparison.compare import compare
    from sentinel.comparison.measures import ComparedRun

    subjects = []
    for run_number in contents.numbers():
        archived = contents.record(run_number)
        if archived.comparable is None:
            raise SentinelError(
                "the courses of its runs are not kept; `sentinel archive judge --out DIR --compare` does"
            )
        signals = archived.judged.understanding.signals
        courses = StoredCourses(partial(contents.results.courses, contents.row(run_number)))
        subjects.append(ComparedRun(archived.name, archived.comparable.settings, signals, courses))
    return compare(subjects)


class StoredCourses(msgspec.Struct, frozen=True):
    """The courses of a run that is over. ``packed`` gives them, and may read them anew."""

    packed: Callable[[], PackedCourses]

    def course(self, tag: str, width: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # noqa: ARG002
        """Return the course as `Means.course` does, in the stretches in which it was stored."""
        step, mean = self.packed().get(tag, (b"", b""))
        return np.frombuffer(step, np.int64), np.frombuffer(mean, np.float64)

    def width(self, tag: str) -> int:  # noqa: ARG002
        """Return one: only a run that goes on asks for other stretches."""
        return 1
