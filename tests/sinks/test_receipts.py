"""What receivers hold: threads, and incidents that must be told again."""

from sentinel.incidents.incident import Event
from sentinel.sinks.base import Transient
from tests.patience import PATIENCE
from tests.sinks.samples import enqueue
from tests.sinks.test_delivery import START, Collector, numbered, settle


class Threaded(Collector):
    """Gives each message a place, as Slack does."""

    def send(self, message, now):
        super().send(message, now)
        return f"place {len(self.took)}"


def test_later_news_of_an_incident_knows_where_the_first_message_stands(tmp_path, store, deliver):
    sink = Threaded("sink")
    delivery = deliver(sink)
    for number, event in enumerate((Event.FIRING, Event.ESCALATED, Event.RESOLVED, Event.REOPENED)):
        enqueue(store, numbered(number, event), ["sink"], START)
        assert settle(delivery)
    enqueue(store, numbered(9, incident="b"), ["sink"], START)
    assert settle(delivery)
    threads = {(message.incident.id, message.event): message.thread for message in sink.took}
    place = next(f"place {n}" for n, message in enumerate(sink.took, 1) if message.incident.id == "a")
    assert threads == {
        ("a", Event.FIRING): "",
        ("a", Event.ESCALATED): place,
        ("a", Event.RESOLVED): place,
        ("a", Event.REOPENED): place,
        ("b", Event.FIRING): "",
    }


class Forgetful(Collector):
    """A sink whose receiver must be told again each minute."""

    refresh_seconds = 60.0

    def __init__(self, name, *outcomes):
        super().__init__(name, *outcomes)
        self.refreshed = []

    def refresh(self, notifications, now):  # noqa: ARG002 - the contract
        with self.changed:
            self.refreshed.append({one.incident.id: one.event for one in notifications})
            self.changed.notify_all()

    def wait_for_refreshes(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.refreshed) >= count, PATIENCE)


def test_open_incidents_are_told_again_until_they_are_over(store, deliver, clock):
    sink = Forgetful("sink")
    delivery = deliver(sink)
    sink.wait_for_refreshes(1)
    enqueue(store, numbered(1, incident="a"), ["sink"], START)
    enqueue(store, numbered(2, incident="b"), ["sink"], START)
    enqueue(store, numbered(3, Event.ESCALATED, incident="b"), ["sink"], START)
    assert settle(delivery)
    clock.advance(60.0)
    delivery.wake()
    sink.wait_for_refreshes(2)
    enqueue(store, numbered(4, Event.RESOLVED, incident="a"), ["sink"], START)
    assert settle(delivery)
    clock.advance(60.0)
    delivery.wake()
    sink.wait_for_refreshes(3)
    delivery.stop()
    again = Forgetful("sink")
    deliver(again)
    again.wait_for_refreshes(1)
    open_ = {"b": Event.FIRING}
    assert sink.refreshed == [{}, {"a": Event.FIRING, **open_}, open_]
    assert again.refreshed == [open_]


def test_a_receiver_that_cannot_be_told_again_is_logged_once(store, deliver, clock, caplog):
    class Broken(Forgetful):
        def refresh(self, notifications, now):
            super().refresh(notifications, now)
            raise Transient("down")

    sink = Broken("sink")
    delivery = deliver(sink)
    for count in (1, 2, 3):
        sink.wait_for_refreshes(count)
        clock.advance(60.0)
        delivery.wake()
    sink.wait_for_refreshes(4)
    assert [r.message for r in caplog.records] == ["sink sink: open incidents were not told again: down"]
