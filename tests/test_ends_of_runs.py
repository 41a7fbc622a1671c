"""How a run ended: finished, crashed or preempted, and that it went on after all."""

import json

import pytest
from msgspec.structs import replace

from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.runs.inactivity import Inactivity
from sentinel.sources.base import Ending, EndKind, PollResult, Run
from sentinel.sources.json.lines import JsonLines
from sentinel.sources.location import Url

CHECKS = [all_detectors()[f"run-{end}"] for end in ("crashed", "finished", "preempted", "ended-early")]
CHECKS += [all_detectors()[name] for name in ("console-error", "stream-stall", "ended-or-stuck")]
START = 1.7e9
SLURM = "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n"
TORCHRUN = (
    "W0409 07:28:49.530000 1359 torch/distributed/elastic/agent/server/api.py:719] "
    "Received 15 death signal, shutting down workers\n"
    "Traceback (most recent call last):\n"
    '  File "/env/lib/python3.12/site-packages/torch/distributed/run.py", line 909, in run\n'
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1359 got signal: 15\n"
)
LIGHTNING = "[rank: 0] Received SIGTERM: 15\n"
INTERRUPT = (
    'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n[rank0]: KeyboardInterrupt\n'
)
CRASH = 'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\nValueError: odd\n'


def follow(directory, source=None):
    def fail(check, run, error):
        raise error

    log = directory / "metrics.jsonl"
    pipeline = Pipeline(CHECKS, {}, {}, fail)
    run = (
        Run(log, "jsonl", JsonLines(log)) if source is None else Run(Url("memory", ("a",)), "memory", source)
    )
    return pipeline, pipeline.track(run, "a")


def write(directory, steps, planned=1000):
    with (directory / "metrics.jsonl").open("a") as file:
        for step in steps:
            settings = {} if step else {"config": {"max_steps": planned}}
            row = {"step": step, "loss": 1.0, "timestamp": START + 60 * step}
            file.writelines(json.dumps(one) + "\n" for one in (settings, row) if one)


def ends(pipeline, run_pipeline):
    """What is found while the log is read, and once the run is over: detectors and who explains them."""
    (advance,) = pipeline.advance([run_pipeline])
    (end,) = pipeline.finalize([run_pipeline])
    assert (advance.failure, end.failure) == (None, None)
    found = [change for change in [*advance.changes, *end.changes] if change.event == "firing"]
    names = {incident.id: incident.detector for incident in run_pipeline.incidents.open()}
    now = {incident.id: incident for incident in run_pipeline.incidents.open()}
    return {c.incident.detector: names.get(now[c.incident.id].inhibited_by or "") for c in found}


def test_a_run_that_reached_its_plan_has_finished(tmp_path):
    write(tmp_path, range(20), planned=19)
    pipeline, run_pipeline = follow(tmp_path)
    assert ends(pipeline, run_pipeline) == {"run-finished": None}
    (incident,) = run_pipeline.incidents.open()
    assert incident.summary == "the run finished at step 19 of 19: step 19 is the last one planned"
    assert incident.evidence["ran_seconds"] == 60 * 19


def test_a_run_that_fell_silent_has_no_end(tmp_path):
    write(tmp_path, range(20))
    assert ends(*follow(tmp_path)) == {}


def test_an_exception_explains_the_crash(tmp_path):
    write(tmp_path, range(20))
    (tmp_path / "train.log").write_text(f"begun\n{CRASH}torchrun: closing\n")
    pipeline, run_pipeline = follow(tmp_path)
    assert ends(pipeline, run_pipeline) == {"console-error": None, "run-crashed": "console-error"}
    (crashed,) = (one for one in run_pipeline.incidents.open() if one.detector == "run-crashed")
    assert crashed.evidence["last_lines"].splitlines()[-2:] == ["ValueError: odd", "torchrun: closing"]


@pytest.mark.parametrize(("code", "first"), [(1, None), (137, "A-err-exit9")])
def test_an_exit_code_alone_is_a_crash(tmp_path, code, first):
    class Ended:
        def poll(self, *_):
            return PollResult({}, ending=Ending(EndKind.CRASHED, f"exit code {code} in the exit record"))

    pipeline, run_pipeline = follow(tmp_path, Ended())
    assert ends(pipeline, run_pipeline) == {"run-crashed": None}
    (incident,) = run_pipeline.incidents.open()
    assert incident.severity.name == "CRITICAL"
    assert (incident.catalogue[0] if incident.catalogue else None) == first


@pytest.mark.parametrize(
    ("steps", "detector"),
    [
        (range(0, 260, 20), "run-finished"),  # each 20th step of range(260)
        (range(20, 260, 20), "run-ended-early"),  # of steps from 1 on it would have logged the last one, too
        (range(19, 260, 20), "run-finished"),
        (range(0, 260, 60), "run-finished"),
        (range(0, 220, 20), "run-ended-early"),
    ],
)
def test_a_loop_that_logs_each_nth_step_has_finished_when_no_further_one_was_due(tmp_path, steps, detector):
    class Exited(JsonLines):
        def poll(self, cursor, limit):
            ending = Ending(EndKind.FINISHED, "process 7 (python) exited with status 0", exited=True)
            return replace(super().poll(cursor, limit), ending=ending)

    with (tmp_path / "metrics.jsonl").open("w") as file:
        rows = [{"config": {"max_steps": 260}}, *({"step": step, "loss": 1.0} for step in steps)]
        file.writelines(json.dumps(row) + "\n" for row in rows)
    pipeline, run_pipeline = follow(tmp_path)
    run_pipeline.log.run = replace(run_pipeline.log.run, source=Exited(tmp_path / "metrics.jsonl"))
    assert ends(pipeline, run_pipeline) == {detector: None}


@pytest.mark.parametrize("words", [SLURM, TORCHRUN, LIGHTNING, INTERRUPT, SLURM + CRASH], ids=range(5))
def test_what_ends_a_run_from_outside_is_no_crash(tmp_path, words):
    """Nor is an error that follows from it."""
    write(tmp_path, range(20))
    (tmp_path / "train.log").write_text(words)
    pipeline, run_pipeline = follow(tmp_path)
    assert ends(pipeline, run_pipeline) == {"run-preempted": None}
    assert pipeline.review(run_pipeline, Inactivity(1e6)) == [], "and it does not stall"
    (incident,) = run_pipeline.incidents.open()
    assert incident.severity.name == "INFO"


@pytest.mark.parametrize("first", [CRASH, SLURM], ids=["crashed", "preempted"])
def test_a_run_that_goes_on_in_a_new_attempt_withdraws_its_end(tmp_path, first):
    write(tmp_path, range(20))
    (tmp_path / "train.log").write_text(first)
    pipeline, run_pipeline = follow(tmp_path)
    assert ends(pipeline, run_pipeline)
    write(tmp_path, range(10, 12))
    (advance,) = pipeline.advance([run_pipeline])
    withdrawn = [one.incident for one in advance.changes if one.incident.state == "withdrawn"]
    assert [one.detector.removeprefix("run-") for one in withdrawn] == [
        "crashed" if first is CRASH else "preempted"
    ]


def test_what_was_preempted_and_went_on_may_crash(tmp_path):
    write(tmp_path, range(20))
    (tmp_path / "train.log").write_text(SLURM + "epoch\n" * 60 + CRASH)
    assert ends(*follow(tmp_path)) == {"console-error": None, "run-crashed": "console-error"}


@pytest.mark.parametrize("late", [False, True])
def test_a_person_who_interrupts_a_run_is_no_crash_whatever_its_exit_code(tmp_path, late):
    write(tmp_path, range(20))

    class Interrupted(JsonLines):
        def poll(self, cursor, limit):
            ending = Ending(EndKind.CRASHED, "exit code 1 in the exit record")
            return replace(super().poll(cursor, limit), ending=None if late and not cursor else ending)

    pipeline, run_pipeline = follow(tmp_path)
    run_pipeline.log.run = replace(run_pipeline.log.run, source=Interrupted(tmp_path / "metrics.jsonl"))
    (tmp_path / "train.log").write_text(INTERRUPT)
    pipeline.advance([run_pipeline])
    assert ends(pipeline, run_pipeline) == {"run-preempted": None}
