"""The states of one training: which checkpoint wins, what is new in it, what the plan was."""

import json
import math
import os
from pathlib import Path

import pytest

from sentinel.sources.discovery import discover
from sentinel.sources.json.trainer_state import FORMAT, TrainerState
from tests.sources.reader import Reader

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trainer_state" / "output"


def save(folder, steps, time=None, loss=2.0, **state):
    """A state whose training logged at these steps."""
    folder.mkdir(parents=True, exist_ok=True)
    history = [{"epoch": step / 10, "loss": loss, "step": step} for step in steps]
    state = {"global_step": max(steps, default=0), "log_history": history, **state}
    path = folder / "trainer_state.json"
    path.write_text(json.dumps(state, indent=2, sort_keys=True))
    if time is not None:
        os.utime(path, (time, time))


def steps(reader):
    return [step for tag, step, _ in reader.points if tag == "loss"]


def test_an_output_directory_with_checkpoints_is_one_run(tmp_path):
    save(tmp_path / "out" / "checkpoint-10", [5, 10])
    save(tmp_path / "out" / "checkpoint-20", [5, 10, 15, 20])
    save(tmp_path / "out", [5, 10, 15, 20, 25])
    save(tmp_path / "alone", [1])
    runs = [(run.path, run.format) for run in discover([tmp_path]).runs]
    assert runs == [(tmp_path / "alone", FORMAT), (tmp_path / "out", FORMAT)]
    assert [run.path for run in discover([tmp_path / "out" / "checkpoint-10"]).runs] == [tmp_path / "out"]


def test_each_checkpoint_adds_what_is_new(tmp_path):
    reader = Reader(tmp_path)
    for last in (10, 20, 30):
        save(tmp_path / f"checkpoint-{last}", range(5, last + 1, 5))
        reader.poll()
    assert steps(reader) == list(range(5, 31, 5))
    assert not reader.restarts
    assert all(map(math.isnan, reader.times))


def test_old_checkpoints_are_removed(tmp_path):
    reader = Reader(tmp_path)
    save(tmp_path / "checkpoint-10", [5, 10])
    reader.poll()
    (tmp_path / "checkpoint-10" / "trainer_state.json").unlink()
    reader.poll()
    save(tmp_path / "checkpoint-20", [5, 10, 15, 20])
    assert steps(reader.poll()) == [5, 10, 15, 20]


def test_the_last_checkpoint_is_removed_and_the_best_stays(tmp_path):
    save(tmp_path / "checkpoint-10", [5, 10], time=1000)
    save(tmp_path / "checkpoint-20", [5, 10, 15, 20], time=2000)
    reader = Reader(tmp_path).poll()
    (tmp_path / "checkpoint-20" / "trainer_state.json").unlink()
    assert steps(reader.poll()) == [5, 10, 15, 20]
    save(tmp_path, [5, 10, 15, 20, 25], time=3000)
    assert steps(reader.poll()) == [5, 10, 15, 20, 25]
    assert not reader.restarts


def test_copies_that_lost_their_times(tmp_path):
    save(tmp_path / "checkpoint-10", [5, 10], time=2000)
    save(tmp_path / "checkpoint-20", [5, 10, 15, 20], time=1000)
    assert steps(Reader(tmp_path).poll()) == [5, 10, 15, 20]


def test_a_copy_that_lost_its_times_beside_a_checkpoint_of_an_earlier_training(tmp_path):
    save(tmp_path / "checkpoint-10", [5, 10], time=1000)
    save(tmp_path / "checkpoint-20", [5, 10, 15, 20], time=1000)
    save(tmp_path / "checkpoint-5", [5], time=1001, loss=9.0)
    reader = Reader(tmp_path).poll()
    assert steps(reader) == [5, 10, 15, 20]
    assert not reader.poll().restarts


def test_the_state_at_the_end_tells_more_than_the_checkpoint_of_the_same_step(tmp_path):
    save(tmp_path / "checkpoint-20", [5, 10, 15, 20], time=1000)
    save(tmp_path, [5, 10, 15, 20, 20], time=1000)
    assert steps(Reader(tmp_path).poll()) == [5, 10, 15, 20, 20]


def test_another_training_into_the_same_directory(tmp_path):
    save(tmp_path / "checkpoint-30", [10, 20, 30], time=1000)
    reader = Reader(tmp_path).poll()
    save(tmp_path / "checkpoint-20", [10, 20], time=2000, loss=9.0)
    assert steps(reader.poll()) == [10, 20, 30, 10, 20]
    assert reader.restarts == 1


def test_resumed_from_an_earlier_checkpoint(tmp_path):
    reader = Reader(tmp_path)
    save(tmp_path / "checkpoint-20", [10, 20], time=1000)
    save(tmp_path / "checkpoint-30", [10, 20, 30], time=2000)
    reader.poll()
    save(tmp_path / "checkpoint-40", [10, 20, 31, 40], time=3000)
    assert steps(reader.poll()) == [10, 20, 30, 10, 20, 31, 40]
    assert reader.restarts == 1


def test_a_state_that_is_being_saved(tmp_path):
    save(tmp_path / "checkpoint-10", [5, 10], time=1000)
    save(tmp_path / "checkpoint-20", [5, 10, 15, 20], time=2000)
    path = tmp_path / "checkpoint-20" / "trainer_state.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    reader = Reader(tmp_path).poll()
    assert steps(reader) == [5, 10]
    path.write_bytes(whole)
    assert steps(reader.poll()) == [5, 10, 15, 20]
    assert not reader.read_issues


def test_one_that_is_broken_is_told_of_once(tmp_path):
    save(tmp_path / "checkpoint-10", [5, 10], time=1000)
    path = tmp_path / "trainer_state.json"
    path.write_text('{"log_history": [\n{"step": 1 "loss": 2}\n], "global_step": 20}')
    reader = Reader(tmp_path).poll().poll()
    assert steps(reader) == [5, 10]
    assert [c.split(" and is")[0] for c in reader.read_issues] == [
        f"{path} at line 2: is no JSON (Expecting ',' delimiter)"
    ]


def test_the_plan(tmp_path):
    save(tmp_path, [10, 20], max_steps=50, num_train_epochs=9223372036854775807, logging_steps=10)
    batch = TrainerState(tmp_path).poll({}, 100)
    assert batch.config == {"max_steps": 50, "logging_steps": 10}
    reader = Reader(tmp_path).poll()
    assert [point for point in reader.points if point[0] == "max_steps"] == [("max_steps", 10, "50.0")]
    save(tmp_path, [10, 20, 30, 40], max_steps=90)
    reader.poll()
    assert [p[1:] for p in reader.points if p[0] == "max_steps"] == [(10, "50.0"), (30, "90.0")]
    assert not reader.restarts


def test_a_step_that_goes_back_is_real(tmp_path):
    save(tmp_path, [10, 20, 0])
    assert steps(Reader(tmp_path).poll()) == [10, 20, 0]


@pytest.mark.parametrize("content", ["[]", "{}", "7", '{"log_history": {}}', "[" * 100_000, "[" * 900 + "]"])
def test_what_is_no_state(tmp_path, content):
    (tmp_path / "trainer_state.json").write_text(content)
    assert not Reader(tmp_path).poll().points


def test_what_transformers_wrote():
    reader = Reader(FIXTURE).poll()
    assert steps(reader) == list(range(2, 31, 2))
    assert [step for tag, step, _ in reader.points if tag == "eval_loss"] == [10, 20, 30]
    assert not reader.read_issues
