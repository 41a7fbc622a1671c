"""One message tells of a NaN that the next point makes worse, and none waits for longer than a look."""

import json

import pytest

from sentinel.storage.store import Store
from tests.watch.test_watcher import GOING, House

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    house.log("a", range(60), kl=0.1, loss=1.0)
    return house


def waiting(house: House) -> list[tuple[str, str]]:
    """The events and severities that may leave."""
    with Store(house.state) as store:
        bodies = [json.loads(entry.body) for entry in store.outbox.worst("terminal", 100)]
    return [(one["event"], one["incident"]["severity"]) for one in bodies]


def look(house: House, watcher) -> list[tuple[str, str]]:
    house.clock.advance(1)
    watcher.round(None, GOING)
    return waiting(house)


def test_a_nan_that_goes_on_is_one_message(house):
    watcher = house.watch(poll_seconds=2)
    look(house, watcher)
    house.log("a", range(60, 61), kl=0.1, loss=float("nan"))
    assert not look(house, watcher)
    house.log("a", range(61, 62), kl=0.1, loss=float("nan"))
    first, second = look(house, watcher)
    assert [first[0], second[0]] == ["firing", "escalated"], "which leave together, as one that fires"
    assert second[1] > first[1]


def test_a_single_nan_is_told_two_seconds_later(house):
    watcher = house.watch(poll_seconds=2)
    look(house, watcher)
    house.log("a", range(60, 61), kl=0.1, loss=float("nan"))
    assert not look(house, watcher)
    assert not look(house, watcher)
    assert len(look(house, watcher)) == 1


def test_what_waits_when_the_watch_ends_is_told(house):
    watcher = house.watch(poll_seconds=2)
    look(house, watcher)
    house.log("a", range(60, 61), kl=0.1, loss=float("nan"))
    assert not look(house, watcher)
    watcher._commit_all()
    assert len(waiting(house)) == 1


def test_other_news_of_the_run_does_not_wait(house):
    watcher = house.watch(poll_seconds=2)
    look(house, watcher)
    house.log("a", range(60, 61), kl=0.1, loss=float("nan"))
    house.log("a", range(61, 120), kl=9.0, loss=1.0)
    assert look(house, watcher)
