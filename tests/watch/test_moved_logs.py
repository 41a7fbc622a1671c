"""A log that was moved, renamed, copied or rotated is the run that it was, under a real watch."""

import shutil

import pytest

from sentinel.notifications.silences import acknowledgement
from sentinel.storage.store import Store
from tests.watch.test_watcher import NOW, House

pytestmark = pytest.mark.long

BLOWUP = range(40, 60)
FIRST = "firing: first-notification"


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def begun(house, name="e1/metrics"):
    """A watch that told of a run, whose KL blew up."""
    (house.runs / name).parent.mkdir(exist_ok=True)
    house.log(name, range(40), kl=0.1)
    watcher = house.watch()
    house.look(watcher)
    house.log(name, BLOWUP, kl=9.0)
    assert FIRST in house.look(watcher, hours=0.01)
    return watcher


def known(house):
    """Paths of the runs that the state knows, and the open incidents."""
    with Store(house.state) as store:
        return sorted(row.path for row in store.runs()), store.incidents(open_only=True)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_moved_run_keeps_its_state_its_incidents_and_what_was_sent(house, restarts):
    watcher = begun(house)
    _, (before,) = known(house)
    (house.runs / "archive").mkdir()
    (house.runs / "e1").rename(house.runs / "archive" / "e1")
    watcher = house.watch() if restarts else watcher
    assert house.look(watcher, hours=0.02) == []
    house.log("archive/e1/metrics", range(60, 80), kl=9.0)
    assert house.look(watcher, hours=0.02) == []
    paths, (after,) = known(house)
    assert paths == [str(house.runs / "archive" / "e1" / "metrics.jsonl")]
    assert after.id == before.id
    assert after.run == f"jsonl:{paths[0]}"
    assert after.last_step == 79, "it was read on where it was"
    house.log("archive/e1/metrics", range(80, 140), kl=0.1)
    assert "resolved: resolved" in house.look(watcher, hours=0.02)


def test_a_moved_run_is_still_acknowledged(house):
    watcher = begun(house)
    _, (incident,) = known(house)
    with Store(house.state) as store:
        store.add_silence(acknowledgement(incident, house.clock.now()))
    (house.runs / "e1").rename(house.runs / "e2")
    house.log("e2/metrics", range(60, 80), kl=9.0)
    assert FIRST not in house.look(watcher, hours=9.0)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_copy_tells_nothing_again(house, restarts):
    watcher = begun(house)
    shutil.copytree(house.runs / "e1", house.runs / "e1_backup")
    watcher = house.watch() if restarts else watcher
    decided = house.look(watcher, hours=0.02)
    assert len(watcher.logs()) == 2
    assert FIRST not in decided
    assert "firing: told-of-another-log" in decided


def test_another_run_with_the_same_beginning_is_no_copy(house):
    """As of two seeds that have written only what they share."""
    watcher = begun(house, "a/metrics")
    (house.runs / "b").mkdir()
    house.log("b/metrics", range(10), kl=0.1)
    house.look(watcher)
    house.log("b/metrics", range(10, 60), kl=9.0)
    assert FIRST in house.look(watcher, hours=0.02)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_rotated_log_is_one_run(house, restarts):
    """As loguru rotates: the file gets another name that is a log's as well, and a new one begins."""
    watcher = begun(house, "train")
    log = house.runs / "train.jsonl"
    log.rename(house.runs / "train.2026-01-01.jsonl")
    house.log("train", range(60, 70), kl=9.0)
    assert FIRST not in house.look(watcher, hours=0.02)
    watcher = house.watch() if restarts else watcher
    log.rename(house.runs / "train.2026-01-02.jsonl")
    house.log("train", range(70, 90), kl=9.0)
    assert FIRST not in house.look(watcher, hours=0.02)
    assert [one.run.path for one in watcher.logs()] == [log]
    assert len(known(house)[1]) == 1


def test_no_row_is_lost_where_a_log_is_renamed_between_two_polls(house):
    house.log("train", range(40), kl=0.1)
    watcher = house.watch()
    house.look(watcher)
    house.log("train", range(40, 60), kl=9.0)
    (house.runs / "train.jsonl").rename(house.runs / "train.jsonl.1")
    house.log("train", range(60, 62), kl=0.1)
    assert FIRST in house.look(watcher, hours=0.01)
    (log,) = watcher.logs()
    rows = 62
    assert log.metadata.points == rows * len(log.understanding().tags)
    assert log.metadata.last_time == NOW + rows - 1


def test_a_log_that_was_replaced_by_another_run_is_not_the_old_one(house):
    watcher = begun(house)
    shutil.rmtree(house.runs / "e1")
    (house.runs / "e2").mkdir()
    house.log("e2/metrics", range(60), kl=9.0, at=NOW + 86400)
    assert FIRST in house.look(watcher, hours=24.0)
