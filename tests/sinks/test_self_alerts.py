"""What sinks hear of a trouble of the watch itself."""

import pytest

from sentinel.sinks import retry
from sentinel.sinks.base import Permanent, Transient
from sentinel.sinks.self_alerts import SelfAlerts
from tests.manual_clock import ManualClock
from tests.sinks.test_delivery import ScriptedSink

FULL = "sentinel.sqlite: the disk is full; free some space"


class Recording(ScriptedSink):
    """Remembers the events, too."""

    def __init__(self, name, *outcomes):
        super().__init__(name, *outcomes)
        self.heard = []

    def send(self, notification, now):
        self.heard.append((notification.event.value, notification.incident.summary))
        super().send(notification, now)


@pytest.fixture
def announcing():
    started = []

    def start(*sinks):
        started.append(SelfAlerts(sinks, ManualClock(1.7e9)))
        return started[-1].announce

    yield start
    for notices in started:
        notices.stop()


def test_a_trouble_and_its_end_are_told_once(announcing):
    sink = Recording("sink")
    announce = announcing(sink)
    announce(None)
    announce(FULL)
    announce(FULL)
    announce(None)
    announce(None)
    sink.wait_for(2)
    announce("again")
    sink.wait_for(3)
    assert sink.heard == [
        ("firing", f"sentinel reads nothing and judges no run: {FULL}"),
        ("resolved", "sentinel reads and judges again; it has missed nothing"),
        ("firing", "sentinel reads nothing and judges no run: again"),
    ]
    assert len({*sink.keys}) == 3


def test_a_sink_that_did_not_hear_of_the_trouble_does_not_hear_of_its_end(announcing):
    refusing = Recording("refusing", Permanent("404"))
    taking = Recording("taking")
    announce = announcing(refusing, taking)
    announce(FULL)
    announce(None)
    taking.wait_for(2)
    announce(FULL)
    refusing.wait_for(2)
    assert [event for event, _ in refusing.heard] == ["firing", "firing"]


def test_a_sink_that_fails_is_tried_again_with_the_same_key(announcing, monkeypatch):
    monkeypatch.setattr(retry, "MAX_PAUSE_SECONDS", 0.0)
    sink = Recording("sink", Transient("busy"), Transient("busy"))
    announcing(sink)(FULL)
    sink.wait_for(3)
    assert len({*sink.keys}) == 1
