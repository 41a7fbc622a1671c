"""A fleet that sends too much: what is critical leaves at once, the rest in digests."""

import pytest
from msgspec.structs import replace

from sentinel.config.file import Config
from sentinel.detectors.api import Severity
from sentinel.incidents.incident import Event
from sentinel.sinks.base import Digest
from sentinel.sinks.budget import DIGEST_SECONDS, BudgetConfig
from sentinel.sinks.terminal import TerminalConfig
from sentinel.storage.store import Update
from tests.patience import PATIENCE
from tests.sinks.samples import INCIDENT, NOTIFICATION, enqueue

RUNS = 4
ALLOWED = 4  # messages a day


class Collector:
    name = "sink"

    def __init__(self):
        self.took = []

    def send(self, message, _):
        self.took.append(
            [n.key for n in message.notifications] if isinstance(message, Digest) else message.key
        )


@pytest.fixture
def fleet(store, deliver, clock):
    """Tells of one incident at a time; gives what the sink took, digests as lists."""
    names = ["run", *(f"run {n}" for n in range(1, RUNS))]
    sink = Collector()
    delivery = deliver(sink, budget=BudgetConfig(pages_per_run_day=ALLOWED / RUNS))

    def tell(key, severity=Severity.WARNING, event=Event.FIRING, incident=None):
        clock.advance(1.0)  # before the sink can see it: messages of one moment count as one
        store.commit([Update(name, name, "jsonl", b"") for name in names], clock.now())
        about = INCIDENT.replace(id=incident or key, severity=severity)
        enqueue(store, replace(NOTIFICATION, key=key, event=event, incident=about), ["sink"], clock.now())
        return wait(0.0)

    def wait(seconds):
        clock.advance(seconds)
        delivery.drain(1e-3)
        return sink.took

    tell.wait = wait
    return tell


@pytest.mark.slow
def test_half_of_the_budget_is_for_what_is_critical(fleet):
    for key in "abcd":
        fleet(key)
    assert fleet("e", Severity.CRITICAL) == ["a", "b", "e"]
    assert fleet.wait(DIGEST_SECONDS) == ["a", "b", "e", ["d", "c"]]


@pytest.mark.slow
def test_what_is_critical_waits_once_all_is_spent_and_an_hour_at_most(fleet):
    for key in "abcdef":
        fleet(key, Severity.CRITICAL)
    assert fleet.wait(0) == list("abcd")
    assert fleet.wait(DIGEST_SECONDS - 10) == list("abcd")
    assert fleet.wait(10) == [*"abcd", ["f", "e"]]


@pytest.mark.slow
def test_the_end_of_an_incident_is_no_page(fleet):
    for key in "ab":
        fleet(key)
    assert fleet("over", event=Event.RESOLVED, incident="a") == ["a", "b", "over"]


@pytest.mark.slow
def test_the_budget_is_there_again_a_day_later(fleet):
    for key in "abc":
        fleet(key)
    assert fleet.wait(86_400)[-1] == "c"
    fleet("d")
    assert fleet("e")[-1] == "d"


@pytest.mark.slow
@pytest.mark.parametrize("days", [-30, 30])
def test_a_clock_that_is_set_delays_nothing_for_longer(fleet, clock, days):
    for key in "abc":
        fleet(key)
    clock.jump(days * 86_400)
    assert fleet.wait(DIGEST_SECONDS) == ["a", "b", "c"]


@pytest.mark.slow
def test_a_watch_that_starts_anew_each_time_sends_the_digest_as_well(store, deliver, clock):
    """As `watch --once` does when cron starts it."""
    sink = Collector()
    for key in "abcd":
        notification = replace(NOTIFICATION, key=key, incident=INCIDENT.replace(id=key))
        enqueue(store, notification, ["sink"], clock.now())
        delivery = deliver(sink, budget=BudgetConfig(pages_per_run_day=1))
        delivery.drain(1e-3)
        delivery.stop(20)
        clock.advance(DIGEST_SECONDS / 2)
    assert sink.took == ["a", ["d", "c", "b"]]


DAY = 86_400.0


@pytest.mark.slow
def test_a_sink_that_asks_for_a_digest_gets_one_message_a_day(store, deliver, clock):
    pages = Collector()
    looks = Collector()
    looks.name = "looks"
    delivery = deliver(pages, looks, daily={"looks"})

    def tell(key, event=Event.FIRING, incident=None):
        clock.advance(1.0)
        about = INCIDENT.replace(id=incident or key, severity=Severity.INFO)
        enqueue(
            store, replace(NOTIFICATION, key=key, event=event, incident=about), ["sink", "looks"], clock.now()
        )
        delivery.drain(1e-3)

    for key in "ab":
        tell(key)
    tell("over", Event.RESOLVED, "a")
    assert (pages.took, looks.took) == (["a", "b", "over"], [])
    clock.advance(DAY - 10)
    delivery.drain(1e-3)
    assert looks.took == []
    clock.advance(10)
    delivery.drain(1e-3)
    assert looks.took == [["b", "over"]], "what is so now of each"
    tell("c")
    assert len(looks.took) == 1


def test_a_watch_that_starts_anew_sends_the_daily_digest_in_time(store, deliver, clock):
    sink = Collector()
    for key in "ab":
        enqueue(
            store, replace(NOTIFICATION, key=key, incident=INCIDENT.replace(id=key)), ["sink"], clock.now()
        )
    for hours in (0, 13, 13):
        assert sink.took == []
        clock.advance(hours * 3600)
        delivery = deliver(sink, daily={"sink"})
        delivery.drain(1e-3)
        delivery.stop(PATIENCE)
    assert sink.took == [["b", "a"]]


def test_a_sink_with_a_digest_gets_what_is_worth_a_look_as_well():
    assert TerminalConfig(type="terminal", digest="daily").policy().min_severity == Severity.INFO
    chosen = TerminalConfig(type="terminal", digest="daily", min_severity="critical")
    assert chosen.policy().min_severity == Severity.CRITICAL
    assert Config(sinks=[{"type": "terminal", "digest": "daily"}, {"type": "terminal"}]).daily == {"terminal"}
