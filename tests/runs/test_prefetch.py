"""Reading ahead gives the same batches as reading, and leaves no trace behind."""

import threading
from types import SimpleNamespace

import pytest

from sentinel.runs.prefetch import reading_ahead
from sentinel.sources.base import PollResult, Run

LAST = 3


class Numbered:
    """A log of a few parts. It notes the polls, whether some were ``at_once``, and which part may be read."""

    present = threading.Lock()
    at_once = False

    def __init__(self, broken=None):
        self.polled = []
        self.broken = broken
        self.reached = [threading.Event() for _ in range(LAST + 1)]

    def poll(self, cursor, limit):
        part = cursor.get("part", 0)
        Numbered.at_once |= not self.present.acquire(blocking=False)
        self.polled.append((part, limit))
        self.reached[part].set()
        threading.Event().wait(0.001)  # a poll that came meanwhile would show
        self.present.release()
        if part == self.broken:
            raise ValueError("broken")
        return PollResult({"part": part + 1}, more=part < LAST)


def log_of(source, tmp_path):
    return SimpleNamespace(run=Run(tmp_path, "jsonl", source))


def test_the_next_part_is_read_before_it_is_asked_for(tmp_path):
    log = log_of(source := Numbered(), tmp_path)
    with reading_ahead([log]):
        log.run.source.poll({}, 10)
        assert source.reached[1].wait(10)
        assert not source.reached[2].is_set()


def test_the_batches_are_the_same_and_each_part_is_read_once(tmp_path):
    logs = [log_of(Numbered(), tmp_path / name) for name in "ab"]
    sources = [log.run.source for log in logs]
    polls = {0: [], 1: []}
    with reading_ahead(logs):
        for _ in range(LAST + 1):
            for place, log in enumerate(logs):
                cursor = polls[place][-1].cursor if polls[place] else {}
                polls[place].append(log.run.source.poll(cursor, 10))
    assert [log.run.source for log in logs] == sources
    for place, source in enumerate(sources):
        assert source.polled == [(part, 10) for part in range(LAST + 1)]
        assert [batch.cursor["part"] for batch in polls[place]] == [1, 2, 3, 4]
    assert not Numbered.at_once


def test_another_cursor_is_read_from_there(tmp_path):
    log = log_of(source := Numbered(), tmp_path)
    with reading_ahead([log]):
        log.run.source.poll({}, 10)
        assert log.run.source.poll({"part": LAST}, 5).more is False
    assert (LAST, 5) in source.polled


def test_an_error_is_raised_where_its_part_is_asked_for(tmp_path):
    log = log_of(Numbered(broken=1), tmp_path)
    with reading_ahead([log]):
        assert log.run.source.poll({}, 10).more
        with pytest.raises(ValueError, match="broken"):
            log.run.source.poll({"part": 1}, 10)
