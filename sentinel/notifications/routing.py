"""The last stage of the pipeline decides which sink is notified of which change, and why the others are not.

It is pure: `watch` sends the result, and `replay` reports what would have been sent.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.common.text import duration_text
from sentinel.detectors.api import Severity
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.incidents.incident import Change, Event, Incident, State, began_first
from sentinel.incidents.inhibition import OF_THE_RUN
from sentinel.incidents.related import cause_text, consequence_texts
from sentinel.notifications.decide import (
    NO_TROUBLE,
    PAGES,
    Decision,
    Reason,
    Sent,
    SinkPolicy,
    TroubleSent,
    decide,
)
from sentinel.notifications.silences import Silence
from sentinel.series.excerpt import Excerpt
from sentinel.sources.identity import RunIdentity

SentBefore = MutableMapping[tuple[str, str], dict[Event, Sent]]
"""What was sent, by incident id and sink name."""

_MAX_EXCERPTS = 4  # in one notification
_MAX_OUTAGE_END_SECONDS = 600.0  # within which logs that fell silent together go on one after the other
_PLOTTED_EVENTS = frozenset({Event.FIRING, Event.ESCALATED})


class SinkDecision(msgspec.Struct, frozen=True):
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
        """Whether it reports a problem that is more than information, and new to the sink."""
        return self.decision.reason in PAGES and self.incident.severity > Severity.INFO


class RunChanges(msgspec.Struct, frozen=True):
    """What sinks may be notified of about one run.

    ``run`` is the run as notifications name it, and ``still_open`` are all its open incidents after the
    changes. With ``reminders``, a reminder may be due of those that did not change. ``may_return`` are
    incidents that are over, although the last notification said that they keep coming back. ``excerpts``
    gives what a plot of an incident shows.
    """

    run: RunIdentity
    changes: Sequence[Change]
    still_open: Sequence[Incident] = ()
    reminders: bool = True
    may_return: Sequence[Incident] = ()
    excerpts: Callable[[Incident], Sequence[Excerpt]] = lambda _: ()


class RoutingContext(msgspec.Struct, frozen=True):
    """The sinks and what they were sent before.

    ``sent`` is what each sink was sent; `route_changes` updates it. ``known`` are the incidents of all runs,
    because one training may have several logs.
    """

    policies: Sequence[SinkPolicy]
    silences: Sequence[Silence]
    sent: SentBefore
    known_incidents: KnownIncidents


def route_changes(news: RunChanges, context: RoutingContext, now: float) -> list[SinkDecision]:
    """Decide for each change and each sink, with a named reason, and remember in ``context`` what is sent.

    Incidents without a change get a decision only if a reminder is due. The worst incident comes first; the
    changes of one incident keep their order.
    """
    routing = _Routing(news, context, now)
    decisions = []
    for change in _worst_first([*news.changes, *_possible_reminders(news)]):
        for policy in context.policies:
            for decision in routing.decide(change, policy):
                _remember(decision, context.sent, now)
                decisions.append(decision)
    return decisions


def _possible_reminders(news: RunChanges) -> list[Change]:
    """Return a REPEAT change for each incident of which a sink may be reminded, or may be sent its end."""
    if not news.reminders:
        return []
    changed = {change.incident.id for change in news.changes}
    remindable = [incident for incident in news.still_open if not incident.no_reminder]
    return [
        Change(Event.REPEAT, incident)
        for incident in (*remindable, *news.may_return)
        if incident.id not in changed
    ]


def _worst_first(changes: Sequence[Change]) -> list[Change]:
    worst: dict[str, int] = {}
    for change in changes:
        worst[change.incident.id] = max(change.incident.severity, worst.get(change.incident.id, 0))
    return sorted(changes, key=lambda change: -worst[change.incident.id])


def _remember(decision: SinkDecision, sent: SentBefore, now: float) -> None:
    """Add what a decision sends to what was sent, and remove what it withdraws."""
    incident = decision.incident
    sent_to_sink = sent.setdefault((incident.id, decision.sink), {})
    if decision.decision.reason is Reason.WITHDRAWN:
        sent_to_sink.clear()
    elif decision.body is not None:
        event = decision.decision.event
        number = decision.number
        sent_to_sink[event] = Sent(now, incident.severity, incident.findings, number, waiting=True)


class _Routing:
    """Decides about the changes of one run, without changing what was sent."""

    def __init__(self, news: RunChanges, context: RoutingContext, now: float) -> None:
        self._news = news
        self._context = context
        self._now = now
        self._open = {incident.id: incident for incident in news.still_open}
        self._sent_before = {key for key, sent in context.sent.items() if sent}
        changed = {change.incident.id: change.incident for change in news.changes}
        self._incidents = changed | self._open  # a cause may be over by now

    def decide(self, change: Change, policy: SinkPolicy) -> list[SinkDecision]:
        """Return the decisions about a change for one sink: at most a withdrawal and one other."""
        incident = change.incident
        decisions = []
        sent = self._sent(incident.id, policy)
        cause = self._cause(incident, policy)
        if cause and sent and all(last.untried for last in sent.values()):
            withdrawal = Decision(Event.FIRING, Reason.WITHDRAWN)
            decisions.append(SinkDecision(incident, policy.name, withdrawal))
            sent = {}
        if cause is None and incident.state is State.LOST and (sent or change.event is Event.LOST):
            cause = self._incident_of_run(policy)
        decision = decide(
            Change(change.event, incident.replace(inhibited_by=cause)),
            self._news.run,
            policy,
            self._is_silenced(incident),
            sent,
            self._now,
            self._sent_of_same_problem(incident, policy),
            self._sent_of_trouble(incident, policy),
        )
        if decision.reason.sends:
            number = 1 + max((last.number for last in sent.values()), default=0)
            body = _body(decision.event, incident, number, self._news, self._now, plots=policy.plots)
            decisions.append(SinkDecision(incident, policy.name, decision, body, number))
        elif change.event is not Event.REPEAT:  # a reminder that is not due is not worth a record
            decisions.append(SinkDecision(incident, policy.name, decision))
        if decision.reason is Reason.OF_SAME_TROUBLE and incident.state is State.WITHDRAWN:
            decisions += self._of_what_goes_on(incident, policy)
        return decisions

    def _of_what_goes_on(self, withdrawn: Incident, policy: SinkPolicy) -> Iterator[SinkDecision]:
        """Yield that an incident goes on whose trouble a withdrawn one told last."""
        for incident in self._open.values():
            sent = self._sent(incident.id, policy)
            if incident.trouble != withdrawn.trouble or not sent:
                continue
            last = max(sent.values(), key=lambda notification: notification.number)
            cause = self._cause(incident, policy)
            decision = decide(
                Change(Event.REPEAT, incident.replace(inhibited_by=cause)),
                self._news.run,
                policy,
                self._is_silenced(incident),
                {**sent, Event.ENDED: replace(last, number=last.number + 1)},
                self._now,
            )
            if decision.reason.sends:
                number = last.number + 1
                body = _body(decision.event, incident, number, self._news, self._now, plots=policy.plots)
                yield SinkDecision(incident, policy.name, decision, body, number)
                return

    def _is_silenced(self, incident: Incident) -> bool:
        return any(silence.matches(self._news.run, incident, self._now) for silence in self._context.silences)

    def _sent(self, incident: str | None, policy: SinkPolicy) -> Mapping[Event, Sent]:
        """Return what a sink was sent of the incident with this id."""
        return self._context.sent.get((incident or "", policy.name), {})

    def _cause(self, incident: Incident, policy: SinkPolicy) -> str | None:
        """Return the id of the incident that explains this one; None if the sink does not ask for it.

        A crash after a metric that the sink was told of before is news of its own.
        """
        cause = self._open.get(incident.id, incident).inhibited_by  # it may have come since the change
        if cause is None or cause not in self._incidents:
            return cause
        if not policy.wants(self._incidents[cause], self._news.run):
            return None
        is_of_metric = self._incidents[cause].stream != OF_THE_RUN
        was_sent = (cause, policy.name) in self._sent_before
        return None if incident.stream == OF_THE_RUN and is_of_metric and was_sent else cause

    def _sent_of_trouble(self, incident: Incident, policy: SinkPolicy) -> TroubleSent:
        """Return what a sink was sent of the same trouble by other open incidents."""
        if policy.by_incident:
            return NO_TROUBLE
        other_incidents = [
            other
            for other in self._open.values()
            if other.id != incident.id
            and any(not last.untried for last in self._sent(other.id, policy).values())
        ]
        explained = [other.severity for other in other_incidents if other.inhibited_by == incident.id]
        return TroubleSent(
            explained=max(explained, default=Severity.CLEAN),
            goes_on=any(other.trouble == incident.trouble for other in other_incidents),
            end_is_sent=any(_tells_end(other, incident) for other in other_incidents),
        )

    def _incident_of_run(self, policy: SinkPolicy) -> str | None:
        """Return the id of an open incident of the whole run, which says that the log is silent, if the sink
        asks for one.
        """
        ids = (
            incident.id
            for incident in self._open.values()
            if incident.stream == OF_THE_RUN and policy.wants(incident, self._news.run)
        )
        return next(ids, None)

    def _sent_of_same_problem(self, incident: Incident, policy: SinkPolicy) -> Iterator[Severity]:
        """Yield the severities already sent to a sink for the same problem: from other processes and tags of
        the run, from other logs of the training, and from logs that fell silent together.
        """
        incidents = self._context.known_incidents
        for other in self._open.values():
            if other.inhibited_by == incident.id and other.detector == incident.detector:
                yield from self._sent_severities(other.id, policy)
        for duplicate in incidents.duplicates_of(incident):
            yield from self._sent_of_duplicate(duplicate, incident, policy)
        for other in incidents.silent_together(incident):
            if self._is_outage_sent(other, policy):
                yield other.severity

    def _sent_of_duplicate(
        self, duplicate: Incident, incident: Incident, policy: SinkPolicy
    ) -> Iterator[Severity]:
        """Yield the severities already sent for an incident of another log, or for the one that explains it
        there: of a crash, the error that the console shows. A better informed log speaks for the training
        before anything was sent.
        """
        yield from self._sent_severities(duplicate.id, policy)
        yield from self._sent_severities(duplicate.inhibited_by, policy)
        is_reported = duplicate.open and duplicate.inhibited_by is None
        is_better = is_reported and self._context.known_incidents.tells_more(duplicate, incident)
        if is_better and policy.wants(duplicate, self._news.run):
            yield duplicate.severity

    def _sent_severities(self, incident: str | None, policy: SinkPolicy) -> Iterator[Severity]:
        for last in self._sent(incident, policy).values():
            yield last.severity

    def _is_outage_sent(self, incident: Incident, policy: SinkPolicy) -> bool:
        """Return whether a sink was sent that a log is silent, and the outage goes on or ended just now, so
        that others may end with it.
        """
        sent = self._sent(incident.id, policy)
        end = sent.get(Event.RESOLVED)
        return bool(sent) and (end is None or 0 <= self._now - end.at < _MAX_OUTAGE_END_SECONDS)


def _tells_end(other: Incident, incident: Incident) -> bool:
    """Return whether the other incident says how the run ended, with this one in it."""
    is_of_run = other.stream == OF_THE_RUN != incident.stream
    return other.id == incident.inhibited_by or (is_of_run and other.inhibited_by == incident.id)


def _body(
    event: Event, incident: Incident, number: int, news: RunChanges, now: float, *, plots: bool
) -> dict[str, Any]:
    key = idempotency_key(news.run, incident, event, number)
    newest = next((other for other in news.still_open if other.id == incident.id), incident)
    incident = incident.now(newest)
    excerpts = news.excerpts(incident)[:_MAX_EXCERPTS] if plots and event in _PLOTTED_EVENTS else ()
    open_incidents = [other for other in news.still_open if other.id != incident.id]
    open_incidents.sort(key=lambda other: -other.severity)
    first = began_first(incident, open_incidents)
    return {
        "key": key,
        "event": event.value,
        "run": msgspec.to_builtins(news.run),
        "incident": msgspec.to_builtins(incident),
        "also_open": [other.latest or other.summary for other in open_incidents],
        "cause": cause_text(incident, open_incidents),
        "consequences": consequence_texts(incident, open_incidents),
        "first_onset": [first.onset_step, first.onset_time],
        "found_at": now if event is Event.FIRING and incident.fired_time is None else None,
        "excerpts": msgspec.to_builtins(excerpts),
    }


def idempotency_key(run: RunIdentity, incident: Incident, event: Event, number: int = 0) -> str:
    """Return a key that is the same whenever the same event of the same incident is derived or sent.

    ``number`` counts the notifications of the incident to a sink; 0 where none is sent. Logs on two machines
    may have the same path.
    """
    key = "\x1f".join((run.host or "", incident.id, event.value, str(incident.findings), str(number)))
    return blake2b(key.encode(), digest_size=16).hexdigest()


def cost(incident: Incident) -> str:
    """Return what the run has spent from the onset to the newest finding: "340 steps, 2 h 5 min"."""
    cost_texts = []
    if incident.last_step is not None and incident.last_step > incident.onset_step:
        cost_texts.append(f"{incident.last_step - incident.onset_step} steps")
    if incident.last_time is not None and incident.onset_time is not None:
        cost_texts.append(duration_text(incident.last_time - incident.onset_time))
    return ", ".join(cost_texts)
