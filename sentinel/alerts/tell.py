"""The last stage of the pipeline: who hears of what, and why not.

It is pure, so `watch` sends what comes out and `replay` reports what would have been sent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentinel import catalogue
from sentinel.alerts.decision import SinkPolicy
from sentinel.alerts.duplicates import KnownIncidents
from sentinel.alerts.grouping import Outcome, SentBefore, outcomes
from sentinel.alerts.incident import Change, Incident
from sentinel.alerts.silences import Silence


@dataclass(frozen=True)
class News:
    """What there is to tell of one run.

    ``run`` is the run as notifications name it, and ``still_open`` are all its open incidents after the
    changes: of those that did not change a reminder may be due, if ``reminders`` are wanted. A ``live`` run
    grew before our eyes, so whatever its clock says, it is none of long ago.
    """

    run: Mapping[str, Any]
    changes: Sequence[Change]
    still_open: Sequence[Incident] = ()
    live: bool = False
    reminders: bool = True


@dataclass(frozen=True)
class Audience:
    """Those who may be told, and what they know.

    ``sent`` is what each of them was told before; telling brings it up to date. ``known`` are the incidents
    of all runs, among which one training may have several logs.
    """

    policies: Sequence[SinkPolicy]
    silences: Sequence[Silence]
    sent: SentBefore
    known: KnownIncidents


def tell(news: News, audience: Audience, now: float) -> list[Outcome]:
    """A decision with a named reason for each change and each sink, and the reminders that are due."""
    policies = [replace(p, stale_seconds=math.inf) if news.live else p for p in audience.policies]
    return outcomes(
        news.run,
        news.changes,
        news.still_open,
        audience.known,
        policies,
        audience.silences,
        audience.sent,
        catalogue.cited,
        now,
        reminders=news.reminders,
    )
