"""Decides who hears of changes, and records them together with the state of the runs."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sentinel.alerts.decision import SinkPolicy
from sentinel.alerts.duplicates import KnownIncidents
from sentinel.alerts.incident import Change
from sentinel.alerts.outcomes import Audience, tell
from sentinel.alerts.store import Store, Update
from sentinel.guard import Guard
from sentinel.serve.counters import count_incidents
from sentinel.tracking import Tracker

_DECIDING = threading.Lock()  # so that two watches that follow logs of one training send its incident once

AllNews = Mapping[str, Sequence[Change]]
"""Changes by run id."""


@dataclass(frozen=True)
class Recorded:
    """Ids of the runs that were recorded, and by run id what failed instead."""

    runs: Collection[str]
    failures: Mapping[str, str]


class Recorder:
    """Records in one store. The store belongs to the thread that calls `record`."""

    def __init__(self, store: Store, policies: Sequence[SinkPolicy]) -> None:
        self._store = store
        self._policies = policies

    def record(
        self,
        trackers: Sequence[Tracker],
        news: AllNews,
        now: float,
        *,
        held: Collection[str] = (),
        only_news: bool = False,
    ) -> Recorded:
        """Commit the state of some runs, their incidents and the notifications in one transaction.

        Notifications of the runs ``held``, given by their ids, do not leave before `Outbox.release`. With
        ``only_news``, runs without news are left out. An error of one run does not stop the others.
        Raises StateError if nothing was recorded; the same may then be recorded later.
        """
        guard, left = Guard(), list(trackers)
        with _DECIDING:
            updates = self._updates(left, news, now, only_news, guard)
            while any(tracker.id in guard.failures for tracker in left):
                # An incident of a failed run may have kept the others from being sent.
                left = [tracker for tracker in left if tracker.id not in guard.failures]
                updates = self._updates(left, news, now, only_news, guard)
            runs = {tracker.id: tracker.log.run for tracker in left}
            updates = [replace(update, held=update.run in held) for update in updates]
            of = [runs[update.run] for update in updates]
            done = guard.at_once(of, "recording", partial(self._commit, now), updates)
        for update in done:
            count_incidents(news.get(update.run, ()))
        return Recorded({update.run for update in done}, guard.failures)

    def _commit(self, now: float, updates: Sequence[Update]) -> list[Update]:
        if updates:
            self._store.commit(updates, now)
        return [*updates]

    def _updates(
        self, trackers: Sequence[Tracker], news: AllNews, now: float, only_news: bool, guard: Guard
    ) -> list[Update]:
        here = [change.incident for changes in news.values() for change in changes]
        here += [incident for tracker in trackers for incident in tracker.book.open()]
        known = {incident.id: incident for incident in [*self._store.incidents(), *here]} if here else {}
        sent = self._store.sent_before(known)
        audience = Audience(self._policies, self._store.silences(now), sent, KnownIncidents(known.values()))
        updates = (
            guard(t.log.run, "telling", partial(_update, t, news.get(t.id, ()), audience, now, only_news))
            for t in trackers
        )
        return [update for update in updates if update is not None]


def _update(
    tracker: Tracker, changes: Sequence[Change], audience: Audience, now: float, only_news: bool
) -> Update | None:
    """The update of one run; with ``only_news``, None if there is no news."""
    news, run = tracker.news(changes), tracker.log.run
    told = tell(news, audience, now)
    if only_news and not changes and not told:
        return None
    incidents = {i.id: i for i in [*(change.incident for change in changes), *news.still_open]}
    return Update(run.id, str(run.path), run.format, tracker.dump(), [*incidents.values()], told)
