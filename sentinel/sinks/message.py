"""The words of a notification as plain text; each sink only lays them out.

All text has passed ``clean_text``. Catalogue text may hold `code` between backticks.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from detectors.api import Maturity
from sentinel.alerts.evidence import evidence_rows
from sentinel.alerts.incident import Event, Incident, State, lasted_text
from sentinel.alerts.wire import clock_text
from sentinel.sinks.base import Digest, Notification
from sentinel.text import clean_text, duration_text

_NEWS = {
    Event.FIRING: "",
    Event.ESCALATED: "Got worse",
    Event.REPEAT: "Still there",
    Event.RESOLVED: "Resolved",
    Event.REOPENED: "Came back",
    Event.FLAPPING: "Keeps coming back",
    Event.LOST: "The log went silent",
    Event.TEST: "",
}
_MOST_CAUSES = 3
_SHOWN = "id", "title", "fix", "check"  # of a catalogue entry
_MOST_OTHERS = 5
MOST_IN_FULL = 10
"""How many messages of a digest are shown in detail."""


@dataclass(frozen=True)
class Cause:
    """A catalogue entry that may be behind the incident; likelier ones come first."""

    id: str
    title: str
    fix: str
    check: str
    share: str  # "80%": how likely it is among all
    because: str  # what in the run speaks for it and against it; may be empty


@dataclass(frozen=True)
class Message:
    """The parts of a notification in reading order. Empty parts are not shown."""

    headline: str  # what is wrong, as a sentence
    title: str  # "critical kl-blowup"
    run: str
    facts: Sequence[tuple[str, str]]  # labels and values: where, when, for how long, at what cost
    causes: Sequence[Cause]
    evidence: Sequence[tuple[str, str]]  # labels and values
    also_open: Sequence[str]
    link: str
    silence: str  # the command after which only the incident's end is sent


def message(notification: Notification) -> Message:
    """The words of a notification. A resolved incident shows no evidence, causes and commands."""
    incident, run = notification.incident, notification.run
    over = notification.event in (Event.RESOLVED, Event.TEST)
    preview = " (preview)" if incident.maturity is Maturity.PREVIEW else ""
    return Message(
        headline=_headline(notification),
        title=clean_text(f"{incident.severity.name.lower()} {incident.detector}{preview}", 100),
        run=clean_text(str(run.get("run", incident.run))),
        facts=[(label, text) for label, value in _facts(notification) if (text := clean_text(value, 500))],
        causes=[] if over else _causes(notification),
        evidence=[] if over else evidence_rows(incident),
        also_open=[sentence(other) for other in notification.also_open[:_MOST_OTHERS]],
        link=notification.link,
        silence="" if over else f"sentinel ack {incident.id}{notification.options}",
    )


@dataclass(frozen=True)
class Summary:
    """The parts of a digest in reading order."""

    title: str
    counts: Sequence[str]  # "12 critical", "3 resolved": the worst first
    detectors: Sequence[tuple[str, int]]  # of those that are not resolved, the most frequent first
    messages: Sequence[Message]  # the worst first


def summary(digest: Digest) -> Summary:
    """The words of a digest."""
    notifications = digest.notifications
    over = [n for n in notifications if n.event is Event.RESOLVED]
    still = [n for n in notifications if n.event is not Event.RESOLVED]
    severities = Counter(n.incident.severity for n in still)
    counts = [f"{severities[severity]} {severity.label}" for severity in sorted(severities, reverse=True)]
    return Summary(
        title=f"{len(notifications)} incidents, in one message because {digest.why}",
        counts=[*counts, *([f"{len(over)} resolved"] if over else [])],
        detectors=Counter(clean_text(n.incident.detector, 100) for n in still).most_common(),
        messages=[message(n) for n in notifications],
    )


def text(told: Notification | Digest) -> str:
    """The whole notification or digest as lines of plain text, for mails and other text channels."""
    return "\n".join(_digest_lines(summary(told)) if isinstance(told, Digest) else _lines(message(told)))


def subject(told: Notification | Digest) -> str:
    """One line that says what it is about."""
    if isinstance(told, Digest):
        shown = summary(told)
        return f"{shown.title}: {', '.join(shown.counts)}"
    one = message(told)
    return f"{one.run}: {one.headline}"


def sentence(words: str) -> str:
    """The words with a capital letter and a full stop; untrusted, so cleaned.

    The name of a metric, such as `eval/loss` or `kl`, keeps its letters if it comes first.
    """
    line = clean_text(words, 1000)
    ends = not line or line.endswith((".", "!", "?", "…"))
    first = line.split(" ", 1)[0]
    plain = first.replace("-", "").replace("'", "").isalpha()
    return (line[:1].upper() + line[1:] if plain else line) + ("" if ends else ".")


def _lines(shown: Message) -> Iterator[str]:
    yield shown.headline
    yield ""
    width = max(len(label) for label, _ in (("severity", ""), *shown.facts))
    yield from (f"{label:{width}}  {value}" for label, value in (("severity", shown.title), *shown.facts))
    for number, cause in enumerate(shown.causes):
        yield ""
        yield f"{'Or' if number else 'Likely'}: {cause.title} ({cause.id}, {cause.share})"
        if cause.because:
            yield f"  Why: {cause.because}"
        yield f"  Do: {cause.fix}"
        if cause.check:
            yield f"  Check: {cause.check}"
    if shown.evidence:
        yield ""
        widest = max(len(label) for label, _ in shown.evidence)
        yield from (f"{label:{widest}}  {value}" for label, value in shown.evidence)
    if shown.also_open:
        yield ""
        yield from (f"Also open: {other}" for other in shown.also_open)
    if shown.link or shown.silence:
        yield ""
    if shown.link:
        yield shown.link
    if shown.silence:
        yield f"To silence it: {shown.silence}"


def _digest_lines(shown: Summary) -> Iterator[str]:
    yield f"{shown.title}: {', '.join(shown.counts)}"
    for one in shown.messages[:MOST_IN_FULL]:
        yield ""
        yield f"{one.title} in {one.run}: {one.headline}"
        yield from (f"  Do: {cause.fix}" for cause in one.causes[:1])
    if len(shown.messages) > MOST_IN_FULL:
        yield ""
        yield f"All by detector: {', '.join(f'{name} {count}' for name, count in shown.detectors)}"


def _headline(notification: Notification) -> str:
    incident, news = notification.incident, _NEWS[notification.event]
    told = sentence(incident.summary) or sentence(incident.detector)
    if incident.state is State.WITHDRAWN:
        news = "The run goes on after all, so this is over"
    elif notification.event is Event.RESOLVED:
        news = f"{news} after {lasted(incident)}"
    return f"{news}: {told}" if news else told


def _facts(notification: Notification) -> Iterator[tuple[str, str]]:
    incident, run = notification.incident, notification.run
    yield "run", str(run.get("run", incident.run))
    yield "framework", str(run.get("framework") or "")
    yield "logged as", incident.tag if incident.signal else ""
    yield "host", str(run.get("host") or "")
    yield "path", str(run.get("place") or run.get("path") or "")
    if notification.event is Event.TEST:
        return
    clock, planned = clock_text(incident.fired_time), run.get("planned_steps")
    at = f"step {incident.fired_step:,}"
    if planned and planned >= incident.fired_step:
        at = f"{at} of {planned:,.0f}"
    yield "found", f"{clock}, {at}" if clock else at
    if incident.open:
        lasts = _last_step(incident) > incident.onset_step
        yield "since", f"step {incident.onset_step:,}" + (f", for {lasted(incident)}" if lasts else "")
    yield "cost", gpu_hours(incident, run.get("world_size"))
    yield "checkpoint", notification.checkpoint


def _seconds(incident: Incident) -> float | None:
    """Seconds from the onset to the newest finding; None where the log has no times."""
    if incident.onset_time is None or incident.last_time is None:
        return None
    return max(incident.last_time - incident.onset_time, 0.0)


def lasted(incident: Incident) -> str:
    """From the onset to the newest finding, in words."""
    return lasted_text(_last_step(incident) - incident.onset_step, _seconds(incident))


def _last_step(incident: Incident) -> int:
    return incident.fired_step if incident.last_step is None else incident.last_step


def gpu_hours(incident: Incident, world_size: float | None) -> str:
    """What was spent since the onset, where the run's settings say on how many devices."""
    seconds = _seconds(incident)
    if not seconds or not world_size:
        return ""
    return (
        f"{world_size * seconds / 3600:.3g} GPU-hours ({world_size:.0f} processes, {duration_text(seconds)})"
    )


def _causes(notification: Notification) -> list[Cause]:
    entries = {entry["id"]: entry for entry in notification.catalogue}
    return [
        Cause(
            **{field: clean_text(entries[one.id].get(field, ""), 400) for field in _SHOWN},
            share=f"{one.score:.0%}",
            because=clean_text(one.because, 400),
        )
        for one in notification.incident.causes[:_MOST_CAUSES]
        if one.id in entries
    ]
