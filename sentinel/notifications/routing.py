"""The last stage of the pipeline decides which sink hears of which change, and why the others do not.

It is pure: `watch` sends the result, and `replay` reports what would have been sent.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from sentinel import catalogue
from sentinel.common.text import duration_text
from sentinel.detectors.api import Severity
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.incidents.incident import Change, Event, Incident, State, began_first
from sentinel.incidents.inhibition import OF_THE_RUN
from sentinel.notifications.decide import PAGES, Decision, Reason, Sent, SinkPolicy, decide
from sentinel.notifications.silences import Silence
from sentinel.series.excerpt import Excerpt
from sentinel.sources.identity import RunIdentity

SentBefore = MutableMapping[tuple[str, str], dict[Event, Sent]]
"""What was sent, by incident id and sink name."""

_MAX_EXCERPTS = 4
_ENDS_TOGETHER_SECONDS = 600.0  # logs that fell silent together go on one after the other
_PLOTTED = frozenset({Event.FIRING, Event.ESCALATED})


@dataclass(frozen=True)
class SinkDecision:
    """The decision about one change for one sink.

    If it is to be sent, ``body`` holds the fields of a Notification in built-in types, and ``number`` counts
    the notifications of the incident to the sink.
    """

    incident: Incident
    sink: str
    decision: Decision
    body: Mapping[str, Any] | None = None
    number: int = 0

    @property
    def is_page(self) -> bool:
        """Whether it tells of trouble that is more than information, and new to the sink."""
        return self.decision.reason in PAGES and self.incident.severity > Severity.INFO


@dataclass(frozen=True)
class RunChanges:
    """What there is to tell of one run.

    ``run`` is the run as notifications name it, and ``still_open`` are all its open incidents after the
    changes: of those that did not change a reminder may be due, if ``reminders`` are wanted. ``may_return``
    are incidents that are over, although a sink was told last that they keep coming back. ``excerpts`` gives
    what a plot of an incident shows.
    """

    run: RunIdentity
    changes: Sequence[Change]
    still_open: Sequence[Incident] = ()
    reminders: bool = True
    may_return: Sequence[Incident] = ()
    excerpts: Callable[[Incident], Sequence[Excerpt]] = lambda _: ()


@dataclass(frozen=True)
class RoutingContext:
    """The sinks and what they were sent before.

    ``sent`` is what each sink was sent; `tell` updates it. ``known`` are the incidents of all runs, because
    one training may have several logs.
    """

    policies: Sequence[SinkPolicy]
    silences: Sequence[Silence]
    sent: SentBefore
    known: KnownIncidents


def route_changes(news: RunChanges, audience: RoutingContext, now: float) -> list[SinkDecision]:
    """Decide for each change and each sink, with a named reason, and add what a sink is to hear without one.

    The worst incident comes first; the changes of one incident keep their order.
    """
    run = news.run
    sent = audience.sent
    standing = {incident.id: incident for incident in news.still_open}
    changed = {change.incident.id: change.incident for change in news.changes}
    known = changed | standing  # a cause may be over by now
    to_recall = [incident for incident in news.still_open if not incident.no_reminder]
    standing_since = [*to_recall, *news.may_return] if news.reminders else []
    unchanged = [incident for incident in standing_since if incident.id not in changed]
    outcomes = []
    for change in _worst_first([*news.changes, *(Change(Event.REPEAT, incident) for incident in unchanged)]):
        incident = change.incident
        explained_by = standing.get(incident.id, incident).inhibited_by  # a cause may have come since
        silenced = any(s.matches(run, incident, now) for s in audience.silences)
        for policy in audience.policies:
            before = sent.setdefault((incident.id, policy.name), {})
            hears_cause = explained_by not in known or policy.wants(known[explained_by], run)
            if hears_cause and explained_by and before and all(last.untried for last in before.values()):
                before.clear()
                withdrawn = Decision(Event.FIRING, Reason.WITHDRAWN)
                outcomes.append(SinkDecision(incident, policy.name, withdrawn))
            cause = explained_by if hears_cause else None
            if incident.state is State.LOST and (before or change.event is Event.LOST):
                cause = cause or _tells_of_silence(standing, policy, run)
            asked = Change(change.event, incident.replace(inhibited_by=cause))
            told = _told_of_others(incident, run, policy, audience, now)
            decision = decide(asked, run, policy, silenced, before, now, told)
            if decision.reason.sends:
                number = 1 + max((last.number for last in before.values()), default=0)
                before[decision.event] = Sent(now, incident.severity, incident.findings, number, waiting=True)
                body = _body(decision.event, _as_it_is(incident, decision.event), number, news, policy.plots)
                outcomes.append(SinkDecision(incident, policy.name, decision, body, number))
            elif change.event is not Event.REPEAT:  # a reminder that is not due is not worth a record
                outcomes.append(SinkDecision(incident, policy.name, decision))
    return outcomes


def _told_of_others(
    incident: Incident, run: RunIdentity, policy: SinkPolicy, audience: RoutingContext, now: float
) -> Iterator[Severity]:
    """Yield how bad the sink was told that the same trouble is, of other logs of the training or of logs that
    fell silent together; a better informed log speaks for the training even before. What another incident
    explains in its own log was told through that one: of a crash, the error that the console shows.
    """
    sent = audience.sent
    known = audience.known
    for other in known.duplicates_of(incident):
        for told in (other.id, other.inhibited_by):
            yield from (earlier.severity for earlier in _heard(told, policy, sent).values())
        speaks = other.open and other.inhibited_by is None and known.tells_more(other, incident)
        if speaks and policy.wants(other, run):
            yield other.severity
    for other in known.crashes_that_say(incident):
        yield from (earlier.severity for earlier in _heard(other.id, policy, sent).values())
    for other in known.silent_together(incident):
        if _lasts(_heard(other.id, policy, sent), now):
            yield other.severity


def _heard(incident: str | None, policy: SinkPolicy, sent: SentBefore) -> Mapping[Event, Sent]:
    """Return what a sink was sent of the incident with this id."""
    return sent.get((incident or "", policy.name), {})


def _lasts(heard: Mapping[Event, Sent], now: float) -> bool:
    """Return whether a silence that a sink heard of goes on, or ended just now, so that others may end with
    it.
    """
    over = heard.get(Event.RESOLVED)
    return bool(heard) and (over is None or 0 <= now - over.at < _ENDS_TOGETHER_SECONDS)


def _tells_of_silence(standing: Mapping[str, Incident], policy: SinkPolicy, run: RunIdentity) -> str | None:
    """Return the id of an incident of the whole run that tells the sink of a lost log; None if there is
    none.
    """
    of_the_run = (i for i in standing.values() if i.stream == OF_THE_RUN and policy.wants(i, run))
    return next((i.id for i in of_the_run), None)


def _worst_first(changes: Sequence[Change]) -> list[Change]:
    worst: dict[str, int] = {}
    for change in changes:
        worst[change.incident.id] = max(change.incident.severity, worst.get(change.incident.id, 0))
    return sorted(changes, key=lambda change: -worst[change.incident.id])


def _as_it_is(incident: Incident, event: Event) -> Incident:
    """Return the incident with its newest numbers if the event says that it is still there; else as it is."""
    return (
        incident.replace(summary=incident.latest or incident.summary) if event is Event.REPEAT else incident
    )


def _body(event: Event, incident: Incident, number: int, news: RunChanges, plots: bool) -> dict[str, Any]:
    shows = plots and event in _PLOTTED
    others = sorted((i for i in news.still_open if i.id != incident.id), key=lambda i: -i.severity)
    first = began_first(incident, others)
    return {
        "key": idempotency_key(news.run, incident, event, number),
        "event": event.value,
        "run": msgspec.to_builtins(news.run),
        "incident": msgspec.to_builtins(incident),
        "catalogue": catalogue.cited(incident.catalogue),
        "also_open": [other.summary for other in others],
        "first_onset": [first.onset_step, first.onset_time],
        "excerpts": msgspec.to_builtins(news.excerpts(incident)[:_MAX_EXCERPTS] if shows else ()),
    }


def idempotency_key(run: RunIdentity, incident: Incident, event: Event, number: int = 0) -> str:
    """Return a key that is the same whenever the same event of the same incident is derived or sent.

    ``number`` counts the notifications of the incident to a sink; 0 where none is sent. Logs on two machines
    may have the same path.
    """
    key = "\x1f".join((run.host or "", incident.id, event.value, str(incident.findings), str(number)))
    return blake2b(key.encode(), digest_size=16).hexdigest()


def cost(incident: Incident) -> str:
    """Return what the run has spent from the onset to the newest finding: "340 steps, 2 h 5 min"; may be
    empty.
    """
    parts = []
    if incident.last_step is not None and incident.last_step > incident.onset_step:
        parts.append(f"{incident.last_step - incident.onset_step} steps")
    if incident.last_time is not None and incident.onset_time is not None:
        parts.append(duration_text(incident.last_time - incident.onset_time))
    return ", ".join(parts)
