"""What lies under some paths: runs, and what can be made of them, without judging any.

So that the answer comes at once, few runs are read whole and of many only the beginnings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detectors.api import Detector
from sentinel.alerts.lifecycle import Book
from sentinel.errors import SentinelError
from sentinel.facts import Facts
from sentinel.frames.naming import Naming
from sentinel.run_state import Standing, silent_seconds, standing
from sentinel.sources.base import Complaint
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.places import Place
from sentinel.tracking import Tracker, Understanding

_MOST_POINTS = 2_000_000  # of all runs, if these are few
_FEW_RUNS = 32
_ENOUGH = 0.75  # of the points asked for, since sources give whole rows; another poll would cost more
_FEWEST_POINTS = 64  # of one of very many; a framework is recognised by fewer


@dataclass(frozen=True)
class ListedRun:
    """A run that was found. Of one that is not ``whole``, points and attempts are at least so many."""

    tracker: Tracker
    understanding: Understanding
    standing: Standing
    whole: bool
    lacking: Mapping[str, Sequence[str]]  # signals, by the detector that cannot judge without them


@dataclass(frozen=True)
class Listing:
    """The runs under some paths, sorted by path, and what could not be read."""

    runs: Sequence[ListedRun]
    complaints: Sequence[Complaint]


def list_runs(
    paths: Sequence[Place], signals: Mapping[str, str], detectors: Sequence[Detector], now: float
) -> Listing:
    """Look at every run under the paths; ``signals`` is what the user's own tags mean.

    Raises SentinelError for a path that does not exist and where there is no run.
    """
    found = discover(paths)
    if found.missing:
        raise SentinelError(f"{found.missing[0]}: no such file or directory")
    if not found.runs and found.complaints:
        raise SentinelError("\n".join(map(str, found.complaints)))
    if not found.runs:
        raise SentinelError(f"{', '.join(map(str, paths))}: no log that sentinel can read")
    count = len(found.runs)  # the more there are, the less time is left beside what each run costs
    limit = max(_FEWEST_POINTS, _MOST_POINTS // max(count, count**2 // _FEW_RUNS))
    naming, complaints = Naming(signals), list(found.complaints)
    base, looks = common_path(paths), []
    for run in found.runs:
        tracker = Tracker(run, run_name(run, base), "", naming, (), Book(run.id, {}))
        looks.append(_Look(tracker, _read(tracker, limit, complaints), tracker.understanding()))
    goes_on_in = _successors(looks)
    return Listing([_listed(look, goes_on_in.get(look.name), detectors, now) for look in looks], complaints)


@dataclass(frozen=True)
class _Look:
    tracker: Tracker
    whole: bool
    understanding: Understanding

    @property
    def name(self) -> str:
        return self.tracker.name


def _read(tracker: Tracker, limit: int, complaints: list[Complaint]) -> bool:
    """Read about ``limit`` points; whether that is all."""
    while True:
        batch = tracker.run.source.poll(tracker.cursor, limit)
        tracker.absorb(batch)
        complaints += [*batch.complaints, *tracker.complaints]
        if not batch.more or tracker.facts.points > _ENOUGH * limit:
            return not batch.more


def _listed(look: _Look, goes_on_in: str | None, detectors: Iterable[Detector], now: float) -> ListedRun:
    tracker, facts = look.tracker, look.tracker.facts
    silent = silent_seconds(tracker.run.path, facts.last_time if look.whole else None, now)
    ending = tracker.ending if look.whole else None
    lacking = {detector.name: look.understanding.missing(detector) for detector in detectors}
    return ListedRun(
        tracker,
        look.understanding,
        standing(ending, silent, facts.lost_after_seconds, goes_on_in),
        look.whole,
        {name: signals for name, signals in lacking.items() if signals},
    )


def _successors(looks: Iterable[_Look]) -> dict[str, str]:
    """Names of runs that were resumed as another run beside them, and that run's name."""
    families: dict[tuple[tuple[str, ...], str, str | None], list[_Look]] = {}
    for look in looks:
        run = look.tracker.run
        families.setdefault((run.path.parts[:-1], run.format, look.understanding.framework), []).append(look)
    found: dict[str, str] = {}
    for family in families.values():
        facts = [look.tracker.facts for look in family]
        begin, end = (np.array([getattr(f, n) or 0 for f in facts]) for n in ("first_step", "last_step"))
        since = np.array([np.nan if f.first_time is None else f.first_time for f in facts])
        for look, mine in zip(family, facts, strict=True):
            if look.whole and mine.last_time is not None:
                later = _goes_on(mine, begin, end) & (since >= mine.last_time)
                if later.any():
                    found[look.name] = family[int(np.argmin(np.where(later, since, np.inf)))].name
    return found


def _goes_on(run: Facts, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the runs with these first and last steps go on at about the step where this one stopped."""
    first, last = run.first_step or 0, run.last_step or 0
    pace = max(1, first)  # from one record to the next: a first record after n steps is one of each n
    return (begin > max(first, 1)) & (begin <= last + pace) & (end > last)
