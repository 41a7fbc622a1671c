"""Mistakes in sinks and paths that check-config names, and what a test alert leaves behind."""

import json

import pytest

from tests.sinks.receiver import Receiver


def check(sentinel, tmp_path, text):
    (tmp_path / "sentinel.toml").write_text(text)
    return sentinel("check-config")


@pytest.mark.parametrize(
    ("address", "instead"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", 'type = "slack"'),
        ("https://discord.com/api/webhooks/1/x", "discord://ID/TOKEN"),
    ],
)
def test_an_address_of_a_service_is_no_webhook(sentinel, tmp_path, monkeypatch, address, instead):
    sink = '[[sinks]]\ntype = "webhook"\n'
    done = check(sentinel, tmp_path, f'{sink}url = "{address}"\n')
    assert done.status == 2
    assert instead in done.err
    assert "x" not in done.err.partition("use ")[0].split()
    monkeypatch.setenv("HOOK", address)
    assert instead in check(sentinel, tmp_path, f'{sink}url_env = "HOOK"\n').out


def test_all_mistakes_of_a_sink_are_named_at_once(sentinel, tmp_path):
    sink = '[[sinks]]\ntype = "webhook"\nmin_severity = "loud"\ncolour = 1\n'
    done = check(sentinel, tmp_path, f'{sink}secret_env = "A"\nsecret_file = "b"\n')
    assert done.status == 2
    for mistake in (
        "sinks[0]: give exactly one of url, url_env and url_file",
        "sinks[0]: give at most one of secret_env and secret_file",
        "sinks[0].min_severity: 'loud' is unknown",
        "sinks[0].colour: unknown key",
    ):
        assert mistake in done.err
    assert len(done.err.splitlines()) == 4


def test_all_that_a_sink_lacks_here_is_named_at_once(sentinel, tmp_path):
    sink = '[[sinks]]\ntype = "webhook"\nurl_env = "NO_ADDRESS"\nsecret_file = "none"\n'
    done = check(sentinel, tmp_path, sink)
    assert "missing here: environment variable NO_ADDRESS is empty or not set (sink webhook)" in done.out
    assert "missing here: none: No such file or directory (sink webhook)" in done.out


def test_a_command_that_is_not_there_is_named(sentinel, tmp_path):
    done = check(sentinel, tmp_path, '[[sinks]]\ntype = "command"\ncommand = ["no-such-program-here", "x"]\n')
    assert "no-such-program-here: no such program on this machine (sink command)" in done.out


@pytest.mark.parametrize("line", ['paths = ["$HOME/runs"]', 'state_dir = "${SCRATCH}/state"'])
def test_a_variable_in_a_path_is_a_mistake(sentinel, tmp_path, line):
    done = check(sentinel, tmp_path, f"{line}\n")
    assert done.status == 2
    assert "a variable is not replaced here; write ~ or the whole path" in done.err


def test_the_clock_of_quiet_hours_is_said(sentinel, tmp_path, monkeypatch):
    sink = '[[sinks]]\ntype = "terminal"\nquiet_hours = "22:00-07:00"\n'
    assert (
        "quiet hours of sink terminal: by the clock of this machine, " in check(sentinel, tmp_path, sink).out
    )


def test_a_test_of_pagerduty_is_resolved(sentinel, tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "0" * 32)
    with Receiver() as receiver:
        sink = f'[[sinks]]\ntype = "pagerduty"\nrouting_key_env = "KEY"\nurl = "{receiver.url}"\n'
        (tmp_path / "sentinel.toml").write_text(sink)
        done = sentinel("test-alert")
    events = [json.loads(request.body) for request in receiver.received]
    assert [event["event_action"] for event in events] == ["trigger", "resolve"]
    assert len({event["dedup_key"] for event in events}) == 1
    assert "pagerduty: resolved" in done.out
