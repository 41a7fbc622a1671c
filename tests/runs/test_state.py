"""How a run stands: the word of its log, else its silence."""

import os

import numpy as np
import pytest

from sentinel.runs.metadata import RunMetadata, lost_after_seconds
from sentinel.runs.state import RunState, run_status, silent_seconds
from sentinel.sources.base import Chunk, Ending, EndKind
from sentinel.sources.location import Url

HOUR = 3600.0
FINISHED = Ending(EndKind.FINISHED, "exit code 0")
CRASHED = Ending(EndKind.CRASHED, "exit code 1")


@pytest.mark.parametrize(
    ("ending", "silent", "goes_on_in", "state"),
    [
        (None, 0.0, None, RunState.RUNNING),
        (None, HOUR, None, RunState.RUNNING),
        (None, HOUR + 1, None, RunState.SILENT),
        (None, 25 * HOUR, None, RunState.LOST),
        (None, None, None, RunState.LOST),
        (None, 25 * HOUR, "next", RunState.PREEMPTED),
        (FINISHED, 25 * HOUR, "next", RunState.FINISHED),
        (CRASHED, None, None, RunState.CRASHED),
    ],
)
def test_states(ending, silent, goes_on_in, state):
    status = run_status(ending, silent, HOUR, goes_on_in)
    assert status.state is state
    assert status.evidence


def test_a_silent_run_that_should_go_on_is_stalled():
    status = run_status(None, HOUR + 1, HOUR, goes_on="it is at step 5 of 90 planned")
    assert status.state is RunState.STALLED
    assert "step 5 of 90" in status.evidence


def test_the_evidence_says_what_is_allowed_and_not_what_never_was():
    evidence = run_status(None, HOUR + 1, HOUR).evidence
    assert "its pauses explain 1 h at most" in evidence
    assert "never" not in evidence


def test_a_log_with_long_pauses_may_be_silent_for_long():
    assert run_status(None, 26 * HOUR, 30 * HOUR).state is RunState.RUNNING
    assert run_status(None, 31 * HOUR, 30 * HOUR).state is RunState.LOST


def test_the_files_tell_when_something_was_written(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "events").touch()
    for path, time in ((run / "events", 5000.0), (run, 4000.0)):
        os.utime(path, (time, time))
    assert silent_seconds(run, None, 6000.0) == 1000
    assert silent_seconds(run / "events", None, 6000.0) == 1000
    assert silent_seconds(run, 5000.0 - 8 * HOUR, 6000.0) == 1000, "a log may be in local time"
    assert silent_seconds(run, 5000.0 - 100 * HOUR, 6000.0) == 1000 + 100 * HOUR, "a copy is younger"
    assert silent_seconds(run, None, 4500.0) == 0, "clocks differ"
    assert silent_seconds(tmp_path / "gone", None, 6000.0) is None
    assert silent_seconds(run / "events" / "run 1", None, 6000.0) == 1000, "a run in a database"
    assert silent_seconds(Url("wandb", ("team", "project")), 5000.0, 6000.0) == 1000


def facts(*points, ending=None):
    metadata = RunMetadata()
    for tag, step, time in points:
        one = (np.array([v]) for v in (step, time, 1.0))
        metadata.count(Chunk("s", [tag], np.array([0], np.uint32), *one))
    metadata.logged_ending = ending
    return metadata


def test_a_summary_at_the_last_step_is_the_end():
    summary = facts(("loss", 10, 1.0), ("train/train_runtime", 10, 2.0))
    assert summary.ending(None).outcome is EndKind.FINISHED
    assert facts(("train_runtime", 10, 1.0), ("loss", 11, 2.0)).ending(None) is None


def test_the_last_planned_step_is_the_end():
    run = facts(("loss", 10, 1.0))
    assert run.ending(10).outcome is EndKind.FINISHED
    assert run.ending(11) is None
    assert run.ending(9) is None, "a plan that was passed counts something else"
    assert facts().ending(10) is None


def test_what_the_log_says_goes_first():
    assert facts(("loss", 10, 1.0), ending=CRASHED).ending(10) == CRASHED


def test_pauses_are_the_logs_own():
    run = facts(*(("loss", i, 3600.0 * i) for i in range(1, 200)))
    assert len(run.pauses) == 100
    assert run.lost_after_seconds == 10 * HOUR
    assert (run.first_time, run.last_time) == (3600.0, 3600.0 * 199)
    timeless = facts(("loss", 1, np.nan), ("loss", 2, np.nan))
    assert timeless.pauses == []
    assert timeless.last_time is None


@pytest.mark.parametrize(
    ("intervals", "expected"), [([], 600), ([2.0] * 50, 600), ([100.0] * 99 + [5000.0], 1000)]
)
def test_how_long_is_too_long(intervals, expected):
    assert lost_after_seconds(intervals) == expected
