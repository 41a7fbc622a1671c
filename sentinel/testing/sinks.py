"""What every sink keeps to, whoever wrote it, as tests for pytest."""

import logging
import math
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.causes import PossibleCause
from sentinel.incidents.incident import Event, Incident, State
from sentinel.notifications.decide import SinkPolicy
from sentinel.sinks.base import Digest, Notification, Sink, SinkConfig, SinkError
from sentinel.sinks.discovery import sink_types, type_of
from sentinel.sources.identity import RunIdentity

NOW = 1_767_230_000.0
"""The time at which the tests send, in seconds since the epoch."""

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


class SinkConformance:
    """The tests of one type of sink. A subclass names its configuration and says how it can be used."""

    config: ClassVar[type[SinkConfig]]

    secret: ClassVar[str] = ""
    """A text in the tables below that no report, log or error may hold; empty if they hold none."""

    def working(self, scratch: Path) -> Mapping[str, Any]:
        """Return the keys of a table by which messages are delivered. ``scratch`` is an empty directory."""
        raise NotImplementedError

    def failing(self, scratch: Path) -> Mapping[str, Any]:
        """Return the keys of a table by which no message can be delivered."""
        raise NotImplementedError

    # Configuration

    def test_is_found_by_its_type(self) -> None:
        assert sink_types().get(type_of(self.config)) is self.config, "no entry point names it"

    def test_unknown_keys_are_errors(self) -> None:
        with pytest.raises(ValidationError, match="colour"):
            self.config.model_validate({"colour": "red"})

    def test_every_key_has_a_description(self) -> None:
        fields = self.config.model_fields.items()
        assert not [name for name, field in fields if name != "name" and not field.description]

    def test_a_sink_has_the_name_of_its_table_or_of_its_type(self, tmp_path: Path) -> None:
        keys = self.working(tmp_path)
        assert self.config(**keys).open().name == type_of(self.config)
        assert self.config(**keys, name="mine").open().name == "mine"

    def test_the_table_says_what_the_sink_gets(self, tmp_path: Path) -> None:
        keys = self.working(tmp_path)
        kind = type_of(self.config)
        first_look = self.config.model_fields["first_look"].default
        expected = SinkPolicy(
            kind,
            Severity.WARNING,
            include_preview=False,
            first_look=first_look,
            by_incident=self.config.by_incident,
        )
        assert self.config(**keys).policy() == expected
        all_of_it = self.config(**keys, name="all", min_severity="info", include_preview=True)
        wide = replace(expected, name="all", min_severity=Severity.INFO, include_preview=True)
        assert all_of_it.policy() == wide

    # Delivery

    @pytest.mark.parametrize("event", Event)
    def test_every_event_of_any_run_is_delivered(self, tmp_path: Path, event: Event) -> None:
        self._open(self.working(tmp_path)).send(odd(event), NOW)

    def test_a_digest_is_delivered(self, tmp_path: Path) -> None:
        self._open(self.working(tmp_path)).send(digest(30, over=3), NOW)

    def test_what_cannot_be_delivered_says_whether_a_retry_helps(self, tmp_path: Path) -> None:
        with pytest.raises(SinkError):  # Transient or Permanent
            self._open(self.failing(tmp_path)).send(NOTIFICATION, NOW)

    def test_no_secret_is_told(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        if not self.secret:
            pytest.skip("the sink has no secret")
        caplog.set_level(logging.INFO)
        for keys in (self.working(tmp_path), self.failing(tmp_path)):
            config = self.config(**keys)
            sink = config.open()
            texts = [repr(config), str(config), repr(sink), str(sink), all_of(_outcome(sink))]
            assert self.secret not in "\n".join(texts)
        assert self.secret not in caplog.text

    def _open(self, keys: Mapping[str, Any]) -> Sink:
        return self.config(**keys).open()


def about(event: Event) -> Notification:
    """Return the same incident as another event tells of it."""
    state = State.FIRING
    step = None
    if event is Event.RESOLVED:
        state = State.RESOLVED
        step = 440
    elif event in (Event.LOST, Event.ESCALATED):
        state = State(event.value)
    ended = "the run crashed at step 440 (it printed 'Killed')" if event is Event.ENDED else ""
    incident = INCIDENT.replace(state=state, resolved_step=step, ended=ended)
    return replace(NOTIFICATION, event=event, incident=incident)


def odd(event: Event) -> Notification:
    """Return a notification with text and numbers as only a broken log holds them."""
    incident = about(event).incident.replace(
        summary="a\udcff\x00", evidence={"value": math.nan, "most": math.inf}, fired_time=1e300
    )
    return replace(about(event), incident=incident, run=RunIdentity("\udcff", location="\udcff"))


def digest(count: int, over: int = 0) -> Digest:
    """Return a digest of so many incidents, the last ones of which are resolved."""
    ids = [str(number) for number in range(count)]
    firing = [replace(NOTIFICATION, key=f"{n}:firing", incident=INCIDENT.replace(id=n)) for n in ids]
    resolved = [replace(each, event=Event.RESOLVED) for each in firing[count - over :]]
    return Digest("d1gest", [*firing[: count - over], *resolved])


def all_of(error: BaseException | None) -> str:
    """Return all that a log, a report or a traceback with local variables could show of an error."""
    texts = []
    while error is not None:
        trace = traceback.TracebackException.from_exception(error, capture_locals=True)
        texts += [str(error), repr(error), repr(vars(error)), *trace.format()]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


def _outcome(sink: Sink) -> SinkError | None:
    """Return the error of one delivery, None if there is none."""
    try:
        sink.send(NOTIFICATION, NOW)
    except SinkError as error:
        return error
    return None
