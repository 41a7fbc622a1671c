"""What a watch finds in runs that were over before it began is one message."""

import json
from pathlib import Path

import pytest

from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.sinks.webhook import WebhookConfig
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watchers import Watchers
from tests.manual_clock import ManualClock
from tests.sinks.receiver import Receiver

pytestmark = pytest.mark.long

NOW = 1_767_230_000.0
DAY = 86400.0


def look(place: Path, receiver: Receiver) -> list[dict]:
    """The messages of one `watch --once`."""
    clock = ManualClock(NOW)
    sink = WebhookConfig(type="webhook", url=receiver.url)
    config = Config(
        paths=[str(place)], sinks=[sink.model_dump()], signals={"kl": "kl"}, state_dir=str(place / "../state")
    )
    with Store(config.state_dir) as store, Delivery(config.state_dir, [sink.open()], clock) as delivery:
        Watchers(config, store, delivery, clock, ServiceManager()).once()
        assert delivery.drain(20)
    return [json.loads(request.body) for request in receiver.received]


def test_261_old_logs_are_one_message(tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    for number in range(261):
        rows = ({"step": step, "time": NOW - 2 * DAY + step, "kl": 9.0 + number} for step in range(40))
        (place / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Receiver() as receiver:
        (message,) = look(place, receiver)
        assert message["event"] == "digest"
        assert len({one["run"]["run"] for one in message["notifications"]}) == 261
        assert look(place, receiver) == [message], "and nothing at the next start"
