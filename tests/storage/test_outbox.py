"""What waits for the sinks, and in which order it leaves."""

import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from sentinel.detectors.api import Severity
from sentinel.incidents.incident import Event
from sentinel.storage import outbox
from sentinel.storage.outbox import Receiver
from sentinel.storage.store import Store
from tests.sinks.samples import INCIDENT, NOTIFICATION, enqueue, first_waiting

NOW = 1000.0


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as opened:
        yield opened


def put(
    store, incident, event=Event.FIRING, severity=Severity.CRITICAL, at=NOW, sinks=("slack",), deferred=False
):
    notification = replace(
        NOTIFICATION,
        key=f"{incident}-{event}",
        event=event,
        incident=INCIDENT.replace(id=incident, run=f"run {incident}", severity=severity),
    )
    enqueue(store, notification, sinks, at, held=deferred)


def leaving(queue, sink="slack"):
    """The keys of what waits, in the order in which it leaves."""
    keys = []
    while entry := first_waiting(queue, sink):
        keys.append(entry.key)
        queue.sent(sink, [entry], NOW)
    return keys


def test_notifications_of_an_incident_leave_in_order(store):
    put(store, "a", severity=Severity.WARNING)
    put(store, "a", Event.ESCALATED)
    put(store, "a", Event.RESOLVED)
    first = first_waiting(store.outbox, "slack")
    store.outbox.postponed("slack", store.outbox.begin([first]), "503", 5.0, Receiver(1, NOW + 5))
    again = first_waiting(store.outbox, "slack")
    assert (again.key, again.attempts, again.waited_seconds, again.body) == (first.key, 1, 5.0, first.body)
    assert leaving(store.outbox) == ["a-firing", "a-escalated", "a-resolved"]


def test_the_worst_leaves_first_and_the_newest_first_among_equals(store):
    put(store, "old", at=NOW)
    put(store, "warned", severity=Severity.WARNING, at=NOW + 1)
    put(store, "over", Event.RESOLVED, at=NOW + 1)
    put(store, "new", at=NOW + 2)
    put(store, "worse", severity=Severity.WARNING, at=NOW)
    put(store, "worse", Event.ESCALATED, at=NOW + 3)
    assert leaving(store.outbox) == [
        *("worse-firing", "worse-escalated", "new-firing", "old-firing", "warned-firing", "over-resolved")
    ]


def test_one_that_failed_often_lets_the_others_pass(store):
    put(store, "poison")
    put(store, "fine", severity=Severity.INFO)
    tried = []
    for _ in range(8):
        entry = first_waiting(store.outbox, "slack")
        tried.append(entry.key.split("-")[0])
        store.outbox.postponed("slack", store.outbox.begin([entry]), "503", 1.0, Receiver(1, NOW))
    assert tried == ["poison"] * 6 + ["fine"] * 2


def test_sinks_do_not_wait_for_each_other(store):
    put(store, "a", sinks=("slack", "pager"))
    store.outbox.postponed(
        "slack", [first_waiting(store.outbox, "slack")], "timed out", 9.0, Receiver(1, NOW + 9)
    )
    assert store.outbox.receiver("slack") == Receiver(1, NOW + 9)
    assert store.outbox.receiver("pager") == Receiver()
    assert first_waiting(store.outbox, "pager").attempts == 0
    assert first_waiting(store.outbox, "terminal") is None


def test_a_receiver_that_took_something_owes_no_pause(store):
    put(store, "a")
    entry = first_waiting(store.outbox, "slack")
    store.outbox.postponed("slack", [entry], "busy", 9.0, Receiver(3, NOW + 9))
    assert [(u.next_attempt, u.error) for u in store.outbox.undelivered()] == [(NOW + 9, "busy")]
    store.outbox.sent("slack", [entry], NOW)
    assert store.outbox.receiver("slack") == Receiver()


def test_what_was_given_up_is_known(store):
    put(store, "a")
    put(store, "b")
    store.outbox.failed("slack", store.outbox.begin([first_waiting(store.outbox, "slack")]), "404", NOW)
    waits, failed = store.outbox.undelivered()
    assert (waits.incident, waits.failed, waits.attempts, waits.next_attempt) == ("b", False, 0, None)
    assert (failed.incident, failed.failed, failed.attempts, failed.error) == ("a", True, 1, "404")
    assert store.outbox.undelivered_count() == 2
    assert store.outbox.undelivered(limit=1) == [waits]


def test_what_is_due_is_found_by_an_index(tmp_path, store):
    with closing(sqlite3.connect(tmp_path / "sentinel.sqlite")) as database:
        plan = "\n".join(
            row[3]
            for row in database.execute(
                f"EXPLAIN QUERY PLAN {outbox._ENTRIES} {outbox._OF_WORST_INCIDENTS}", ("s", "s", "[]", 0, 1)
            )
        )
    assert "SEARCH outbox USING INDEX outbox_due (sink=?)" in plan
    assert "SCAN outbox" not in plan


def test_what_is_held_leaves_as_one_batch_or_alone(store):
    for incident in "abc":
        put(store, incident, deferred=True)
    put(store, "d")
    assert leaving(store.outbox) == ["d-firing"]
    store.outbox.release(["run a"])
    assert leaving(store.outbox) == ["a-firing"]
    store.outbox.release_all("left")
    batch = first_waiting(store.outbox, "slack").batch
    assert [one.key for one in store.outbox.batch("slack", batch)] == ["b-firing", "c-firing"]


def test_what_was_refused_waits_until_there_is_other_news(store):
    put(store, "a")
    store.outbox.begin(store.outbox.worst("slack", 1))
    assert store.outbox.waiting("slack", ["b"]) == 1
    assert store.outbox.waiting("slack", ["a"]) == len(store.outbox.worst("slack", 1, ["a"])) == 0
    put(store, "a", Event.RESOLVED)
    both = store.outbox.worst("slack", 1, ["a"])
    assert [one.key for one in both] == ["a-firing", "a-resolved"]


def test_what_waits_for_a_sink_that_is_gone_is_given_up(store):
    put(store, "a", sinks=("slack", "pager"))
    store.outbox.give_up_on_others(["slack", "other"], NOW)
    (given_up,) = (one for one in store.outbox.undelivered() if one.failed)
    assert (given_up.sink, given_up.error) == ("pager", "the configuration has no sink of this name any more")
    assert leaving(store.outbox, "pager") == []
    assert leaving(store.outbox) == ["a-firing"]
