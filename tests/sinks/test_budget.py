"""A fleet that sends too much: what is critical leaves at once, the rest in digests."""

from dataclasses import replace

import pytest

from detectors.api import Severity
from sentinel.alerts.incident import Event
from sentinel.alerts.store import Update
from sentinel.sinks.base import Digest
from sentinel.sinks.budget import DIGEST_SECONDS, BudgetConfig
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
        of = INCIDENT.changed(id=incident or key, severity=severity)
        enqueue(store, replace(NOTIFICATION, key=key, event=event, incident=of), ["sink"], clock.now())
        return wait(0.0)

    def wait(seconds):
        clock.advance(seconds)
        delivery.drain(1e-3)
        return sink.took

    tell.wait = wait
    return tell


def test_half_of_the_budget_is_for_what_is_critical(fleet):
    for key in "abcd":
        fleet(key)
    assert fleet("e", Severity.CRITICAL) == ["a", "b", "e"]
    assert fleet.wait(DIGEST_SECONDS) == ["a", "b", "e", ["d", "c"]]


def test_what_is_critical_waits_once_all_is_spent_and_an_hour_at_most(fleet):
    for key in "abcdef":
        fleet(key, Severity.CRITICAL)
    assert fleet.wait(0) == list("abcd")
    assert fleet.wait(DIGEST_SECONDS - 10) == list("abcd")
    assert fleet.wait(10) == [*"abcd", ["f", "e"]]


def test_the_end_of_an_incident_is_no_page(fleet):
    for key in "ab":
        fleet(key)
    assert fleet("over", event=Event.RESOLVED, incident="a") == ["a", "b", "over"]


def test_the_budget_is_there_again_a_day_later(fleet):
    for key in "abc":
        fleet(key)
    assert fleet.wait(86_400)[-1] == "c"
    fleet("d")
    assert fleet("e")[-1] == "d"


@pytest.mark.parametrize("days", [-30, 30])
def test_a_clock_that_is_set_delays_nothing_for_longer(fleet, clock, days):
    for key in "abc":
        fleet(key)
    clock.jump(days * 86_400)
    assert fleet.wait(DIGEST_SECONDS) == ["a", "b", "c"]


def test_a_watch_that_starts_anew_each_time_sends_the_digest_as_well(store, deliver, clock):
    """As `watch --once` does when cron starts it."""
    sink = Collector()
    for key in "abcd":
        told = replace(NOTIFICATION, key=key, incident=INCIDENT.changed(id=key))
        enqueue(store, told, ["sink"], clock.now())
        delivery = deliver(sink, budget=BudgetConfig(pages_per_run_day=1))
        delivery.drain(1e-3)
        delivery.stop(20)
        clock.advance(DIGEST_SECONDS / 2)
    assert sink.took == ["a", ["d", "c", "b"]]
