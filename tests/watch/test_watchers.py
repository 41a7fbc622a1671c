"""Several watches in one process."""

import pytest

from sentinel.common.clock import SystemClock
from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from sentinel.watch.watchers import Watchers
from tests.sinks.samples import NOTIFICATION, enqueue

PLACES = ["runs", "wandb://team/one", "wandb://team/two"]


@pytest.fixture
def watchers(tmp_path):
    config = Config.model_validate({"paths": PLACES, "state_dir": str(tmp_path)})
    clock = SystemClock()
    with Store(tmp_path) as store:
        store.set_health({"detector kl-blowup": "failed last week"})
        yield Watchers(config, store, Delivery(tmp_path, [], clock), clock, ServiceManager())


@pytest.fixture
def watched(monkeypatch):
    """The places of each watch that began; that of the first address fails."""
    started = []

    def run(self, stop):
        places = [str(path) for path in self._config.paths]
        started.append(places)
        if places == PLACES[1:2]:
            raise RuntimeError("a defect")
        stop.wait()

    monkeypatch.setattr(Watcher, "run", run)
    return started


@pytest.mark.slow
def test_one_that_fails_ends_all_and_is_heard_of(watchers, watched):
    with pytest.raises(RuntimeError, match="a defect"):
        watchers.run()
    assert sorted(watched) == [[place] for place in PLACES]


@pytest.mark.slow
def test_an_earlier_process_health_is_forgotten(watchers, watched):
    watchers.end()
    with pytest.raises(RuntimeError):
        watchers.run()
    assert watchers._store.health() == {}


@pytest.mark.slow
def test_what_waits_for_a_sink_that_was_removed_is_given_up(watchers, watched):
    enqueue(watchers._store, NOTIFICATION, ["terminal", "removed"], 1.0)
    watchers.end()
    with pytest.raises(RuntimeError):
        watchers.run()
    waiting = {one.sink: one.failed for one in watchers._store.outbox.undelivered()}
    assert waiting == {"terminal": False, "removed": True}
