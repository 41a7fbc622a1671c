import io
from dataclasses import replace

import pytest

from sentinel.alerts.incident import Event
from sentinel.sinks.base import Transient
from sentinel.sinks.terminal import TerminalConfig, TerminalSink
from tests.sinks.samples import INCIDENT, NOTIFICATION, about, digest


def printed(notification):
    stream = io.StringIO()
    TerminalSink("terminal", stream).send(notification, 0.0)
    return stream.getvalue()


def test_a_firing_incident_takes_a_few_lines():
    assert printed(NOTIFICATION).splitlines() == [
        "Critical: kl-blowup  grpo-7b  since step 400 to 430, 30 steps or 5 min",
        "  KL to the reference is 3.2 nats per token, above 2.0",
        "  KL 3.2 nats per token, limit 2 nats per token, median before 0.04 nats per token",
        "  R2 80% Policy leaves the reference: raise the KL weight",
        "    the reward does not rise",
        "  R1 20% Reward hacking: stop and read completions",
        "  to tell whether it is R2: sample",
        "  also open: entropy fell to 0.02",
        "  cost so far: 30 steps, 5 min",
    ]


def test_a_resolved_incident_takes_fewer():
    assert printed(replace(about(Event.RESOLVED), also_open=(), cost="")).splitlines() == [
        "Resolved: kl-blowup  grpo-7b  from step 400 to 430, 30 steps or 5 min",
        "  KL to the reference is 3.2 nats per token, above 2.0",
    ]


def test_a_digest_shows_the_worst_in_full_and_of_the_rest_a_line_each():
    lines = printed(digest(14, over=2)).splitlines()
    assert lines[0] == "14 incidents, in one message because they had to wait: 12 critical, 2 resolved"
    assert lines[1:91] == printed(NOTIFICATION).splitlines() * 10
    told = "grpo-7b  KL to the reference is 3.2 nats per token, above 2.0"
    assert lines[91:] == [f"Critical: kl-blowup  {told}"] * 2 + [f"Resolved: kl-blowup  {told}"] * 2


def test_text_from_a_run_controls_nothing():
    hostile = "\x1b[2J\x1b]0;owned\x07[red]x[/red]\r\nResolved: \u202eall"
    notification = replace(
        NOTIFICATION,
        incident=INCIDENT.changed(summary=hostile, evidence={hostile: hostile}),
        run={"run": hostile},
    )
    shown = printed(notification)
    assert len(shown.splitlines()) == 9
    assert not set(shown) & set("\x1b\x07\r\u202e")
    assert "[red]x[/red] Resolved: all" in shown


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
