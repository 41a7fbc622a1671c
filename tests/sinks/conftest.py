import threading

import pytest

from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from tests.manual_clock import ManualClock
from tests.patience import PATIENCE
from tests.sinks.receiver import Receiver

START = 1_767_230_000.0


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def receiver():
    with Receiver() as running:
        yield running


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as store:
        yield store


@pytest.fixture
def deliver(tmp_path, clock):
    """Starts a delivery to some sinks; at the end no thread of it is left."""
    before = set(threading.enumerate())
    started = []

    def start(*sinks, **how):
        started.append(Delivery(tmp_path, sinks, clock, **how))
        started[-1].start()
        return started[-1]

    yield start
    for delivery in started:
        delivery.stop()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive()
