"""Notifications to send."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.causes import PossibleCause
from sentinel.incidents.incident import Event, Incident, State
from sentinel.notifications.decide import Decision, Reason
from sentinel.notifications.routing import SinkDecision
from sentinel.sinks.base import Digest, Notification
from sentinel.sources.identity import RunIdentity
from sentinel.storage.outbox import Outbox, OutboxEntry
from sentinel.storage.store import Store, Update

INCIDENT = Incident(
    id="00c0ffee00c0ffee",
    run="tensorboard:/runs/grpo-7b",
    stream="events",
    attempt=0,
    detector="kl-blowup",
    severity=Severity.CRITICAL,
    maturity=Maturity.STABLE,
    signal="kl",
    tag="train/kl",
    onset_step=400,
    onset_time=1_767_225_600.0,
    fired_step=412,
    fired_time=1_767_225_720.0,
    summary="KL to the reference is 3.2 nats per token, above 2.0",
    evidence={"value": 3.2, "limit": 2.0, "before": 0.04},
    causes=(PossibleCause("R2", 0.8, "the reward does not rise"), PossibleCause("R1", 0.2, "")),
    last_step=430,
    last_time=1_767_225_900.0,
)

NOTIFICATION = Notification(
    key="00c0ffee00c0ffee:firing:1",
    event=Event.FIRING,
    run=RunIdentity(
        run="grpo-7b",
        path="/runs/grpo-7b",
        framework="trl-grpo",
        location="/runs/grpo-7b",
        host="node-7",
        planned_steps=1000.0,
        world_size=8.0,
    ),
    incident=INCIDENT,
    catalogue=[
        {"id": "R2", "title": "Policy leaves the reference", "fix": "raise `beta`", "check": "sample"},
        {"id": "R1", "title": "Reward hacking", "fix": "stop and read completions", "check": "read"},
    ],
    also_open=["entropy fell to 0.02"],
    link="https://tensorboard.example/#run=grpo-7b",
    checkpoint="/runs/grpo-7b/checkpoint-350",
)


def about(event: Event) -> Notification:
    """The same incident as another event tells of it."""
    state = State.FIRING
    step = None
    if event is Event.RESOLVED:
        state = State.RESOLVED
        step = 440
    elif event in (Event.LOST, Event.ESCALATED):
        state = State(event.value)
    incident = INCIDENT.replace(state=state, resolved_step=step)
    return replace(NOTIFICATION, event=event, incident=incident)


def digest(count: int, over: int = 0) -> Digest:
    """Many incidents, the last ones of which are resolved."""
    ids = [str(number) for number in range(count)]
    firing = [replace(NOTIFICATION, key=f"{n}:firing", incident=INCIDENT.replace(id=n)) for n in ids]
    resolved = [replace(n, event=Event.RESOLVED) for n in firing[count - over :]]
    return Digest("d1gest", [*firing[: count - over], *resolved])


def enqueue(
    store: Store, notification: Notification, sinks: Sequence[str], now: float, *, held: bool = False
) -> None:
    """Put a notification into the outbox, as a poll of its run would."""
    enqueue_all(store, [notification], sinks, now, held=held)


def first_waiting(outbox: Outbox, sink: str) -> OutboxEntry | None:
    """The oldest notification about the worst incident that waits."""
    return next(iter(outbox.worst(sink, 1)), None)


def enqueue_all(
    store: Store,
    notifications: Iterable[Notification],
    sinks: Sequence[str],
    now: float,
    *,
    held: bool = False,
) -> None:
    """Put notifications into the outbox in one transaction."""
    incidents = [
        SinkDecision(
            told.incident,
            sink,
            Decision(told.event, Reason.FIRST_NOTIFICATION),
            msgspec.to_builtins(told),
        )
        for told in notifications
        for sink in sinks
    ]
    store.commit([Update("run", "/runs/run", "jsonl", b"", outcomes=incidents, deferred=held)], now)
