"""Follows the processes that write the logs under watch, and says how they ended as soon as they did."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from detectors.checks import Writer
from sentinel.processes.exits import Exit, Handle, opened
from sentinel.processes.finder import writers
from sentinel.runs.preemption import ENDS_FROM_OUTSIDE
from sentinel.runs.process import described, process_of
from sentinel.runs.settling import settle
from sentinel.sources.base import Ending, Outcome
from sentinel.text import clean_text
from sentinel.watch.watched import Watched

_FIRST_PAUSE_SECONDS = 5.0  # between two searches for the process of a run; twice as long after each ...
_LONGEST_PAUSE_SECONDS = 600.0  # ... up to this
_MOST_HANDLES = 500  # each is an open descriptor


@dataclass
class _Search:
    """When the process of a run is sought again."""

    at: float
    pause: float = _FIRST_PAUSE_SECONDS


class Ends:
    """The processes of the runs of one watcher."""

    def __init__(self) -> None:
        self._handles: dict[str, Handle] = {}  # by run id; runs of one process share it
        self._searches: dict[str, _Search] = {}
        self._gone: dict[str, tuple[int, str]] = {}  # points of a run whose process ended unseen, and words

    def seek(self, runs: Collection[Watched], awake: float) -> None:
        """Find the processes of the runs that have none yet, where it is time to look again.

        What is known of other runs, which are let go of, is forgotten.
        """
        memory: tuple[dict[str, Any], ...] = (self._handles, self._searches, self._gone)
        for id_ in {*chain(*memory)} - {watched.tracker.id for watched in runs}:
            for part in memory:
                part.pop(id_, None)
        due = {path: one for one in runs if (path := self._due(one, awake)) is not None}
        for path, pid in (writers(due) if due else {}).items():
            id_ = due[path].tracker.id
            known = (one for one in self._handles.values() if one.pid == pid and one.exit() is None)
            if (handle := next(known, None) or opened(pid)) is not None:
                self._handles[id_] = handle
                del self._searches[id_]

    def _due(self, watched: Watched, awake: float) -> Path | None:
        """The path of a run whose process is to be sought now; None if it is not."""
        log, id_ = watched.tracker.log, watched.tracker.id
        over = watched.past or log.ending is not None or not watched.looked_at
        if over or id_ in self._handles or len(self._handles) >= _MOST_HANDLES:
            return None
        search = self._searches.setdefault(id_, _Search(awake))
        if awake < search.at or not isinstance(log.run.path, Path):
            return None
        search.at, search.pause = awake + search.pause, min(2 * search.pause, _LONGEST_PAUSE_SECONDS)
        return log.run.path

    def ended(self, runs: Iterable[Watched]) -> list[tuple[Watched, Ending | None]]:
        """The runs whose processes have ended since, and how; None where that is not known."""
        found = []
        for watched in runs if self._handles else ():
            id_ = watched.tracker.id
            handle = self._handles.get(id_)
            if handle is not None and (how := handle.exit()) is not None:
                del self._handles[id_]
                words = f"process {handle.pid} ({clean_text(handle.name, 40)}) {how.words}"
                self._gone[id_] = watched.tracker.log.facts.points, f"{words}, and how is not known"
                found.append((watched, _ending(how, words)))
        return found

    def process(self, watched: Watched) -> Writer:
        """What is known of the process that writes the log of a run."""
        id_, log = watched.tracker.id, watched.tracker.log
        if (handle := self._handles.get(id_)) is not None:
            return described(handle.pid)
        points, words = self._gone.get(id_, (None, ""))
        if points == log.facts.points:
            return Writer(words, lives=False)
        return process_of(log.run.path) if isinstance(log.run.path, Path) else Writer()


def note(watched: Watched, ending: Ending | None) -> None:
    """Note how the process of a run ended; call it when the log was read to its end after that."""
    log = watched.tracker.log
    settle(log, math.inf)
    log.facts.exit = ending
    watched.uncommitted += 1


def _ending(how: Exit, words: str) -> Ending | None:
    if how.signal is not None:
        outside = how.signal in ENDS_FROM_OUTSIDE
        return Ending(Outcome.PREEMPTED if outside else Outcome.CRASHED, words, exited=True)
    if how.status is None:
        return None
    return Ending(Outcome.CRASHED if how.status else Outcome.FINISHED, words, exited=True)
