"""Which logs are of one training, and which are not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.config.file import Config
from sentinel.replays.replaying import replay
from sentinel.runs import training_groups as module
from sentinel.runs.metadata import FoundSetting, RunMetadata
from sentinel.runs.training_groups import TrainingEvidence, is_same_training, trace, trainings
from sentinel.sources.base import Ending, EndKind

PROCESS = "events.out.tfevents.17672300{}0.node.{}.{}"


@pytest.fixture
def log(tmp_path):
    """What a log at a path tells: an event file if it names a process, else any log."""

    def make(place, format_="", process=None, output="", times=(0.0, 100.0)):
        path = tmp_path / place
        is_file = bool(path.suffix)
        (path.parent if is_file else path).mkdir(parents=True, exist_ok=True)
        if process is not None:
            (path / PROCESS.format(0, process, 0)).touch()
        config = {"output_dir": FoundSetting(output, "wandb")} if output else {}
        facts = RunMetadata(config=config, first_time=times[0], last_time=times[1])
        return trace(path, format_ or path.suffix or "tensorboard", facts)

    return make


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("run/metrics.jsonl",), ("run", "tensorboard", 7)),
        (("run/metrics.csv",), ("run/train.log",)),
        (("run/system_metrics.csv",), ("run", "tensorboard", 7)),
        (("run/gpus.csv",), ("run/train.log",)),
        (("run/out", "trainer_state"), ("run/console.log",)),
        (("run/checkpoints", "trainer_state"), ("run/tb", "tensorboard", 7)),
        (("run/metrics.csv",), ("run/tb", "tensorboard", 7)),
        (("logs/csv_logs/version_0/metrics.csv",), ("logs/tb_logs/version_0", "tensorboard", 7)),
        (("runs/seed1.jsonl",), ("runs/seed1.csv",)),
        (("out", "trainer_state"), ("out/runs/Nov23_12-00-00_node", "tensorboard", 7)),
        (("runs/out", "trainer_state"), ("runs/out/runs/Nov23_12-00-00_node", "tensorboard", 7)),
        (("out", "trainer_state"), ("wandb/run-20260101_000000-abcd1234", "wandb", None, "out")),
        (
            ("out/runs/Nov23_x", "tensorboard", 7),
            ("wandb/run-20260101_000000-abcd1234", "wandb", None, "out"),
        ),
        (
            ("wandb/run-20260101_000000-abcd1234", "wandb"),
            ("wandb/run-20260101_000000-abcd1234/files/output.log",),
        ),
        # a relative output directory is where the log lies
        (("exp/my-model", "trainer_state"), ("exp/my-model/runs/Nov23_x", "tensorboard", 7, "my-model")),
        (("exp/a/b", "trainer_state"), ("exp/a/b/runs/Nov23_x", "tensorboard", 7, "./a/b/")),
        (("runs", "trainer_state"), ("runs/runs/Nov23_x", "tensorboard", 7, "runs")),
        (("log", "tensorboard", 7), ("log/Loss_train", "tensorboard", 7)),
        (("a/tb1", "tensorboard", 7), ("b/tb2", "tensorboard", 7)),
        # resumed with the same id
        (
            ("job1/wandb/offline-run-20260101_000000-abcd1234", "wandb", None, "", (0.0, 9.0)),
            ("job2/wandb/offline-run-20260102_000000-abcd1234", "wandb", None, "", (20.0, 30.0)),
        ),
    ],
)
def test_what_joins_logs(log, one, other):
    first = log(*one)
    second = log(*other)
    assert is_same_training(first, second)
    assert is_same_training(second, first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a/metrics.jsonl",), ("b/metrics.csv",)),
        (("runs/a.jsonl",), ("runs/b.csv",)),
        (("runs/a.jsonl",), ("runs/a2.jsonl",)),
        (("outputs/a", "trainer_state"), ("outputs/b", "tensorboard", 7)),
        (("outputs/a", "trainer_state"), ("console.log",)),
        (("runs/a/metrics.jsonl",), ("runs/b", "tensorboard", 7)),
        (("out/runs/Nov23_x", "tensorboard", 7), ("out/runs/Nov24_y", "tensorboard", 8)),
        (("a", "trainer_state"), ("wandb/run-20260101_000000-abcd1234", "wandb", None, "b")),
        (("wandb/run-20260101_000000-aaaa1111", "wandb"), ("wandb/run-20260101_000000-bbbb2222", "wandb")),
        # the folds of a cross-validation: one process, one after the other
        (("fold0", "tensorboard", 7, "", (0.0, 100.0)), ("fold1", "tensorboard", 7, "", (101.0, 200.0))),
        (("train", "tensorboard", 7), ("train2", "tensorboard", 8)),
    ],
)
def test_what_nothing_joins(log, one, other):
    first = log(*one)
    second = log(*other)
    assert not is_same_training(first, second)
    assert not is_same_training(second, first)


def test_the_end_of_one_process_joins_all_logs_that_it_wrote(tmp_path):
    ends = [
        Ending(EndKind.CRASHED, f"process {pid} (python) exited with status 3", exited=True) for pid in (7, 8)
    ]
    one, same, other = (
        trace(tmp_path / name, format_, RunMetadata(exit=end))
        for name, format_, end in (
            ("out/train.jsonl", "jsonl", ends[0]),
            ("a.log", "console", ends[0]),
            ("b.log", "console", ends[1]),
        )
    )
    assert is_same_training(one, same, surely=True)
    assert not is_same_training(one, other)


def test_logs_are_grouped_by_their_training(log):
    traces = {
        "state": log("out", "trainer_state"),
        "first": log("out/runs/a", "tensorboard", 7),
        "resumed": log("out/runs/b", "tensorboard", 8),
        "other": log("else/metrics.csv"),
    }
    assert trainings(traces) == {"state": "state", "first": "state", "resumed": "resumed", "other": "other"}


def test_a_log_makes_those_that_it_joins_one_training():
    """As the TensorBoard log of Hugging Face's Trainer: its process printed, its settings name a place."""
    process = frozenset({"process 1"})
    place = frozenset({"place out"})
    logs = {
        "out": TrainingEvidence("trainer_state", place),
        "console.log": TrainingEvidence("console", process, process),
        "tb": TrainingEvidence("tensorboard", process | place, process, times=(0.0, 9.0)),
        "metrics.csv": TrainingEvidence("csv", process, process, times=(1.0, 9.0)),
        "other.log": TrainingEvidence("console", place, times=(2.0, 9.0)),
    }
    of_one = dict.fromkeys(["out", "console.log", "tb", "metrics.csv"], "out")
    assert trainings(logs) == {**of_one, "other.log": "other.log"}


@st.composite
def traces(draw):
    processes = draw(st.frozensets(st.sampled_from(["process 1", "process 2", "process 3"]), max_size=2))
    places = draw(st.frozensets(st.sampled_from(["place 1", "place 2", "place 3"]), max_size=2))
    began = draw(st.integers(0, 7))
    lasted = draw(st.integers(0, 4))
    times = draw(st.sampled_from([None, (float(began), float(began + lasted))]))
    return TrainingEvidence(
        draw(st.sampled_from("abc")),
        processes | places,
        processes,
        draw(st.sampled_from(["", "x", "y"])),
        times,
    )


def one_by_one(logs):
    """The definition: each log is compared with all others, in the order in which they began."""
    groups = []
    for log in sorted(logs, key=lambda log: (logs[log].times or (-1.0,))[0]):
        target = None
        for group in groups:
            joined = {other: is_same_training(logs[log], logs[other]) for other in group}
            same_format = [other for other in group if logs[other].format == logs[log].format]
            if not any(joined.values()) or not all(joined[other] for other in same_format):
                continue
            if target is None:
                target = group
            elif {logs[one].format for one in target}.isdisjoint(logs[one].format for one in group):
                target += group
                group.clear()
        target = target if target is not None else groups.append([]) or groups[-1]
        target.append(log)
    return {log: min(group) for group in groups for log in group}


@pytest.mark.long
@given(st.lists(traces(), max_size=9))
def test_a_log_joins_a_training_if_it_could_be_with_all_of_its_format_there(evidence):
    logs = {f"log {number}": one for number, one in enumerate(evidence)}
    assert trainings(logs) == one_by_one(logs)


@pytest.mark.parametrize("apart", [0.0, 10.0, -10.0])
def test_the_logs_of_one_process_are_looked_at_a_few_times_each(monkeypatch, apart):
    calls = []
    takes = module._TrainingLogs.takes
    monkeypatch.setattr(module._TrainingLogs, "takes", lambda *pair: calls.append(pair) or takes(*pair))
    process = frozenset({"process 1"})
    logs = {
        f"log {n}": TrainingEvidence(
            "tensorboard", process | {f"place {n}"}, process, "", (n * apart, n * apart + 5)
        )
        for n in range(500)
    }
    assert len({*trainings(logs).values()}) == (500 if apart else 1)
    assert len(calls) <= 500


def test_logs_of_one_format_in_one_place_are_not_looked_at(monkeypatch):
    calls = []
    may_take = module._TrainingLogs.may_take
    monkeypatch.setattr(module._TrainingLogs, "may_take", lambda *one: calls.append(one) or may_take(*one))
    logs = {
        f"log {n}": TrainingEvidence(
            "tensorboard", frozenset({f"process {n}", "place runs"}), frozenset({f"process {n}"})
        )
        for n in range(500)
    }
    logs["state"] = TrainingEvidence("trainer_state", frozenset({"place runs"}))
    assert len({*trainings(logs).values()}) == 500, "the state joins one of them"
    assert len(calls) <= 500


def test_curves_of_one_writer_of_tensorboardx_are_one_training(tmp_path):
    """Its event files do not name their process."""
    paths = {}
    curves = ("Loss/Training", "Loss/Validation", "agent0/loss/train", "agent0/loss/val")
    for run in ("a", "b"):
        for place in ("dist_entropy/dist_entropy", "agent0/loss/agent0/loss", *curves, ""):
            path = tmp_path / run / "logs" / place
            path.mkdir(parents=True, exist_ok=True)
            (path / "events.out.tfevents.1767230000.node").touch()
            paths[f"{run}/{place}"] = path
    facts = RunMetadata(first_time=0.0, last_time=9.0)
    result = trainings({log: trace(path, "tensorboard", facts) for log, path in paths.items()})
    assert {first.partition("/")[0]: log for log, first in result.items()}.keys() == {"a", "b"}
    assert len({*result.values()}) == 2


def test_a_copied_run_of_wandb_is_one_training_with_what_it_printed(tmp_path):
    record = tmp_path / "latest-run" / "run-abc.wandb"
    printed = tmp_path / "latest-run" / "files" / "output.log"
    printed.parent.mkdir(parents=True)
    for file in (record, printed):
        file.touch()
    facts = RunMetadata(first_time=0.0, last_time=9.0)
    one = trace(record, "wandb", facts)
    other = trace(printed, "console", facts)
    assert is_same_training(one, other, surely=True)


def test_directories_below_one_another_are_no_curves_without_a_writer_above(tmp_path):
    paths = [tmp_path / name / part for name in ("lr1", "lr2") for part in ("train", "seed0")]
    for path in paths:
        path.mkdir(parents=True)
        (path / "events.out.tfevents.1767230000.node").touch()
    facts = RunMetadata(first_time=0.0, last_time=9.0)
    result = trainings({str(path): trace(path, "tensorboard", facts) for path in paths})
    assert len({*result.values()}) == len(paths)


def blown(place, name):
    place.mkdir(parents=True)
    rows = [
        {"step": step, "time": 1.7e9 + step, "train/kl": 0.1 if step < 40 else 9.0, "train/reward": 0.5}
        for step in range(80)
    ]
    if name.endswith(".jsonl"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        text = "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n"
    (place / name).write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize(("directories", "messages"), [(("a", "b"), 2), (("a", "a/tb"), 1)])
def test_two_trainings_with_equal_numbers_are_told_twice_and_one_once(tmp_path, directories, messages):
    for directory, name in zip(directories, ("metrics.jsonl", "metrics.csv"), strict=True):
        blown(tmp_path / directory, name)
    config = Config(sinks=[{"type": "terminal", "include_preview": True}])
    result = replay([tmp_path], config, lambda *_: None).runs
    sent = [
        one.decision.event
        for run in result
        for id_, outcomes in run.notifications.items()
        for one in outcomes
        if one.decision.reason.sends and run.incidents[id_].detector == "kl-blowup"
    ]
    assert [len(run.incidents) > 0 for run in result] == [True, True]
    assert sent == ["firing"] * messages


def test_what_a_failed_process_printed_is_of_its_training(tmp_path):
    (tmp_path / "nohup.txt").touch()
    failed = RunMetadata(output=str(tmp_path / "nohup.txt"))
    log = trace(tmp_path / "deep" / "logs" / "version_0", "tensorboard", failed)
    printed = trace(tmp_path / "nohup.txt", "console", RunMetadata())
    assert is_same_training(log, printed, surely=True)
    assert not is_same_training(trace(tmp_path / "deep" / "b", "tensorboard", RunMetadata()), printed)


WRITER = RunMetadata(writers=["7 since 100", "6 since 99"])


def test_logs_that_one_process_was_seen_to_write_are_of_one_training(tmp_path):
    """Whatever their places say, and also where a launcher prints for the rank that logs."""
    log = trace(tmp_path / "exp" / "out", "trainer_state", WRITER)
    printed = trace(tmp_path / "slurm-1.out", "console", RunMetadata(writers=["6 since 99"]))
    other = trace(tmp_path / "slurm-2.out", "console", RunMetadata(writers=["6 since 200"]))
    assert is_same_training(log, printed, surely=True)
    assert not is_same_training(log, other)


def test_a_relative_output_directory_is_below_where_the_process_works(log, tmp_path):
    state = log("exp/out", "trainer_state")
    config = {"output_dir": FoundSetting("out", "tensorboard")}
    facts = RunMetadata(config=config, working_directory=str(tmp_path / "exp"))
    elsewhere = trace(tmp_path / "tb" / "run1", "tensorboard", facts)
    assert elsewhere.output == str(tmp_path / "exp" / "out")
    assert is_same_training(state, elsewhere)


def test_a_training_resumed_under_its_id_is_one_however_often(log):
    logs = {
        str(job): log(
            f"job{job}/wandb/run-2026010{job}_000000-abcd1234", "wandb", times=(20.0 * job, 20.0 * job + 9)
        )
        for job in range(1, 4)
    }
    assert {*trainings(logs).values()} == {"1"}
