"""Which sink hears of which runs, of what, and when."""

import time

import pytest

from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Change, Event, State
from sentinel.notifications.decide import QuietHours, Reason, Route, SinkPolicy, decide
from sentinel.sources.identity import RunIdentity
from tests.notifications.test_decide import INCIDENT, NOW, RUN, heard, reason

DETECTOR = INCIDENT.detector


@pytest.mark.parametrize(
    ("route", "leads"),
    [
        (Route(), True),
        (Route(runs=("team/*",)), True),
        (Route(runs=("/runs/*", "x")), True),
        (Route(runs=("other/*",)), False),
        (Route(frameworks=("trl-*",)), True),
        (Route(frameworks=("sb3",)), False),
        (Route(detectors=("*-*",)), True),
        (Route(runs=("team/*",), detectors=("kl-blowup-*",)), False),
    ],
)
def test_a_sink_hears_of_what_it_asks_for(route, leads):
    assert route.leads(RUN, DETECTOR) is leads
    expected = Reason.FIRST_NOTIFICATION if leads else Reason.NOT_ROUTED
    assert reason(Event.FIRING, policy=SinkPolicy("slack", route=route)) is expected


def test_a_run_of_no_framework_takes_no_route_of_one():
    assert not Route(frameworks=("trl-*",)).leads(RunIdentity(RUN.run, RUN.path), DETECTOR)


def test_a_sink_may_ask_for_the_runs_of_an_owner():
    route = Route(owners=("al*",))
    assert route.leads(RunIdentity("a", owner="alice"), DETECTOR)
    assert not route.leads(RunIdentity("a", owner="bob"), DETECTOR)
    assert not route.leads(RunIdentity("a"), DETECTOR)


def test_a_sink_is_sent_the_events_that_it_asks_for():
    ends = SinkPolicy("slack", events=frozenset({Event.FIRING, Event.RESOLVED}))
    assert reason(Event.FIRING, policy=ends) is Reason.FIRST_NOTIFICATION
    assert reason(Event.LOST, heard(Event.FIRING), policy=ends) is Reason.EVENT_NOT_WANTED
    assert reason(Event.RESOLVED, heard(Event.FIRING), policy=ends) is Reason.RESOLVED


@pytest.fixture
def timezone(monkeypatch):
    def use(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield use
    monkeypatch.undo()
    time.tzset()


MIDNIGHT = 1_767_225_600.0  # UTC, on 2026-01-01


@pytest.mark.parametrize(
    ("hours", "quiet", "loud"),
    [("22:00-07:00", (22, 23.9, 0, 6.9), (7, 12, 21.9)), ("9:30 - 10:00", (9.5, 9.9), (9.4, 10, 0))],
)
def test_quiet_hours_are_those_of_the_machine(timezone, hours, quiet, loud):
    timezone("Asia/Tokyo")
    parsed = QuietHours.parse(hours)
    times = {hour: MIDNIGHT + 3600 * (hour - 9) for hour in (*quiet, *loud)}
    assert [hour for hour, at in times.items() if parsed.cover(at)] == [*quiet]


@pytest.mark.parametrize("text", ["", "22", "22:00", "24:00-07:00", "22:00-7", "22:00-07:60"])
def test_no_hours_of_a_day(text):
    with pytest.raises(ValueError, match="such as 22:00-07:30"):
        QuietHours.parse(text)


def test_in_quiet_hours_only_what_is_critical_is_sent_and_the_rest_afterwards(timezone):
    timezone("UTC")
    night = SinkPolicy("slack", quiet_hours=QuietHours.parse("22:00-07:00"))

    def at(hour, event, severity, sent=()):
        state = State.RESOLVED if event is Event.RESOLVED else State.FIRING
        change = Change(event, INCIDENT.replace(severity=severity, state=state))
        return decide(change, RUN, night, False, dict(sent), MIDNIGHT + 3600 * hour).reason

    assert at(3, Event.FIRING, Severity.WARNING) is Reason.QUIET_HOURS
    assert at(3, Event.FIRING, Severity.CRITICAL) is Reason.FIRST_NOTIFICATION
    assert at(8, Event.REPEAT, Severity.WARNING) is Reason.FIRST_NOTIFICATION, "the reminder in the morning"
    assert at(3, Event.RESOLVED, Severity.WARNING, heard(Event.FIRING).items()) is Reason.RESOLVED
    assert NOW
