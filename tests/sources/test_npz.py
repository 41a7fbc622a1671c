import shutil
from pathlib import Path

import numpy as np
import pytest

from sentinel.sources import npz
from sentinel.sources.discovery import discover
from tests.sources.reader import Reader

EVALUATIONS = Path(__file__).parent / "fixtures" / "npz" / "stable-baselines"


class NeverUnpickled:
    def __reduce__(self):
        return (pytest.fail, ("it was unpickled",))


def found(directory):
    return [run.path.name for run in discover([directory]).runs]


def test_the_evaluations_of_stable_baselines():
    reader = Reader(EVALUATIONS).poll()
    assert {tag for tag, _, _ in reader.points} == {"eval/mean_reward", "eval/mean_ep_length"}
    with np.load(EVALUATIONS / "evaluations.npz") as arrays:
        means = arrays["results"].mean(axis=1)
        steps = arrays["timesteps"]
    rewards = [(step, float(value)) for tag, step, value in reader.points if tag == "eval/mean_reward"]
    assert rewards == [*zip(steps.tolist(), means.tolist(), strict=True)]
    assert not reader.read_issues


def test_a_further_evaluation_is_all_that_is_new(tmp_path):
    arrays = {"timesteps": [500, 1000], "results": [[1.0, 3.0], [4.0, 6.0]], "ep_lengths": [[1, 3], [4, 6]]}
    np.savez(tmp_path / "evaluations.npz", **arrays)
    reader = Reader(tmp_path).poll()
    count = len(reader.points)
    more = {"timesteps": [1500], "results": [[7.0, 9.0]], "ep_lengths": [[7, 9]]}
    np.savez(tmp_path / "evaluations.npz", **{name: arrays[name] + more[name] for name in arrays})
    reader.poll()
    assert reader.points[count:] == [("eval/mean_reward", 1500, "8.0"), ("eval/mean_ep_length", 1500, "8.0")]
    assert not reader.restarts


def test_a_history_whose_rows_nothing_counts(tmp_path):
    np.savez(tmp_path / "history.npz", train_loss=[2.0, 1.0, 0.5], val_loss=[2.0, 1.5, 1.0])
    np.savez_compressed(tmp_path / "losses.npz", loss=np.linspace(2, 1, 3, dtype=np.float32))
    assert found(tmp_path) == ["history.npz", "losses.npz"]
    assert ("val_loss", 3, "1.0") in Reader(tmp_path).poll().points


def test_arrays_of_other_lengths_and_of_vectors_are_left_out(tmp_path):
    np.savez(
        tmp_path / "metrics.npz",
        step=np.arange(3),
        loss=[3.0, 2.0, 1.0],
        features=np.ones((3, 5)),
        weights=np.ones(7),
        seed=1,
    )
    assert {tag for tag, _, _ in Reader(tmp_path).poll().points} == {"loss"}


def test_an_array_of_objects_is_never_unpickled(tmp_path):
    rows = np.array([NeverUnpickled()], dtype=object)
    np.savez(tmp_path / "metrics.npz", step=np.arange(3), loss=[3.0, 2.0, 1.0], results=rows)
    reader = Reader(tmp_path).poll()
    assert {tag for tag, _, _ in reader.points} == {"loss"}
    assert not reader.read_issues


def test_data_are_no_log(tmp_path):
    np.savez(tmp_path / "train.npz", x=np.ones((4, 3)), y=np.arange(4))
    np.savez(tmp_path / "round_3.npz", arr_0=np.ones(4), arr_1=np.ones((4, 4)))
    np.savez(tmp_path / "shuffled.npz", step=[3, 1, 2, 0, 1, 0], loss=np.ones(6))
    assert not found(tmp_path)


def test_an_archive_that_unfolds_to_too_much_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "MAX_BYTES", 4096)
    np.savez_compressed(tmp_path / "metrics.npz", step=np.arange(1000), loss=np.zeros(1000))
    assert not found(tmp_path)


def test_an_archive_that_is_being_written_waits(tmp_path):
    whole = (EVALUATIONS / "evaluations.npz").read_bytes()
    shutil.copytree(EVALUATIONS, tmp_path / "run")
    reader = Reader(tmp_path / "run").poll()
    count = len(reader.points)
    (tmp_path / "run" / "evaluations.npz").write_bytes(whole[: len(whole) // 2])
    reader.poll()
    assert len(reader.points) == count
    assert not reader.read_issues


def test_an_array_that_is_shorter_than_it_says_is_complained_about(tmp_path):
    path = tmp_path / "metrics.npz"
    np.savez(path, step=np.arange(3), loss=[3.0, 2.0, 1.0])
    path.write_bytes(path.read_bytes().replace(b"'shape': (3,)", b"'shape': (9,)"))
    reader = Reader(tmp_path).poll()
    assert not reader.points
    assert len(reader.read_issues) == 1
    assert f"{path} at array " in reader.read_issues[0]


def test_an_array_that_is_called_after_a_metric_is_a_curve(tmp_path):
    np.save(tmp_path / "ppo_rewards.npy", np.arange(5, dtype=np.int32))
    np.save(tmp_path / "features.npy", np.ones(5))
    np.save(tmp_path / "loss_surface.npy", np.ones((5, 5)))
    np.save(tmp_path / "scores.npy", np.array([NeverUnpickled()], dtype=object))
    assert found(tmp_path) == ["ppo_rewards.npy"]
    reader = Reader(tmp_path).poll()
    assert reader.points == [("ppo_rewards", row + 1, f"{row}.0") for row in range(5)]
    np.save(tmp_path / "ppo_rewards.npy", np.arange(7, dtype=np.int32))
    assert reader.poll().points[5:] == [("ppo_rewards", 6, "5.0"), ("ppo_rewards", 7, "6.0")]


def test_an_array_that_is_being_written_waits(tmp_path):
    path = tmp_path / "rewards.npy"
    np.save(path, np.arange(9.0))
    reader = Reader(tmp_path).poll()
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    assert len(reader.poll().points) == 9
    assert not reader.read_issues


def test_many_arrays_are_data(tmp_path):
    for number in range(npz.MAX_CURVES + 1):
        np.save(tmp_path / f"score_{number}.npy", np.arange(9.0))
    assert not found(tmp_path)
