"""How the processes of runs under watch ended, told of by what they were, however they write their logs."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from sentinel.detectors.api import Severity
from sentinel.detectors.run_checks import Writer
from sentinel.processes import exits
from sentinel.storage.store import Store
from tests.processes.running import until
from tests.processes.test_exits import needs_kernel
from tests.processes.trainings import KILLED, TRAINING, WRITERS
from tests.watch.test_watcher import House

pytestmark = pytest.mark.long

ENDS = ("run-crashed", "run-preempted", "run-ended-early", "run-finished", "stream-stall", "ended-or-stuck")


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


@pytest.fixture
def system_tells_nothing(monkeypatch):
    """As before Linux 6.15, of a process that was reaped at once."""
    monkeypatch.setattr(exits.Handle, "_code", lambda _: None)


@contextmanager
def training(house, writer, end, launcher=(), err=subprocess.DEVNULL):
    """A training that logs some steps, and again for each line that it gets, and ends once that is closed."""
    code = TRAINING.format(writer=WRITERS[writer], end=end)
    command = [*launcher, sys.executable, "-c", code, house.runs / "run"]
    err = subprocess.STDOUT if writer == "tee" else err
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=err) as one:

        def go_on():
            one.stdin.write(b"\n")
            one.stdin.flush()
            assert until(one.stdout.readline) == b"logged\n"

        assert one.stdout.readline() == b"logged\n"
        yield one, go_on
        one.stdin.close()
        if launcher:
            one.kill()


def ends(house, end, writer="held", launcher=(), err=subprocess.DEVNULL):
    """What is told of a training once its process has ended so, its summary, and the watch."""
    watcher = house.watch()
    house.look(watcher)
    with training(house, writer, end, launcher, err) as (one, go_on):
        for _ in range(5):
            assert house.look(watcher, hours=0.002, detector=ENDS) == []
            go_on()
        assert house.look(watcher, hours=0.002, detector=ENDS) == []
        one.stdin.close()
        messages = until(lambda: house.look(watcher, hours=0.0002, detector=ENDS))
    incident = known(house)
    quiet = incident.severity is Severity.INFO  # which is no news by default
    first, *others = messages
    assert first == f"firing: {'below-sink-severity' if quiet else 'first-notification'}"
    assert "firing: first-notification" not in others
    assert any(log.ending is not None or log.metadata.process_gone for log in watcher.logs())
    return incident.detector, incident.summary, watcher


def known(house):
    """The incident about the end of a run, of the log that knows most."""
    with Store(house.state) as store:
        found = [one for one in store.incidents() if one.detector in ENDS]
    incident, *others = sorted(found, key=lambda one: -one.severity)
    assert {one.detector for one in others} <= {incident.detector}, "of other logs of the training"
    return incident


TOLD = [
    ("sys.exit(3)", "run-crashed", "exited with status 3"),
    ("raise ValueError", "run-crashed", "exited with status 1"),
    (KILLED.format(9), "run-crashed", "was killed by SIGKILL"),
    (KILLED.format(11), "run-crashed", "was killed by SIGSEGV"),
    (KILLED.format(15), "run-preempted", "was killed by SIGTERM"),
    (KILLED.format(2), "run-preempted", "was killed by SIGINT"),
    ("pass", "run-ended-early", "at step 120"),
]


@needs_kernel
@pytest.mark.parametrize(("end", "detector", "words"), TOLD)
def test_the_end_of_a_process_is_told_as_what_it_was(house, end, detector, words):
    actual, summary, watcher = ends(house, end)
    assert actual == detector
    assert words in summary
    assert house.look(watcher, hours=9, detector=("stream-stall", "ended-or-stuck")) == [], "it is no hang"


@needs_kernel
def test_a_sigterm_that_nobody_announced_is_a_warning_of_how_much_is_missing(house):
    ends(house, KILLED.format(15))
    incident = known(house)
    assert incident.severity is Severity.WARNING
    assert incident.summary.startswith(
        "the run was ended from outside at step 120 of 900, 13% of its plan, and"
    )


@needs_kernel
@pytest.mark.parametrize(
    ("end", "detector", "words"),
    [
        ("raise ValueError('no batch')", "run-crashed", "it printed 'ValueError: no batch'"),
        # as Lightning does after Ctrl-C
        ("sys.exit('Detected KeyboardInterrupt, ending ...')", "run-preempted", "Detected KeyboardInterrupt"),
    ],
)
def test_a_failed_process_says_why_wherever_it_prints(house, tmp_path, end, detector, words):
    with (tmp_path / "nohup.txt").open("wb") as err:
        actual, summary, _ = ends(house, end, err=err)
    assert (actual, words in summary) == (detector, True)


@needs_kernel
def test_a_crash_that_a_log_without_steps_tells_says_the_last_step_of_the_others(house):
    writer = (
        WRITERS["tensorboard"]
        + """
empty = EventFileWriter(place + "-of-rank-1")
empty.flush()
"""
    )
    watcher = house.watch()
    house.look(watcher)
    WRITERS["printing"] = writer
    try:
        with training(house, "printing", "sys.exit(3)") as (one, go_on):
            for _ in range(5):
                house.look(watcher, hours=0.002)
                go_on()
            house.look(watcher, hours=0.002)
            one.stdin.close()
            until(lambda: house.look(watcher, hours=0.0002, detector=ENDS))
    finally:
        del WRITERS["printing"]
    with Store(house.state) as store:
        crashes = [one for one in store.incidents() if one.detector == "run-crashed"]
    assert len(crashes) == 2
    assert {one.onset_step for one in crashes} == {120}
    assert all("at step 120" in one.summary for one in crashes)


@needs_kernel
def test_a_crash_whose_error_a_logger_announced_has_its_cause(house, tmp_path):
    """A traceback below an ERROR line may have been caught; nobody goes on after this one."""
    error = "RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')"
    end = f"""
import logging
try: raise {error}
except RuntimeError: logging.exception("no more batches")
sys.exit(1)
"""
    with (house.runs / "train.log").open("wb") as err:
        ends(house, end, err=err)
    incident = known(house)
    assert (incident.detector, incident.catalogue[:1]) == ("run-crashed", ("A-err-oom",))


@needs_kernel
@pytest.mark.parametrize("writer", sorted(WRITERS.keys() - {"held", "wandb"}))
@pytest.mark.parametrize(("end", "detector", "words"), TOLD)
def test_the_end_is_known_of_every_kind_of_writer(house, writer, end, detector, words):
    if writer == "tensorboard" and detector == "run-ended-early":
        pytest.skip("an event file holds no plan")
    actual, summary, _ = ends(house, end, writer)
    assert actual == detector
    assert words in summary


@needs_kernel
@pytest.mark.parametrize(
    ("end", "detector", "words"),
    [
        ("sys.exit(3)", "run-crashed", "exit code 3"),
        ("raise ValueError", "run-crashed", "exit code 1"),
        (KILLED.format(9), "run-crashed", "was killed by SIGKILL"),
    ],
)
def test_wandb_records_how_a_run_crashed_unless_its_process_was_killed(house, end, detector, words):
    actual, summary, _ = ends(house, end, "wandb")
    assert actual == detector
    assert words in summary


def test_the_end_of_a_process_that_nobody_reaps_is_known(house):
    lives_on = (
        "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); sys.stdin.close(); time.sleep(600)"
    )
    launcher = [sys.executable, "-c", lives_on]
    actual, summary, _ = ends(house, "sys.exit(7)", launcher=launcher)
    assert (actual, "exited with status 7" in summary) == ("run-crashed", True)


@pytest.mark.parametrize("writer", ["reopened", "hugging_face"])
def test_where_the_system_does_not_tell_an_end_it_is_asked_at_once(house, system_tells_nothing, writer):
    actual, _, _ = ends(house, "sys.exit(3)", writer)
    assert actual == "ended-or-stuck"
    assert house.look(house.watch(), hours=0.01, detector=ENDS) == [], "another watch knows it, too"
    incident = known(house)
    assert incident.state == "firing"
    assert "and how is not known" in incident.evidence["process"]


def test_of_a_process_that_lives_and_is_silent_it_is_said_what_it_did_since(house):
    watcher = house.watch(process={"stacks": False})
    house.look(watcher)
    with training(house, "held", "pass") as (_, go_on):
        for _ in range(5):
            house.look(watcher, hours=0.002)
            go_on()
        for hours in (0.002, 0.01, 0.01):
            assert house.look(watcher, hours=hours, detector=ENDS) == []
        assert house.look(watcher, hours=0.5, detector=ENDS) == ["firing: first-notification"]
    incident = known(house)
    assert incident.detector == "stream-stall"
    assert incident.evidence["process"].endswith("; in the last 30 min 36 s it did nothing")


@needs_kernel
@pytest.mark.parametrize("stopped", [False, True])
def test_a_process_that_dies_long_after_its_log_went_silent_has_crashed_and_its_stall_is_not_resolved(
    house, stopped
):
    watcher = house.watch(process={"stacks": False})
    house.look(watcher)
    with training(house, "held", "pass") as (one, go_on):
        for _ in range(5):
            house.look(watcher, hours=0.002)
            go_on()
        house.look(watcher, hours=0.002)
        if stopped:
            one.send_signal(signal.SIGSTOP)
        silent = [house.look(watcher, hours=0.01, detector=ENDS) for _ in range(100)]
        assert [news for news in silent if news] == [["firing: first-notification"], ["escalated: escalated"]]
        one.kill()
        one.wait()
        messages = until(lambda: house.look(watcher, hours=0.0002, detector=ENDS))
        assert messages == ["repeat: cause-found", "ended: of-same-trouble"], "one conversation"
    assert house.look(watcher, hours=0.5, detector=ENDS) == []
    assert house.look(house.watch(), hours=0.5, detector=ENDS) == [], "another watch says nothing twice"
    with Store(house.state) as store:
        by_detector = {one.detector: one for one in store.incidents(open_only=True)}
    assert "was killed by SIGKILL" in by_detector["run-crashed"].summary
    assert "SIGKILL" in by_detector["stream-stall"].ended
    assert by_detector["run-crashed"].trouble == by_detector["stream-stall"].id


@needs_kernel
@pytest.mark.parametrize("writer", ["held", "reopened"])
def test_the_writer_of_a_log_that_just_began_is_found_though_to_ask_all_processes_takes_long(
    house, monkeypatch, writer
):
    def takes_long(_):
        house.clock.worked_seconds += 1e6
        return Writer()

    monkeypatch.setattr("sentinel.watch.process_monitor.find_named_process", takes_long)
    house.log("of nobody", range(5), kl=0.1)
    actual, _, _ = ends(house, "sys.exit(3)", writer)
    assert actual == "run-crashed"


@needs_kernel
def test_a_crash_says_which_file_system_is_full(house, monkeypatch):
    full = SimpleNamespace(f_blocks=1000, f_bavail=3, f_frsize=1 << 20)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    _, summary, _ = ends(house, KILLED.format(7))
    assert "SIGBUS; the file system of the log is full (3 MiB left); /dev/shm is full (3 MiB left)" in summary


@needs_kernel
@pytest.mark.parametrize("status_known", [True, False])
def test_a_run_that_goes_on_in_another_process_withdraws_its_end(house, request, status_known):
    if not status_known:
        request.getfixturevalue("system_tells_nothing")
    detector, _, watcher = ends(house, "sys.exit(3)")
    assert detector == ("run-crashed" if status_known else "ended-or-stuck")
    with (house.runs / "run.jsonl").open("a") as log:
        log.writelines(json.dumps({"step": step, "loss": 1.0}) + "\n" for step in range(115, 130))
    assert house.look(watcher, hours=0.01, detector=detector) == ["resolved: resolved"]
    assert watcher.logs()[0].ending is None


HUGGING_FACE = """
import json, os, sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.summary.writer.event_file_writer import EventFileWriter
os.makedirs("my-model/runs/now")
events = EventFileWriter("my-model/runs/now")
settings = json.dumps({"output_dir": "my-model", "max_steps": 900}).encode()
text = TensorProto(dtype="DT_STRING", string_val=[settings])
value = Summary.Value(tag="args/text_summary", tensor=text)
value.metadata.plugin_data.plugin_name = "text"
events.add_event(Event(wall_time=time.time(), summary=Summary(value=[value])))
rows = []
for line in sys.stdin:
    loss = float(line)
    for step in range(len(rows) + 1, len(rows) + 21):
        rows.append({"step": step, "loss": loss})
        print({"loss": loss, "step": step}, flush=True)
        value = Summary.Value(tag="train/loss", simple_value=loss)
        events.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
    events.flush()
    with open("my-model/trainer_state.json", "w") as file:
        json.dump({"log_history": rows, "global_step": step, "max_steps": 900}, file)
    print("logged", file=sys.stderr, flush=True)
"""
"""As Trainer writes: a log of what it prints, one for TensorBoard, and its state, with a relative place."""


def test_the_logs_of_a_training_with_a_relative_output_directory_tell_once(house):
    watcher = house.watch()
    (house.runs / "experiment").mkdir()
    (house.runs / "slurm").mkdir()
    command = [sys.executable, "-c", HUGGING_FACE]
    told = []
    with (
        (house.runs / "slurm" / "job-17.log").open("w") as printed,
        subprocess.Popen(
            command, stdin=-1, stdout=printed, stderr=-1, cwd=house.runs / "experiment"
        ) as training,
    ):
        for loss in ("2.5", "2.4", "2.3", "nan", "nan"):
            training.stdin.write(f"{loss}\n".encode())
            training.stdin.flush()
            while b"logged" not in until(training.stderr.readline):
                pass
            told += house.look(watcher, hours=0.002, detector="non-finite-metric")
        assert len([*watcher.logs()]) == 3
        training.stdin.close()
    assert told.count("firing: first-notification") == 1
    assert told.count("firing: told-of-another-log") == 2
    assert told.count("escalated: escalated") <= 1
