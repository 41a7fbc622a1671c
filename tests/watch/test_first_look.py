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


def look(place: Path, receiver: Receiver, first_look: str = "digest", now: float = NOW) -> list[dict]:
    """The messages of one `watch --once`, and of those before it."""
    clock = ManualClock(now)
    sink = WebhookConfig(type="webhook", url=receiver.url, first_look=first_look)
    config = Config(
        paths=[str(place)], sinks=[sink.model_dump()], signals={"kl": "kl"}, state_dir=str(place / "../state")
    )
    with Store(config.state_dir) as store, Delivery(config.state_dir, [sink.open()], clock) as delivery:
        Watchers(config, store, delivery, clock, ServiceManager()).once()
        assert delivery.drain(20)
    return [json.loads(request.body) for request in receiver.received]


def write(place: Path, days: float, kl: float, rows: int = 40) -> None:
    """A log whose run ended so many days ago."""
    begin = NOW - days * DAY - rows
    rows_of_run = ({"step": step, "time": begin + step, "kl": kl} for step in range(rows))
    lines = [json.dumps(row | {"loss": "NaN" if row["step"] > 20 else 1.0}) for row in rows_of_run]
    with place.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("days", "first_look", "count"), [(0.5, "none", 0), (0.5, "digest", 1), (2, "digest", 0), (2, "all", 1)]
)
def test_a_sink_is_told_of_as_many_old_runs_as_it_asks_for(tmp_path, days, first_look, count):
    place = tmp_path / "runs"
    place.mkdir()
    write(place / "a.jsonl", days, 9.0)
    with Receiver() as receiver:
        assert len(look(place, receiver, first_look)) == count
        assert len(look(place, receiver, first_look)) == count, "and nothing at the next start"


def test_261_old_logs_are_one_message_in_which_nothing_is_resolved(tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    for number in range(261):
        write(place / f"{number}.jsonl", 0.2, 9.0 + number)
    (place / "over.jsonl").write_text(
        "".join(
            json.dumps({"step": step, "time": NOW - 9e3 + step, "kl": 9.0 if step < 40 else 0.01}) + "\n"
            for step in range(400)
        )
    )
    with Receiver() as receiver:
        (message,) = look(place, receiver)
        assert message["event"] == "digest"
        assert len({one["run"]["run"] for one in message["notifications"]}) == 261
        assert look(place, receiver) == [message], "and nothing at the next start"


@pytest.mark.parametrize("days", [0, 3], ids=["goes on", "over for days"])
def test_who_was_told_of_an_incident_is_told_of_its_end_at_the_next_start(tmp_path, days):
    place = tmp_path / "runs"
    place.mkdir()
    rows = [{"step": step, "time": NOW - 60 + step, "kl": 9.0 if step < 60 else 0.01} for step in range(400)]
    lines = [json.dumps(row) + "\n" for row in rows]
    (place / "a.jsonl").write_text("".join(lines[:60]))
    with Receiver() as receiver:
        (message,) = look(place, receiver)
        assert (message["event"], message["incident"]["detector"]) == ("firing", "kl-blowup")
        with (place / "a.jsonl").open("a") as file:
            file.writelines(lines[60:])
        later = NOW + 400 + days * DAY
        last = look(place, receiver, now=later)[1:]
        told = [one for body in last for one in body.get("notifications", [body])]
        ended = [one["event"] for one in told if one["incident"]["id"] == message["incident"]["id"]]
        assert ended == ["resolved"]
        assert len(look(place, receiver, now=later)) == 1 + len(last), "and nothing at the next start"
