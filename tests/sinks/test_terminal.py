import io

import pytest
from msgspec.structs import replace

from sentinel.incidents.incident import Event
from sentinel.sinks.base import Transient
from sentinel.sinks.terminal import TerminalConfig, TerminalSink
from sentinel.sources.identity import RunIdentity
from tests.sinks.samples import INCIDENT, NOTIFICATION, about, digest


def printed(notification):
    stream = io.StringIO()
    TerminalSink("terminal", stream).send(notification, 0.0)
    return stream.getvalue()


def test_a_firing_incident_reads_line_by_line():
    assert printed(NOTIFICATION).splitlines() == [
        "KL to the reference is 3.2 nats per token, above 2.0.",
        "  critical kl-blowup in grpo-7b on node-7",
        "  Since: step 400 of 1,000, 2026-01-01 00:00:00 UTC, for 30 steps (5 min), "
        "0.667 GPU-hours (8 processes, 5 min)",
        "  Likely: Policy leaves the reference (R2, 80%): the reward does not rise",
        "  Do: raise `beta`",
        "  Check: sample",
        "  Checkpoint: /runs/grpo-7b/checkpoint-350",
        "  https://tensorboard.example/#run=grpo-7b",
        "  More: sentinel show 00c0ffee00c0ffee",
        "  Acknowledge: sentinel ack 00c0ffee00c0ffee",
    ]


def test_a_resolved_incident_takes_fewer():
    over = replace(
        about(Event.RESOLVED), run=RunIdentity(run="grpo-7b"), also_open=(), link="", checkpoint=""
    )
    assert printed(over).splitlines() == [
        "Resolved after 30 steps (5 min): KL to the reference is 3.2 nats per token, above 2.0.",
        "  critical kl-blowup in grpo-7b",
    ]


def test_a_digest_shows_the_worst_in_full_and_of_the_rest_a_line_each():
    lines = printed(digest(14, over=2)).splitlines()
    assert lines[0] == "14 incidents, in one message because they had to wait: 12 critical, 2 resolved"
    one = printed(NOTIFICATION).splitlines()
    assert lines[1:-4] == [line.replace(INCIDENT.id, str(number)) for number in range(10) for line in one]
    warning = "critical kl-blowup  grpo-7b"
    summary = "KL to the reference is 3.2 nats per token, above 2.0."
    over = f"Resolved after 30 steps (5 min): {summary}"
    assert lines[-4:] == [f"{warning}  {summary}"] * 2 + [f"{warning}  {over}"] * 2


def test_text_from_a_run_controls_nothing():
    hostile = "\x1b[2J\x1b]0;owned\x07[red]x[/red]\r\nResolved: \u202eall"
    notification = replace(
        NOTIFICATION,
        incident=INCIDENT.replace(summary=hostile, evidence={hostile: hostile}),
        run=RunIdentity(run=hostile),
    )
    text = printed(notification)
    assert not [line for line in text.splitlines() if line.startswith("Resolved")]
    assert not set(text) & set("\x1b\x07\r\u202e")
    assert "[red]x[/red] Resolved: all" in text


def test_it_prints_to_standard_error(capfd):
    TerminalConfig().open().send(NOTIFICATION, 0.0)
    out, err = capfd.readouterr()
    assert out == ""
    assert "kl-blowup" in err


def test_a_stream_that_is_gone_is_transient():
    class Gone(io.StringIO):
        def write(self, _text):
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(Transient, match="Broken pipe"):
        TerminalSink("terminal", Gone()).send(NOTIFICATION, 0.0)
