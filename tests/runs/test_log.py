"""One run under watch: settings that count and settings that only show, endings, console output."""

import json
import os

import numpy as np
import pytest
from msgspec.structs import replace

from sentinel.common.days import DAY_SECONDS
from sentinel.detectors.api import Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.runs.log import StoredRun
from sentinel.runs.metadata import FoundSetting
from sentinel.runs.state_codec import packed, unpacked
from sentinel.sources.base import Chunk, Ending, EndKind, Line, PollResult, Run
from sentinel.sources.console.log import Console
from sentinel.sources.discovery import discover
from sentinel.sources.json.lines import JsonLines
from sentinel.watch.watched import WatchedRun
from tests.sources.tensorboard.writer import VERSION, scalar

START = 1.7e9


@pytest.fixture
def pipeline():
    def fail(detector, run, error):
        raise error

    return Pipeline(all_detectors().values(), {}, {}, fail)


COPIED = START + 30 * 86_400
"""When the files of a log were copied, seconds since the epoch."""


def run_pipeline(pipeline, directory, name="metrics.jsonl"):
    return pipeline.track(Run(directory / name, "jsonl", JsonLines(directory / name)), name)


def log_of(pipeline, directory):
    return run_pipeline(pipeline, directory).log


def chunk(steps, tag="loss", stream="s", **fields):
    count = len(steps)
    columns = (np.array(steps, np.int64), START + np.array(steps, float), np.ones(count))
    return Chunk(stream, [tag], np.zeros(count, np.uint32), *columns, **fields)


def arguments(directory, steps, modified):
    (directory / "args.json").write_text(json.dumps({"max_steps": steps, "seed": 7}))
    os.utime(directory / "args.json", (modified, modified))


@pytest.mark.parametrize(("modified", "counts"), [(START - 1, True), (START + 1, False)])
def test_a_file_counts_if_it_was_there_before_the_first_point(pipeline, tmp_path, modified, counts):
    arguments(tmp_path, 500, modified)
    run = log_of(pipeline, tmp_path)
    run.ingest(PollResult({}, [chunk([0, 1])]))
    assert run.streams["s"].planned_steps == (500 if counts else None)
    assert run.metadata.config == {
        "max_steps": FoundSetting(500, "args.json"),
        "seed": FoundSetting(7, "args.json"),
    }


@pytest.mark.parametrize(
    ("name", "of_log", "counts"),
    [
        ("args.json", COPIED, True),  # a checkout
        ("train_config.json", COPIED, False),  # which appears when a model is saved
        ("args.json", COPIED + 3600, False),  # the log went on since
        ("args.json", START + 60, False),
    ],
)
def test_of_a_copy_only_the_name_of_a_file_tells_when_it_was_written(
    pipeline, tmp_path, name, of_log, counts
):
    arguments(tmp_path, 500, COPIED)
    (tmp_path / "args.json").rename(tmp_path / name)
    (tmp_path / "metrics.jsonl").touch()
    os.utime(tmp_path / "metrics.jsonl", (of_log, of_log))
    for run in log_of(pipeline, tmp_path), pipeline.track(Run(tmp_path, "tensorboard", None), "tb").log:
        run.ingest(PollResult({}, [chunk([0, 1])]))
        assert run.streams["s"].planned_steps == (500 if counts else None)


@pytest.mark.parametrize(
    ("name", "expected"), [("args.json", 500), ("training_args.json", 500), ("train_config.json", None)]
)
def test_a_log_without_times_believes_what_is_written_at_the_start(pipeline, tmp_path, name, expected):
    arguments(tmp_path, 500, START - 1)
    (tmp_path / "args.json").rename(tmp_path / name)
    run = log_of(pipeline, tmp_path)
    run.ingest(PollResult({}, [replace(chunk([0]), time=np.array([np.nan]))]))
    assert run.streams["s"].planned_steps == expected
    assert "seed" in run.metadata.config


def test_what_the_log_says_goes_before_files(pipeline, tmp_path):
    arguments(tmp_path, 500, START - 1)
    run = log_of(pipeline, tmp_path)
    run.ingest(PollResult({}, config={"max_steps": 900}))
    run.ingest(PollResult({}, [chunk([0])]))
    assert run.streams["s"].planned_steps == 900
    assert run.metadata.config["max_steps"] == FoundSetting(900, "jsonl")
    run.ingest(PollResult({}, [chunk([1], config={"max_steps": 1000})]))
    assert run.streams["s"].planned_steps == 1000
    run.ingest(PollResult({}, config={"max_steps": 7}))
    assert run.streams["s"].planned_steps == 1000, "a stream that has begun keeps its plan"


@pytest.mark.parametrize(
    ("steps", "ends"), [([0, 99], True), ([1, 100], True), ([0, 98], False), ([1, 99], False)]
)
def test_the_last_planned_step_ends_a_run_whether_it_counts_from_0_or_1(pipeline, tmp_path, steps, ends):
    run = log_of(pipeline, tmp_path)
    run.ingest(PollResult({}, [chunk(steps, config={"max_steps": 100})]))
    assert (run.ending is not None) == ends


def test_broken_settings_are_complained_about_once(pipeline, tmp_path):
    (tmp_path / "args.json").write_text("{")
    run = log_of(pipeline, tmp_path)
    issues = []
    for steps in ([0], [1]):
        issues += run.ingest(
            PollResult({}, [chunk(steps), chunk(steps, stream=f"other {steps}")])
        ).read_issues
    assert len(issues) == 1


def test_an_ending_holds_until_the_log_goes_on_and_survives_a_restart(pipeline, tmp_path):
    crashed = Ending(EndKind.CRASHED, "exit code 1")
    run = log_of(pipeline, tmp_path)
    run.ingest(PollResult({}, [chunk([0, 1])], ending=crashed))
    run.ingest(PollResult({}))
    again = log_of(pipeline, tmp_path)
    state = packed(run.dump())
    again.restore(unpacked(state))
    assert again.metadata == run.metadata
    assert again.ending == run.ending == crashed
    stored = StoredRun(run.metadata, crashed, name="metrics.jsonl", attempts=1)
    assert StoredRun.from_state(unpacked(state)) == stored
    again.ingest(PollResult({}, [chunk([2])]))
    assert again.ending is None


def test_days_without_points_are_no_days_of_the_log_even_after_an_earlier_version(pipeline, tmp_path):
    run = log_of(pipeline, tmp_path)
    begin = int(START // DAY_SECONDS)
    run.ingest(PollResult({}, [chunk([0, 1])]))
    later = [0, 3 * 86400, 3 * 86400 + 9]
    run.ingest(PollResult({}, [chunk(later)]))
    assert run.metadata.extent.days() == [begin, begin + 3]
    state = unpacked(packed(run.dump()))
    del state["metadata"]["days"]
    again = log_of(pipeline, tmp_path)
    again.restore(state)
    assert again.metadata.extent.days() == [*range(begin, begin + 4)], "what is not known counts as a day"
    again.ingest(PollResult({}, [chunk([9 * 86400])]))
    assert again.metadata.extent.days() == [*range(begin, begin + 4), begin + 9]


def test_silence_after_the_end_is_no_loss(pipeline, tmp_path):
    watched = WatchedRun(run_pipeline(pipeline, tmp_path), arrived_at=0.0, committed_at=0.0)
    watched.run_pipeline.log.ingest(PollResult({}, [chunk([0, 1])]))
    assert watched.silent_seconds(1e6) > watched.lost_after_seconds
    watched.run_pipeline.log.ingest(PollResult({}, ending=Ending(EndKind.FINISHED, "exit code 0")))
    assert watched.silent_seconds(1e6) < watched.lost_after_seconds


def test_console_lines_come_from_the_log_and_from_files(pipeline, tmp_path):
    run = log_of(pipeline, tmp_path)
    (tmp_path / "train.log").write_text("begun\nKilled\n")
    run.poll(10)
    absorbed = run.ingest(PollResult({}, lines=[Line(START, "CUDA out of memory")]))
    assert [(news.origin, news.line, news.text) for news in absorbed.printed] == [
        ("", 1, "CUDA out of memory"),
        ("train.log", 2, "Killed"),
    ]
    run.poll(10)
    assert not run.ingest(PollResult({})).printed


def test_files_of_lines_wait_until_the_log_is_read_to_its_end(pipeline, tmp_path):
    run = log_of(pipeline, tmp_path)
    (tmp_path / "train.log").write_text("Killed\n")
    run.poll(10)
    assert not run.ingest(PollResult({}, [chunk([0])], more=True)).printed
    run.poll(10)
    assert [news.text for news in run.ingest(PollResult({}, [chunk([1])])).printed] == ["Killed"]


def test_what_nobody_judges_is_not_read(tmp_path):
    (tmp_path / "train.log").write_text("Killed\n")
    run = log_of(Pipeline((), {}, {}, print), tmp_path)
    run.poll(10)
    assert not run.ingest(PollResult({})).printed


def test_a_run_whose_console_ends_in_an_exception_crashed(pipeline, tmp_path):
    run = log_of(pipeline, tmp_path)
    error = [
        Line(START, "Traceback (most recent call last):"),
        Line(START, '  File "a.py", line 1'),
        Line(START, "E: x"),
    ]
    run.ingest(PollResult({}, [chunk([0])], lines=error))
    assert run.ending == Ending(EndKind.CRASHED, "it printed 'E: x'", inferred=True)
    run.ingest(PollResult({}, [chunk([1])]))
    assert run.ending is None, "points reopen a run that had ended"


def test_a_launch_that_failed_ahead_of_the_training_is_over_once_rows_come(pipeline, tmp_path):
    """One console of several launches: the last one trains, and prints nothing but its rows."""
    path = tmp_path / "nohup.out"
    failed = 'Traceback (most recent call last):\n  File "a.py", line 1\nE: x\n'
    path.write_text(failed + "".join(f"step {step} loss {1 / step:.3f}\n" for step in range(10, 90, 10)))
    log = pipeline.track(Run(path, "console", Console(path, False)), "nohup.out").log
    printed = log.ingest(log.poll(1000)).printed
    assert [(news.step, news.severity) for news in printed] == [(0, Severity.CRITICAL), (10, Severity.CLEAN)]
    assert log.ending is None


def too_short_a_schedule(directory):
    rates = [max(0.0, 1e-3 * (1 - step / 200)) for step in range(400)]
    lines = [
        {"step": step, "learning_rate": rate, "loss": 1.0, "timestamp": START + step}
        for step, rate in enumerate(rates)
    ]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.slow
@pytest.mark.parametrize("bytes_at_once", [1000, 10_000, 10**6])
def test_a_plan_beside_the_log_makes_a_schedule_wrong_however_it_is_read(tmp_path, bytes_at_once):
    pipeline = Pipeline(
        [all_detectors()["lr-schedule-mismatch"]], {}, {}, lambda *what: pytest.fail(str(what))
    )
    arguments(tmp_path, 1000, START - 1)
    too_short_a_schedule(tmp_path)
    log = tmp_path / "metrics.jsonl"
    whole = log.read_bytes()
    log.write_bytes(b"")
    (run,) = discover([tmp_path]).runs
    followed = pipeline.track(run, "a")
    changes = []
    for begin in range(0, len(whole), bytes_at_once):
        with log.open("ab") as file:
            file.write(whole[begin : begin + bytes_at_once])
        more = True
        while more:
            (step,) = pipeline.advance([followed])
            changes += step.changes
            more = step.more
    fired = [(c.incident.detector, c.incident.fired_step, c.incident.evidence["planned"]) for c in changes]
    assert fired == [("lr-schedule-mismatch", 214, 1000.0)]


def test_what_follows_from_logged_signals_is_not_missing(pipeline, tmp_path):
    run = log_of(pipeline, tmp_path)
    signals = {"loss": "loss", "tokens": "data/valid_tokens", "slots": "batch_slots"}
    run.ingest(PollResult({}, [chunk(range(20), tag) for tag in signals.values()]))
    understood = run.understanding().signals
    assert understood["pad_fraction"] == ["1 - data/valid_tokens/batch_slots"]
    assert pipeline.detectors["loss-scales-with-padding"].demand.missing(understood) == []


def event_file(directory, process, epochs, begin, level, seconds=1):
    """What a process logged of an accuracy in these epochs, from this time on."""
    values = [level + 0.3 * epoch / 80 + 0.001 * (epoch % 3) for epoch in epochs]
    records = [
        scalar("val/accuracy", epoch, value, begin + seconds * at)
        for at, (epoch, value) in enumerate(zip(epochs, values, strict=True))
    ]
    name = f"events.out.tfevents.{begin:.0f}.host.{process}.0"
    (directory / name).write_bytes(VERSION + b"".join(records))


@pytest.mark.parametrize("limit", [7, 50_000])
@pytest.mark.parametrize(("begin", "resumes"), [(START + 1000, True), (START + 20, False)])
def test_a_process_with_a_file_of_its_own_resumes_what_ended_before(tmp_path, limit, begin, resumes):
    pipeline = Pipeline([all_detectors()["resume-loss-jump"]], {}, {}, lambda *what: pytest.fail(str(what)))
    event_file(tmp_path, 1, range(40), START, 0.5)
    event_file(tmp_path, 2, range(40, 80), begin, 0.3)
    (run,) = discover([tmp_path]).runs
    followed = pipeline.track(run, "a")
    changes = []
    more = True
    while more:
        (step,) = pipeline.advance([followed], limit)
        changes += step.changes
        more = step.more
    fired = {(c.incident.detector, c.incident.evidence["first_step"]) for c in changes}
    assert fired == ({("resume-loss-jump", 40.0)} if resumes else set())
