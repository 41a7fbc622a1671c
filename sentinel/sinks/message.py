"""The text of a notification; each sink only lays it out.

A message is what a person needs at night, in ten lines at most: what, since when and at what cost, the cause
with what to do and how to check it, the checkpoint, and the commands that show more and acknowledge. All text
has passed ``clean_text``. Catalogue text may hold `code` between backticks.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.text import clean_text, duration_text, sentence
from sentinel.detectors.api import Maturity
from sentinel.incidents.causes import share
from sentinel.incidents.incident import Event, Incident, State, lasted_text
from sentinel.incidents.json_body import clock_text
from sentinel.sinks.notification import Digest, Notification

_EVENT_TEXTS = {
    Event.FIRING: "",
    Event.ESCALATED: "Got worse",
    Event.REPEAT: "Still there",
    Event.RESOLVED: "Resolved",
    Event.ENDED: "It ended with this still there",
    Event.REOPENED: "Came back",
    Event.FLAPPING: "Keeps coming back",
    Event.LOST: "The log went silent",
    Event.TEST: "",
}
_MAX_CAUSES = 3  # in a message, where none is likely
_MAX_OTHERS = 2  # open incidents that the end of one names
_ENTRY_FIELDS = "id", "title", "fix", "check"  # of a catalogue entry
_ACTIVE = lazy_pattern(r"@(?=[\w&!])|<(?=[@#!:a])|:(?=//)|\](?=\()")
_NO_SPACE = "\u200b"
MAX_IN_FULL = 10
"""How many messages of a digest are shown in detail."""


class LikelyCause(msgspec.Struct, frozen=True):
    """A catalogue entry that may be behind the incident; likelier ones come first."""

    id: str
    title: str
    fix: str
    check: str
    share: str  # "80%": how likely it is among all; empty if nothing in the run decided on that
    reason: str  # what in the run speaks for it and against it; may be empty
    unmet_needs: str  # what it needs and the run does not show, where the run shows the needs of no cause

    @property
    def name(self) -> str:
        """The title with the id, the share and the unmet needs."""
        name = f"{self.title} ({', '.join(filter(None, (self.id, self.share)))})"
        return f"{name}, which supposes {self.unmet_needs}" if self.unmet_needs else name


class MessageLine(NamedTuple):
    """A line of a message. ``label`` may be empty. Text of ours may hold `code` between backticks."""

    label: str
    text: str
    ours: bool = False


class Message(msgspec.Struct, frozen=True):
    """The parts of a notification in reading order. Empty parts are not shown."""

    headline: str  # what is wrong, as a sentence
    title: str  # "critical kl-blowup"
    run: str
    lines: Sequence[MessageLine]  # below the headline, but for the link and the commands
    facts: Sequence[tuple[str, str]]  # labels and values: where, when, for how long, at what cost
    causes: Sequence[LikelyCause]  # likeliest first
    link: str
    commands: Sequence[MessageLine]  # that show more and acknowledge


def message(notification: Notification) -> Message:
    """Return the words of a notification. A resolved incident shows no causes and asks for nothing."""
    incident = notification.incident
    run = notification.run
    over = notification.event in (Event.RESOLVED, Event.TEST)
    preview = " (preview)" if incident.maturity is Maturity.PREVIEW else ""
    title = clean_text(f"{incident.severity.name.lower()} {incident.detector}{preview}", 100)
    name = clean_text(run.label.beside(run.run or incident.run))
    host = clean_text(run.host or "")
    facts = [(label, text) for label, value in _facts(notification) if (text := clean_text(value, 500))]
    causes = [] if over else _causes(notification)
    about = f"{incident.id}{notification.options}"
    lines = [
        MessageLine("", f"{title} in {name}" + (f" on {host}" if host else "")),
        *_since(notification),
        *_related(notification),
        *_still_open(notification),
        *(_advice(causes) if causes or over else _first_step(incident)),
        *(MessageLine(label.capitalize(), value) for label, value in facts if label == "checkpoint"),
    ]
    lines = [line for line in lines if line.text]
    return Message(
        headline=_headline(notification),
        title=title,
        run=name,
        lines=lines,
        facts=facts,
        causes=causes,
        link=notification.link,
        commands=[]
        if over
        else [
            MessageLine("More", f"sentinel show {about}"),
            MessageLine("Acknowledge", f"sentinel ack {about}"),
        ],
    )


class Summary(msgspec.Struct, frozen=True):
    """The parts of a digest in reading order."""

    title: str
    counts: Sequence[str]  # "12 critical", "3 resolved": the worst first
    detectors: Sequence[tuple[str, int]]  # of those that are not resolved, the most frequent first
    messages: Sequence[Message]  # the worst first


def summary(digest: Digest) -> Summary:
    """Return the words of a digest."""
    notifications = digest.notifications
    over = [notification for notification in notifications if notification.event is Event.RESOLVED]
    unresolved = [notification for notification in notifications if notification.event is not Event.RESOLVED]
    severities = Counter(notification.incident.severity for notification in unresolved)
    counts = [f"{severities[severity]} {severity.label}" for severity in sorted(severities, reverse=True)]
    return Summary(
        title=f"{len(notifications)} incidents, in one message because {digest.why}",
        counts=[*counts, *([f"{len(over)} resolved"] if over else [])],
        detectors=Counter(
            clean_text(notification.incident.detector, 100) for notification in unresolved
        ).most_common(),
        messages=[message(notification) for notification in notifications],
    )


def text(notification: Notification | Digest) -> str:
    """Return the whole notification or digest as lines of plain text, for mails and other text channels."""
    return "\n".join([subject_line(notification), body(notification)])


def subject_line(notification: Notification | Digest) -> str:
    """Return the first line of the text."""
    if isinstance(notification, Digest):
        return _digest_subject(summary(notification))
    return message(notification).headline


def body(notification: Notification | Digest) -> str:
    """Return the text without its first line, for channels that show a subject."""
    if isinstance(notification, Digest):
        return "\n".join(_digest_lines(summary(notification)))
    return "\n".join(_message_lines(message(notification)))


def inert(words: str) -> str:
    """Return text in which a service finds nobody to call and no address to link to.

    What comes from a run may hold `@everyone` or an address. An invisible space takes it apart.
    """
    return _ACTIVE.sub(rf"\g<0>{_NO_SPACE}", words)


def subject(notification: Notification | Digest) -> str:
    """Return one line that says what a notification or a digest is about."""
    if isinstance(notification, Digest):
        return _digest_subject(summary(notification))
    content = message(notification)
    return f"{content.run}: {content.headline}"


def _message_lines(content: Message) -> Iterator[str]:
    for line in (*content.lines, MessageLine("", content.link), *content.commands):
        if line.text:
            yield f"{line.label}: {line.text}" if line.label else line.text


def _digest_subject(content: Summary) -> str:
    return f"{content.title}: {', '.join(content.counts)}"


def _digest_lines(content: Summary) -> Iterator[str]:
    for message in content.messages[:MAX_IN_FULL]:
        yield ""
        yield f"{message.title} in {message.run}: {message.headline}"
        yield from (f"  Do: {line.text}" for line in message.lines if line.label == "Do")
    if len(content.messages) > MAX_IN_FULL:
        yield ""
        yield f"All by detector: {', '.join(f'{name} {count}' for name, count in content.detectors)}"


def _headline(notification: Notification) -> str:
    incident = notification.incident
    news = _EVENT_TEXTS[notification.event]
    headline = incident.headline or sentence(incident.detector)
    if notification.event is Event.RESOLVED and incident.no_reminder:
        return f"Answered, {incident.ended or 'it goes on'}: {headline}"
    if notification.event is Event.ENDED or (notification.event is Event.FIRING and incident.ended):
        return sentence(f"{incident.ended} with this still there: {headline}")
    if incident.state is State.WITHDRAWN:
        news = "The run goes on after all, so this is over"
    elif notification.event is Event.RESOLVED and _last_step(incident) > incident.onset_step:
        news = f"{news} after {lasted(incident)}"
    return f"{news}: {headline}" if news else headline


def _facts(notification: Notification) -> Iterator[tuple[str, str]]:
    incident = notification.incident
    run = notification.run
    yield "run", run.label.beside(run.run or incident.run)
    yield "framework", run.framework or ""
    yield "logged as", incident.tag if incident.signal else ""
    yield "host", run.host or ""
    yield "path", run.where
    if notification.event is Event.TEST:
        return
    clock = clock_text(incident.fired_time)
    planned = run.planned_steps
    step_text = f"step {incident.fired_step:,}"
    if planned and planned >= incident.fired_step:
        step_text = f"{step_text} of {planned:,.0f}"
    yield "found", f"{clock}, {step_text}" if clock else step_text
    if incident.open:
        lasts = _last_step(incident) > incident.onset_step
        yield "since", f"step {incident.onset_step:,}" + (f", for {lasted(incident)}" if lasts else "")
    yield "cost", gpu_hours(incident, run.world_size)
    yield "checkpoint", notification.checkpoint


def _still_open(notification: Notification) -> Iterator[MessageLine]:
    """Yield what else is open in the run, where an incident is over: it may have taken its place."""
    if notification.event is Event.RESOLVED:
        for other in notification.also_open[:_MAX_OTHERS]:
            yield MessageLine("Still open", clean_text(sentence(other), 300))


def _seconds_since_onset(incident: Incident) -> float | None:
    """Return seconds from the onset to the newest finding; None where the log has no times."""
    if incident.onset_time is None or incident.last_time is None:
        return None
    return max(incident.last_time - incident.onset_time, 0.0)


def lasted(incident: Incident) -> str:
    """Return the time from the onset to the newest finding, in words."""
    return lasted_text(_last_step(incident) - incident.onset_step, _seconds_since_onset(incident))


def _last_step(incident: Incident) -> int:
    return incident.fired_step if incident.last_step is None else incident.last_step


def gpu_hours(incident: Incident, world_size: float | None) -> str:
    """Return what was spent since the onset, where the run's settings say on how many devices."""
    seconds = _seconds_since_onset(incident)
    if not seconds or not world_size:
        return ""
    return (
        f"{world_size * seconds / 3600:.3g} GPU-hours ({world_size:.0f} processes, {duration_text(seconds)})"
    )


def _since(notification: Notification) -> Iterator[MessageLine]:
    """Yield since when an open incident lasts and what it has cost."""
    incident = notification.incident
    run = notification.run
    if not incident.open or notification.event is Event.TEST:
        return
    planned = run.planned_steps
    received = clock_text(notification.found_at)
    clock = clock_text(incident.onset_time) or (f"heard {received}" if received else "")
    of_plan = f" of {planned:,.0f}" if planned and planned >= incident.onset_step else ""
    lasts = f"for {lasted(incident)}" if _last_step(incident) > incident.onset_step else ""
    parts = (f"step {incident.onset_step:,}{of_plan}", clock, lasts, gpu_hours(incident, run.world_size))
    yield MessageLine("Since", ", ".join(filter(None, parts)))


def _related(notification: Notification) -> Iterator[MessageLine]:
    """Yield what explains an open incident, and what it brought about."""
    if notification.incident.open:
        yield MessageLine("After", clean_text(notification.cause, 400))
        yield MessageLine("Also", clean_text("; ".join(notification.consequences), 800))


def _advice(causes: Sequence[LikelyCause]) -> Iterator[MessageLine]:
    """Yield the cause that the run speaks for, else the likeliest ones, and what to do about the first."""
    if not causes:
        return
    likeliest = causes[0]
    if likeliest.reason or len(causes) == 1:
        yield MessageLine(
            "Likely",
            f"{likeliest.name}: {likeliest.reason}" if likeliest.reason else likeliest.name,
            ours=True,
        )
    else:
        yield MessageLine("One of", "; ".join(cause.name for cause in causes[:_MAX_CAUSES]), ours=True)
    yield MessageLine("Do", likeliest.fix, ours=True)
    if likeliest.check:
        yield MessageLine("Check", likeliest.check, ours=True)


def _first_step(incident: Incident) -> Iterator[MessageLine]:
    yield MessageLine("Do", incident.first_step, ours=True)


def _causes(notification: Notification) -> list[LikelyCause]:
    entries = {entry["id"]: entry for entry in notification.catalogue}
    return [
        LikelyCause(
            **{field: clean_text(entries[cause.id].get(field, ""), 400) for field in _ENTRY_FIELDS},
            share=share(cause, notification.incident.causes),
            reason=clean_text(cause.reason, 400),
            unmet_needs=" and ".join(cause.unmet_needs),
        )
        for cause in notification.incident.causes
        if cause.id in entries
    ]
