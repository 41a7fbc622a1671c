"""The last stage of the pipeline decides which sink hears of which change, and why the others do not.

It is pure: `watch` sends the result, and `replay` reports what would have been sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    changes: of those that did not change a reminder may be due, if ``reminders`` are wanted.
    """

    run: Mapping[str, Any]
    changes: Sequence[Change]
    still_open: Sequence[Incident] = ()
    reminders: bool = True


@dataclass(frozen=True)
class Audience:
    """The sinks and what they were sent before.

    ``sent`` is what each sink was sent; `tell` updates it. ``known`` are the incidents of all runs, because
    one training may have several logs.
    """

    policies: Sequence[SinkPolicy]
    silences: Sequence[Silence]
    sent: SentBefore
    known: KnownIncidents


def tell(news: News, audience: Audience, now: float) -> list[Outcome]:
    """Decide for each change and each sink, with a named reason, and add the reminders that are due."""
    return outcomes(
        news.run,
        news.changes,
        news.still_open,
        audience.known,
        audience.policies,
        audience.silences,
        audience.sent,
        catalogue.cited,
        now,
        reminders=news.reminders,
    )
