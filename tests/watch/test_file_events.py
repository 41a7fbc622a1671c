import threading

import pytest

from sentinel.watch import file_events as watching
from sentinel.watch.file_events import Changes, sends_events
from tests.patience import PATIENCE

MOUNTS = r"""22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 0:31 / /home/me/local rw shared:5 master:2 - xfs /dev/sdb rw
32 22 0:32 / /data\040set rw - fuse.sshfs host: rw
33 22 0:33 / /over rw - tmpfs none rw
34 22 0:34 / /over rw - 9p host rw
"""


@pytest.fixture(autouse=True)
def local(monkeypatch):
    """Wherever the tests run, their scratch directory counts as local."""
    monkeypatch.setattr(watching, "LOCAL_SYSTEMS", watching.LOCAL_SYSTEMS | {"overlay"})
    monkeypatch.setattr(watching, "_GATHER_SECONDS", 0.05)


@pytest.mark.parametrize(
    ("path", "sends"),
    [
        ("/var/runs", True),
        ("/home/me/runs", False),
        ("/home/me/local/runs", True),
        ("/homework", True),
        ("/data set/runs", False),
        ("/over/runs", False),
    ],
)
def test_which_file_systems_send_events(path, sends):
    assert sends_events(watching.Path(path), MOUNTS) is sends


def seen(changes, path):
    """Wait until the path is told."""
    while path not in (changed := changes.wait(PATIENCE)):
        assert changed, f"{path} was never told"
    return True


@pytest.mark.parametrize("poll", [False, True])
def test_a_ring_ends_the_pause_of_a_watch_that_works_too_much(tmp_path, poll):
    with Changes([tmp_path], poll=poll) as changes:
        ring = threading.Timer(0.01, changes.ring)
        ring.start()
        assert changes.wait(1e6, pause_seconds=1e6) == (None if poll else set())
        ring.join()


def test_changes_gather_for_as_long_as_the_watch_rests(tmp_path):
    first = tmp_path / "first.jsonl"
    second = tmp_path / "second.jsonl"
    with Changes([tmp_path]) as changes:
        first.write_text("1")

        def go_on():
            second.write_text("2")
            while not changes._changed >= {first, second}:
                threading.Event().wait(0.001)
            changes.stop()

        thread = threading.Thread(target=go_on)
        thread.start()
        assert changes.wait(PATIENCE, pause_seconds=PATIENCE) >= {first, second}
        thread.join()


@pytest.mark.slow
def test_files_that_come_change_and_go(tmp_path):
    log = tmp_path / "log.jsonl"
    with Changes([tmp_path]) as changes:
        assert not changes.polled
        log.write_text("1")
        assert seen(changes, log)
        with log.open("a") as file:
            file.write("2")
        assert seen(changes, log)
        log.unlink()
        assert seen(changes, log)


def test_reading_is_no_change(tmp_path):
    (tmp_path / "log.jsonl").write_text("1")
    with Changes([tmp_path]) as changes:
        (tmp_path / "log.jsonl").read_text()
        (tmp_path / "other.jsonl").touch()
        assert changes.wait(PATIENCE) == {tmp_path / "other.jsonl"}


@pytest.mark.slow
def test_directories_made_and_filled_at_once(tmp_path):
    with Changes([tmp_path]) as changes:
        (tmp_path / "a/b/c").mkdir(parents=True)
        (tmp_path / "a/b/c/log.jsonl").write_text("1")
        assert seen(changes, tmp_path / "a")
        with (tmp_path / "a/b/c/log.jsonl").open("a") as file:
            file.write("2")
        assert seen(changes, tmp_path / "a/b/c/log.jsonl")


@pytest.mark.slow
def test_a_path_that_appears_later(tmp_path):
    with Changes([tmp_path / "runs"]) as changes:
        (tmp_path / "runs").mkdir()
        (tmp_path / "runs/log.jsonl").touch()
        assert seen(changes, tmp_path / "runs")
        (tmp_path / "runs/log.jsonl").write_text("1")
        assert seen(changes, tmp_path / "runs/log.jsonl")


@pytest.mark.slow
def test_a_path_that_is_replaced(tmp_path):
    (tmp_path / "runs").mkdir()
    with Changes([tmp_path / "runs"]) as changes:
        (tmp_path / "runs").rename(tmp_path / "old")
        (tmp_path / "runs").mkdir()
        assert seen(changes, tmp_path / "runs")
        (tmp_path / "runs/log.jsonl").touch()
        assert seen(changes, tmp_path / "runs/log.jsonl")


@pytest.mark.slow
def test_a_file_is_followed_when_it_is_replaced(tmp_path):
    log = tmp_path / "log.jsonl"
    other = tmp_path / "other.jsonl"
    log.touch()
    with Changes([log]) as changes:
        for _ in range(2):
            other.write_text("new")
            other.replace(log)
            assert changes.wait(PATIENCE) == {log}


@pytest.mark.slow
def test_stopping_ends_the_wait(tmp_path):
    for poll in (False, True):
        with Changes([tmp_path], poll=poll) as changes:
            threading.Timer(0.05, changes.stop).start()
            assert not changes.wait(PATIENCE)
            assert not changes.wait(PATIENCE)


def test_polling_never_knows(tmp_path):
    with Changes([tmp_path], poll=True) as changes:
        assert changes.polled
        assert changes.wait(0.01) is None
        assert not changes.read_issues


def test_a_watch_limit_means_polling_and_one_complaint(tmp_path, monkeypatch):
    def exhausted(*_, **__):
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watching.Observer, "schedule", exhausted)  # the limit belongs to the whole machine
    with Changes([tmp_path]) as changes:
        assert changes.polled
        assert changes.wait(0.01) is None
        (complaint,) = changes.read_issues
        assert "max_user_watches" in str(complaint)


def test_no_thread_is_left_behind(tmp_path):
    before = threading.active_count()
    with Changes([tmp_path]):
        assert threading.active_count() > before
    assert threading.active_count() == before
