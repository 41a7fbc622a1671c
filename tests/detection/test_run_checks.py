"""Run checks in the pipeline: what a run printed, and its silence."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.run_checks import RunCheck, Writer, run_check
from sentinel.pipeline import Pipeline
from sentinel.runs.inactivity import Inactivity
from sentinel.sources.base import Run
from sentinel.sources.json.lines import JsonLines

START = 1.7e9
CHECKS = [check for check in all_detectors().values() if isinstance(check, RunCheck)]
ERROR = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
CONSOLE = [
    "begun\n",
    'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n',
    f"{ERROR}\n",
    *["torchrun: closing\n"] * 5,
]


def follow(directory, checks=CHECKS, failed=None):
    def fail(check, run, error):
        raise error

    pipeline = Pipeline(checks, {}, {}, failed or fail)
    log = directory / "metrics.jsonl"
    return pipeline, pipeline.track(Run(log, "jsonl", JsonLines(log)), "a")


def read(pipeline, run_pipeline, limit=10**6):
    changes = []
    more = True
    while more:
        (advance,) = pipeline.advance([run_pipeline], limit)
        assert advance.failure is None
        changes += advance.changes
        more = advance.more
    return changes


def log_lines(steps):
    return [json.dumps({"step": s, "loss": 1.0, "timestamp": START + s}) + "\n" for s in steps]


def write(directory, name, lines):
    with (directory / name).open("a") as file:
        file.writelines(lines)


def known(changes):
    """What came out, without ids, which hold the run's path."""
    return [(c.event, c.incident.fired_step, c.incident.summary, c.incident.catalogue) for c in changes]


def test_a_crash_beside_a_log_is_an_incident(tmp_path):
    write(tmp_path, "metrics.jsonl", log_lines(range(20)))
    write(tmp_path, "train.log", CONSOLE)
    pipeline, run_pipeline = follow(tmp_path)
    (change,) = read(pipeline, run_pipeline)
    incident = change.incident
    assert (incident.detector, incident.severity.name, incident.fired_step) == (
        "console-error",
        "CRITICAL",
        19,
    )
    assert incident.catalogue == ("A-err-oom",)
    assert incident.summary == f'the run printed "{ERROR}" (train.py:4 in <module>), line 4 of train.log'
    assert incident.fired_time == START + 19


def test_without_run_checks_nothing_is_read_beside_the_log(tmp_path):
    write(tmp_path, "metrics.jsonl", log_lines(range(20)))
    write(tmp_path, "train.log", CONSOLE)
    pipeline, run_pipeline = follow(tmp_path, checks=())
    assert not read(pipeline, run_pipeline)
    assert run_pipeline.log.streams, "the log itself was not read"


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(
    cuts=st.lists(st.tuples(st.integers(0, 20), st.integers(0, len(CONSOLE))), max_size=5),
    reload=st.booleans(),
    limit=st.sampled_from([3, 10**6]),
)
def test_a_crash_is_the_same_however_the_log_grew(tmp_path_factory, cuts, reload, limit):
    """A training logs all its points before it dies of the error, whatever is seen of them when."""
    whole = tmp_path_factory.mktemp("whole")
    grown = tmp_path_factory.mktemp("grown")
    points = log_lines(range(20))
    write(whole, "metrics.jsonl", points)
    write(whole, "train.log", CONSOLE)
    expected = read(*follow(whole))
    pipeline, run_pipeline = follow(grown)
    findings = []
    points_done = 0
    lines_done = 0
    for points_now, lines_now in [*sorted(cuts), (20, len(CONSOLE))]:
        lines_now = lines_now if points_now == 20 else min(lines_now, 2)
        write(grown, "metrics.jsonl", points[points_done:points_now])
        write(grown, "train.log", CONSOLE[lines_done:lines_now])
        points_done = max(points_done, points_now)
        lines_done = max(lines_done, lines_now)
        findings += read(pipeline, run_pipeline, limit)
        if reload:
            state = run_pipeline.dump()
            pipeline, run_pipeline = follow(grown)
            assert run_pipeline.restore(state)
    assert known(findings) == known(expected)


def stalled(run_pipeline, pipeline, seconds, *, lives=False):
    lives = {"process": lambda: Writer("process 7 (python) sleeps", lives=True)} if lives else {}
    changes = pipeline.review(run_pipeline, Inactivity(seconds, [1.0, 30.0], **lives))
    return [(change.event.value, change.incident.severity.name) for change in changes]


def test_a_silent_log_is_a_stall_that_grows_worse_and_ends_with_the_next_point(tmp_path):
    plan = json.dumps({"config": {"max_steps": 900}}) + "\n"
    write(tmp_path, "metrics.jsonl", [plan, *log_lines(range(20))])
    pipeline, run_pipeline = follow(tmp_path)
    assert not read(pipeline, run_pipeline)
    assert stalled(run_pipeline, pipeline, 590) == []
    assert stalled(run_pipeline, pipeline, 610) == [("firing", "WARNING")]
    (incident,) = run_pipeline.incidents.open()
    assert incident.summary == (
        "no new point for 10 min 10 s, where 10 min are allowed; it is at step 19 of 900 planned"
    )
    assert (incident.evidence["usual_seconds"], incident.evidence["allowed_seconds"]) == (1, 600)
    assert stalled(run_pipeline, pipeline, 620) == []
    assert stalled(run_pipeline, pipeline, 1810) == [], "it may have stopped early"
    (incident,) = run_pipeline.incidents.open()
    assert incident.catalogue == ("A-err-exit9",)
    assert incident.latest.startswith("no new point for 30 min 10 s,"), "for a reminder"
    assert stalled(run_pipeline, pipeline, 1820, lives=True) == [("escalated", "CRITICAL")]
    (incident,) = run_pipeline.incidents.open()
    assert "A-err-exit9" not in incident.catalogue, "a process that lives was not killed"
    assert not run_pipeline.incidents.silent(1810, 600), "a stall is about the silence, and not lost in it"
    write(tmp_path, "metrics.jsonl", log_lines([20]))
    (change,) = read(pipeline, run_pipeline)
    assert (change.event, change.incident.detector) == ("resolved", "stream-stall")


def test_a_silence_that_nothing_explains_is_a_question_that_is_asked_once_and_can_be_answered(tmp_path):
    write(tmp_path, "metrics.jsonl", log_lines(range(17)))
    pipeline, run_pipeline = follow(tmp_path)
    read(pipeline, run_pipeline)
    assert stalled(run_pipeline, pipeline, 610) == [("firing", "WARNING")]
    assert stalled(run_pipeline, pipeline, 10**5) == [], "a question grows no worse"
    (incident,) = run_pipeline.incidents.open()
    assert incident.no_reminder
    assert incident.causes == (), "no cause of a hang is named"
    answer = tmp_path / "metrics.jsonl.done"
    assert f"`touch {answer}` or a last row with `done: true` settles it" in incident.summary
    answer.touch()
    assert stalled(run_pipeline, pipeline, 10**5) == []
    (end,) = pipeline.finalize([run_pipeline])
    (change,) = (change for change in end.changes if change.incident.detector == "ended-or-stuck")
    assert change.event == "resolved"
    assert change.incident.ended.startswith("the run finished at step 16 (")
    assert run_pipeline.log.ending.outcome == "finished"


@pytest.mark.parametrize(
    ("pauses", "limit"), [([400, 420], 800), ([3 * 86400], 600)], ids=["evaluations", "a clock that was set"]
)
def test_a_run_that_regularly_pauses_long_is_given_the_time(tmp_path, pauses, limit):
    times = list(range(50))
    for pause in pauses:
        times += [times[-1] + pause + second for second in range(50)]
    lines = [json.dumps({"step": s, "loss": 1.0, "timestamp": START + t}) + "\n" for s, t in enumerate(times)]
    write(tmp_path, "metrics.jsonl", lines)
    pipeline, run_pipeline = follow(tmp_path)
    read(pipeline, run_pipeline)
    assert stalled(run_pipeline, pipeline, limit - 10) == []
    assert stalled(run_pipeline, pipeline, limit + 10) == [("firing", "WARNING")]


def test_a_run_that_ended_does_not_stall(tmp_path):
    write(
        tmp_path, "metrics.jsonl", [json.dumps({"config": {"max_steps": 19}}) + "\n", *log_lines(range(20))]
    )
    pipeline, run_pipeline = follow(tmp_path)
    read(pipeline, run_pipeline)
    assert stalled(run_pipeline, pipeline, 10**6) == []


def test_a_check_that_fails_stops_no_other(tmp_path):
    def broken(run):
        raise ArithmeticError

    declared = run_check(reads="nothing", variants={})(broken)
    write(tmp_path, "metrics.jsonl", log_lines(range(20)))
    write(tmp_path, "train.log", CONSOLE)
    failed = []
    checks = [replace(declared, name="broken"), *CHECKS]
    pipeline, run_pipeline = follow(tmp_path, checks, lambda check, *_: failed.append(check))
    assert [change.incident.detector for change in read(pipeline, run_pipeline)] == ["console-error"]
    assert failed == ["broken"]
    assert Path(run_pipeline.log.run.path).exists()


def test_what_a_silent_run_prints_does_not_end_its_stall(tmp_path):
    write(tmp_path, "metrics.jsonl", log_lines(range(20)))
    pipeline, run_pipeline = follow(tmp_path)
    read(pipeline, run_pipeline)
    assert stalled(run_pipeline, pipeline, 610) == [("firing", "WARNING")]
    write(tmp_path, "train.log", ["[rank1]: Watchdog caught collective operation timeout\n", "Killed\n"])
    assert "resolved" not in {change.event for change in read(pipeline, run_pipeline)}
