import json
import logging
import random
import sqlite3
import threading
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.common.errors import StateDamaged
from sentinel.detectors.api import Severity
from sentinel.incidents.incident import Event
from sentinel.sinks.base import Digest, Permanent, Transient
from sentinel.sinks.delivery import GIVE_UP_SECONDS, Delivery
from sentinel.sinks.retry import MAX_PAUSE_SECONDS, pause_seconds
from sentinel.sinks.sink_queue import MAX_RETRY_AFTER_SECONDS, MAX_SINGLE_NOTIFICATIONS
from sentinel.sinks.webhook import WebhookConfig
from sentinel.storage.store import Update
from tests.patience import PATIENCE
from tests.sinks import receiver as rx
from tests.sinks.delivering import delivering
from tests.sinks.samples import INCIDENT, NOTIFICATION, enqueue, enqueue_all

START = 1_767_230_000.0


class ScriptedSink:
    """Meets each try with the next of ``outcomes`` (an exception, an event to wait for, or None)."""

    def __init__(self, name, *outcomes):
        self.name = name
        self.outcomes = list(outcomes)
        self.tries = []  # (key, time)
        self.messages = []
        self.changed = threading.Condition()

    def send(self, notification, now):
        with self.changed:
            self.tries.append((notification.key, now))
            self.messages.append(notification)
            self.changed.notify_all()
        match self.outcomes.pop(0) if self.outcomes else None:
            case Exception() as error:
                raise error
            case threading.Event() as released:
                released.wait()

    def wait_for(self, tries):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.tries) >= tries, PATIENCE)

    @property
    def keys(self):
        return [key for key, _ in self.tries]


def settle(delivery):
    """Until everything that is due by now was tried; whether nothing is left."""
    return delivery.drain(1e-3)


def later(delivery, clock, seconds):
    clock.advance(seconds)
    return settle(delivery)


def numbered(number, event=Event.FIRING, incident="a"):
    return replace(
        NOTIFICATION, key=f"{incident}-{event}-{number}", event=event, incident=INCIDENT.replace(id=incident)
    )


@pytest.mark.slow
def test_every_sink_gets_what_is_addressed_to_it_once(store, deliver, clock):
    first = ScriptedSink("first")
    second = ScriptedSink("second")
    enqueue(store, numbered(1), ["first", "second"], START)
    enqueue(store, numbered(2, incident="b"), ["second"], START)
    delivery = deliver(first, second)
    assert settle(delivery)
    assert first.keys == ["a-firing-1"]
    assert sorted(second.keys) == ["a-firing-1", "b-firing-2"]
    assert store.outbox.undelivered() == []
    assert later(delivery, clock, 1e6)
    assert len(first.tries) + len(second.tries) == 3


def test_a_message_that_waited_says_what_is_so_when_it_leaves(store, deliver):
    sink = ScriptedSink("sink")
    enqueue(store, NOTIFICATION, ["sink"], START)
    newest = INCIDENT.replace(last_step=900, findings=99, latest="KL is 5.1 by now")
    store.commit([Update("run", "/runs/run", "jsonl", b"", [newest])], START)
    assert settle(deliver(sink))
    (message,) = sink.messages
    assert (message.incident.last_step, message.incident.summary) == (900, "KL is 5.1 by now")


def test_what_is_committed_later_goes_out_after_a_wake(store, deliver):
    sink = ScriptedSink("sink")
    delivery = deliver(sink)
    enqueue(store, numbered(1), ["sink"], START)
    delivery.wake()
    sink.wait_for(tries=1)
    assert sink.keys == [numbered(1).key]


@pytest.mark.slow
def test_a_transient_failure_is_tried_again_with_the_same_key(store, deliver, clock):
    sink = ScriptedSink("sink", Transient("busy"), Transient("busy"))
    enqueue(store, NOTIFICATION, ["sink"], START)
    delivery = deliver(sink)
    assert not settle(delivery)
    (waiting,) = store.outbox.undelivered()
    assert (waiting.attempts, waiting.failed, waiting.error) == (1, False, "busy")
    assert waiting.next_attempt == START + pause_seconds(NOTIFICATION.key, 0)
    assert not later(delivery, clock, 1.0)
    assert later(delivery, clock, 2.0)
    assert sink.keys == [NOTIFICATION.key] * 3


@pytest.mark.slow
def test_retry_after_holds_for_everything_that_the_sink_is_sent(store, deliver, clock):
    sink = ScriptedSink("sink", Transient("slow down", retry_after_seconds=100.0))
    enqueue(store, numbered(1, incident="a"), ["sink"], START)
    delivery = deliver(sink)
    settle(delivery)
    assert store.outbox.undelivered()[0].next_attempt == START + 100.0
    enqueue(store, numbered(2, incident="b"), ["sink"], START)
    assert not later(delivery, clock, 99.0)
    assert len(sink.tries) == 1
    assert later(delivery, clock, 1.0)
    assert sink.tries[1:] == [("a-firing-1", START + 100.0), ("b-firing-2", START + 100.0)]


@pytest.mark.slow
def test_what_was_refused_waits_alone_and_is_tried_again(store, deliver, clock, caplog):
    refusal = Permanent("no such hook")
    sink = ScriptedSink("sink", refusal, None, refusal)
    enqueue(store, numbered(1), ["sink"], START)
    delivery = deliver(sink)
    assert not settle(delivery)
    enqueue(store, numbered(2, incident="b"), ["sink"], START)
    assert not later(delivery, clock, 29.0)
    (entry,) = store.outbox.undelivered()
    assert (entry.attempts, entry.failed, entry.error) == (1, False, "no such hook")
    assert sink.keys == ["a-firing-1", "b-firing-2"]
    assert not later(delivery, clock, 1.0)
    assert not later(delivery, clock, 59.0)
    assert later(delivery, clock, 1.0)
    assert sink.keys[2:] == ["a-firing-1"] * 2
    assert [r.levelno for r in caplog.records] == [logging.ERROR]


@pytest.mark.long
def test_after_a_day_of_pauses_it_is_given_up(store, deliver, clock):
    sink = ScriptedSink("sink", *[Transient("busy")] * 1000)
    enqueue(store, NOTIFICATION, ["sink"], START)
    delivery = deliver(sink)
    while not later(delivery, clock, MAX_PAUSE_SECONDS):
        clock.jump(86400.0)  # a suspended machine, or a clock that is set, is no time awake
    assert store.outbox.undelivered()[0].failed
    assert GIVE_UP_SECONDS / MAX_PAUSE_SECONDS < len(sink.tries) < 1000
    assert clock.monotonic() >= GIVE_UP_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("days", [-400, -1, 1, 400])
def test_a_clock_that_is_set_neither_holds_up_nor_loses_anything(store, deliver, clock, days):
    sink = ScriptedSink("sink", *[Transient("busy")] * 3)
    enqueue(store, numbered(1), ["sink"], START)
    first = deliver(sink)
    settle(first)
    clock.jump(days * 86400)
    for pause in (1.0, 2.0):
        assert not later(first, clock, pause)
    first.stop()
    clock.jump(-2 * days * 86400)
    second = deliver(sink)
    settle(second)
    assert later(second, clock, MAX_RETRY_AFTER_SECONDS)
    assert sink.keys == ["a-firing-1"] * 4


@pytest.mark.slow
def test_retry_after_is_believed_for_a_quarter_of_an_hour_and_mutes_one_receiver(store, deliver, clock):
    sink = ScriptedSink("sink", Transient("slow down", 1e9))
    other = ScriptedSink("other")
    enqueue(store, numbered(1), ["sink", "other"], START)
    delivery = deliver(sink, other)
    assert not settle(delivery)
    (waiting,) = store.outbox.undelivered()
    assert (waiting.sink, waiting.next_attempt) == ("sink", START + MAX_RETRY_AFTER_SECONDS)
    assert waiting.error == "slow down and asked for a pause of 15 min"
    enqueue(store, numbered(2), ["sink", "other"], START)
    assert not later(delivery, clock, MAX_RETRY_AFTER_SECONDS - 1)
    assert (len(sink.tries), other.keys) == (1, ["a-firing-1", "a-firing-2"])
    assert later(delivery, clock, 1.0)


class Collector(ScriptedSink):
    """Keeps what it took, too."""

    def __init__(self, name, *outcomes):
        super().__init__(name, *outcomes)
        self.took = []

    def send(self, message, now):
        super().send(message, now)
        self.took.append(message)


def pile_up(store, count):
    """Incidents of every severity; every tenth is over already."""
    severities = [Severity.INFO, Severity.WARNING, Severity.CRITICAL]
    messages = []
    for number in range(count):
        incident = INCIDENT.replace(id=str(number), severity=severities[number % 3])
        messages.append(replace(NOTIFICATION, key=f"{number}-firing", incident=incident))
        if number % 10 == 0:
            over = replace(messages[-1], key=f"{number}-resolved", event=Event.RESOLVED)
            messages.append(over)
    enqueue_all(store, messages, ["sink"], START)


@pytest.mark.long
def test_ten_thousand_that_piled_up_are_a_few_messages_and_the_worst_come_first(store, deliver, clock):
    sink = Collector("sink", *[Transient("down")] * 4)
    pile_up(store, 10_000)
    delivery = deliver(sink)
    assert not settle(delivery)
    enqueue(store, numbered("new", incident="newest"), ["sink"], START + 60)
    while not settle(delivery):
        clock.advance(MAX_PAUSE_SECONDS)
    assert len(sink.tries) <= 10 + 4
    newest, *digests = sink.took
    assert newest.incident.id == "newest"
    assert all(isinstance(digest, Digest) for digest in digests)
    notifications = [notification for digest in digests for notification in digest.notifications]
    assert sorted(int(n.incident.id) for n in notifications) == list(range(10_000))
    assert {n.incident.id for n in notifications if n.event is Event.RESOLVED} == {
        str(n) for n in range(0, 10_000, 10)
    }
    for digest in digests:
        ranks = [(n.event is Event.RESOLVED, -n.incident.severity) for n in digest.notifications]
        assert ranks == sorted(ranks)
    worst = [max(n.incident.severity for n in digest.notifications) for digest in digests]
    assert worst == sorted(worst, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("body", ["no JSON", "[]", '{"key": "b"}'])
def test_a_row_that_cannot_be_read_stops_no_other(tmp_path, store, deliver, clock, body):
    sink = ScriptedSink("sink")
    for number in range(3):
        enqueue(store, numbered(number, incident=str(number)), ["sink"], START)
    with closing(sqlite3.connect(tmp_path / "sentinel.sqlite")) as database, database:
        database.execute("UPDATE outbox SET body = ? WHERE incident = '1'", (body,))
    assert settle(deliver(sink))
    assert sink.keys == ["0-firing-0", "2-firing-2"]
    (broken,) = store.outbox.undelivered()
    assert (broken.incident, broken.failed, broken.error) == (
        "1",
        True,
        "its row in the state directory cannot be read",
    )


@pytest.mark.slow
def test_a_few_that_wait_are_told_one_by_one(store, deliver, clock):
    sink = Collector("sink", Transient("down"))
    for number in range(MAX_SINGLE_NOTIFICATIONS):
        enqueue(store, numbered(number, incident=str(number)), ["sink"], START)
    delivery = deliver(sink)
    assert not settle(delivery)
    assert later(delivery, clock, 1.0)
    assert sorted(int(message.incident.id) for message in sink.took) == list(range(MAX_SINGLE_NOTIFICATIONS))


@pytest.mark.slow
def test_a_receiver_that_refuses_digests_is_told_one_by_one(store, deliver, clock):
    class Strict(Collector):
        def send(self, message, now):
            if isinstance(message, Digest):
                raise Permanent("the receiver answered 413")
            super().send(message, now)

    sink = Strict("sink")
    for number in range(2 * MAX_SINGLE_NOTIFICATIONS):
        enqueue(store, numbered(number, incident=str(number)), ["sink"], START)
    delivery = deliver(sink)
    while not settle(delivery):
        clock.advance(1.0)
    numbers = sorted(int(message.incident.id) for message in sink.took)
    assert numbers == list(range(2 * MAX_SINGLE_NOTIFICATIONS))
    assert store.outbox.undelivered() == []


@pytest.mark.slow
def test_a_sink_that_hangs_delays_no_other(store, deliver):
    released = threading.Event()
    hanging = ScriptedSink("hanging", released)
    quick = ScriptedSink("quick")
    for number in range(3):
        enqueue(store, numbered(number, incident=str(number)), ["hanging", "quick"], START)
    delivery = deliver(hanging, quick)
    hanging.wait_for(tries=1)
    quick.wait_for(tries=3)
    assert len(hanging.tries) == 1
    delivery.stop()  # returns, though one is still on its way
    released.set()


@pytest.mark.slow
def test_a_state_that_proves_damaged_is_let_go_of_before_it_is_set_aside(store, tmp_path, clock):
    released = threading.Event()
    sink = ScriptedSink("damaged", released)
    enqueue(store, NOTIFICATION, ["damaged"], START)

    def prove_damaged():
        with Delivery(tmp_path, [sink], clock):
            sink.wait_for(tries=1)
            threading.Timer(0.1, released.set).start()
            raise StateDamaged("a table is missing")

    with pytest.raises(StateDamaged):
        prove_damaged()
    assert "sink damaged" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([Event.FIRING, Event.ESCALATED], Event.FIRING),
        ([Event.FIRING, Event.RESOLVED], Event.RESOLVED),
        ([Event.FIRING, Event.RESOLVED, Event.REOPENED], Event.FIRING),
        ([Event.FIRING, Event.REOPENED, Event.FLAPPING], Event.FLAPPING),
        ([Event.FIRING, Event.LOST], Event.LOST),
        ([Event.FIRING, Event.ENDED], Event.FIRING),  # else no receiver would page that a run crashed
        ([Event.ESCALATED, Event.REPEAT], Event.REPEAT),
    ],
)
def test_what_waits_about_one_incident_is_one_message_of_what_is_so_now(store, deliver, events, expected):
    sink = Collector("sink")
    notifications = [numbered(number, event) for number, event in enumerate(events)]
    enqueue_all(store, notifications, ["sink"], START)
    assert settle(deliver(sink))
    (message,) = sink.took
    assert (message.event, message.key) == (expected, notifications[-1].key)
    assert store.outbox.undelivered() == []


@pytest.mark.slow
def test_what_a_receiver_may_have_is_not_told_as_new(store, deliver, clock):
    """It may have taken the first one, and its answer was lost."""
    sink = Collector("sink", Transient("timed out"))
    enqueue(store, numbered(1), ["sink"], START)
    delivery = deliver(sink)
    assert not settle(delivery)
    enqueue(store, numbered(2, Event.ESCALATED), ["sink"], START)
    assert later(delivery, clock, 1.0)
    assert [message.event for message in sink.took] == [Event.ESCALATED]


@pytest.mark.slow
def test_news_of_what_was_refused_are_tried_at_once(store, deliver):
    sink = Collector("sink", Permanent("bad request"))
    enqueue(store, numbered(1), ["sink"], START)
    delivery = deliver(sink)
    assert not settle(delivery)
    enqueue(store, numbered(2, Event.RESOLVED), ["sink"], START)
    assert settle(delivery)
    assert [message.event for message in sink.took] == [Event.RESOLVED]


@pytest.mark.slow
def test_once_a_receiver_that_refused_all_takes_something_all_is_tried_again(store, deliver, clock):
    sink = Collector("sink", *[Permanent("forbidden")] * 3)
    for number in range(3):
        enqueue(store, numbered(number, incident=str(number)), ["sink"], START)
    delivery = deliver(sink)
    assert not settle(delivery)
    enqueue(store, numbered(3, incident="3"), ["sink"], START)
    assert later(delivery, clock, 1.0)
    assert sorted(message.incident.id for message in sink.took) == ["0", "1", "2", "3"]


@pytest.mark.slow
def test_the_worst_goes_on_first_after_a_failure(store, deliver, clock):
    sink = ScriptedSink("sink", Transient("busy"))
    enqueue(store, numbered(1, Event.FIRING, "a"), ["sink"], START)
    enqueue(store, numbered(3, Event.RESOLVED, "b"), ["sink"], START)
    delivery = deliver(sink)
    assert not settle(delivery)
    assert later(delivery, clock, 1.0)
    assert sink.keys == ["a-firing-1", "a-firing-1", "b-resolved-3"]


@pytest.mark.slow
def test_a_defect_in_a_sink_stops_nothing_and_is_not_quoted(store, deliver, clock):
    sink = ScriptedSink("sink", ValueError("http://host/token"))
    enqueue(store, numbered(1), ["sink", "other"], START)
    other = ScriptedSink("other")
    delivery = deliver(sink, other)
    assert not settle(delivery)
    assert [u.error for u in store.outbox.undelivered()] == ["the sink failed with ValueError"]
    assert later(delivery, clock, 1.0)
    assert other.keys == ["a-firing-1"]


@pytest.mark.slow
def test_what_was_left_goes_out_after_a_restart(store, deliver, clock):
    enqueue(store, numbered(1), ["sink"], START)
    first = deliver(ScriptedSink("sink", Transient("busy")))
    settle(first)
    first.stop()
    clock.advance(1.0)
    second = ScriptedSink("sink")
    assert settle(deliver(second))
    assert second.keys == ["a-firing-1"]


def test_an_unusable_state_directory_is_said_and_survived(tmp_path, clock, caplog):
    (tmp_path / "file").write_text("")
    delivery = Delivery(tmp_path / "file", [ScriptedSink("sink")], clock)
    before = set(threading.enumerate())
    announced = threading.Event()
    caplog.handler.addFilter(lambda _: announced.set() or True)
    delivery.start()
    (thread,) = set(threading.enumerate()) - before
    assert announced.wait(PATIENCE)
    assert thread.is_alive()
    delivery.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.slow
def test_an_http_receiver_in_trouble_gets_everything_in_the_end(store, deliver, clock, receiver):
    receiver.answers.extend([rx.status(500), rx.close, rx.status(429, Retry_After="30"), rx.garbage])
    for number in range(3):
        enqueue(store, numbered(number, incident=str(number)), ["webhook"], START)
    delivery = deliver(WebhookConfig(url=receiver.url, timeout_seconds=60.0).open())
    while not settle(delivery):
        clock.advance(1.0)
    assert store.outbox.undelivered() == []
    assert len(receiver.received) == 3 + 4
    assert {r.headers["Idempotency-Key"] for r in receiver.received} == {f"{n}-firing-{n}" for n in range(3)}


@pytest.mark.long  # many examples
@given(st.text(max_size=20), st.integers(0, 10_000))
def test_pauses_grow_to_five_minutes_and_are_the_same_each_time(key, attempts):
    pause = pause_seconds(key, attempts)
    longest = min(2.0 ** min(attempts, 10), MAX_PAUSE_SECONDS)
    assert longest / 2 <= pause <= longest
    assert pause == pause_seconds(key, attempts)


@pytest.mark.long
def test_killed_at_any_moment_everything_arrives(tmp_path, store, receiver):
    chance = random.Random(7)
    accepted = []
    fine = rx.status(200)

    def moody(handler, released):
        (answer,) = chance.choices([fine, rx.status(500), rx.close, rx.hang], [14, 3, 2, 1])
        if answer is fine:
            key = handler.headers["Idempotency-Key"]
            body = json.loads(next(r.body for r in receiver.received if r.headers["Idempotency-Key"] == key))
            accepted.extend(
                notification["idempotency_key"] for notification in body.get("notifications", [body])
            )
        answer(handler, released)

    receiver.default = moody

    tables = [{"type": "webhook", "url": receiver.url, "timeout_seconds": 0.2}]
    for kill in range(5):
        for number in range(8 * kill, 8 * kill + 8):
            event = Event.RESOLVED if number % 2 else Event.FIRING
            enqueue(store, numbered(number, event, incident=str(number // 2)), ["webhook"], START + kill)
        count = len(receiver.received) + chance.randrange(1, 3)
        with delivering(tmp_path, tables, START + 1000 * kill):
            receiver.wait_for(lambda count=count: len(receiver.received) >= count)
    with delivering(tmp_path, tables, START + 10_000) as last:
        assert last.wait(PATIENCE) == 0
    assert store.outbox.undelivered() == []
    last = {key: place for place, key in enumerate(accepted)}  # what was not acknowledged in time comes again
    for number in range(0, 40, 2):
        incident = number // 2
        fired = f"{incident}-firing-{number}"
        over = f"{incident}-resolved-{number + 1}"
        assert last.get(fired, -1) < last[over]  # a digest holds only the latest
