"""Runs that keep a file for each metric, as their libraries lay them out."""

from pathlib import Path

import pytest

from sentinel.sources.discovery import discover
from tests.sources.reader import Reader

DVCLIVE = {
    "dvclive/metrics.json": '{"train": {"loss": 0.25}, "step": 2}',
    "dvclive/plots/metrics/lr.tsv": "timestamp\tstep\tlr\n1767225600000\t1\t0.1\n1767225601000\t2\t0.05\n",
    "dvclive/plots/metrics/train/loss.tsv": "timestamp\tstep\tloss\n"
    "1767225600000\t1\t0.5\n1767225601000\t2\t0.25\n",
}
TORCHRL = {
    "csv_logs/dqn/scalars/train/reward.csv": "100,1.5\n200,2.5\n",
    "csv_logs/dqn/scalars/lr.csv": "100,0.1\n200,0.05\n",
    "csv_logs/dqn/texts/hparams0.txt": "lr: 0.1",
    "csv_logs/dqn/videos/.keep": "",
}
DEEPSPEED = {
    "job/Train_Samples_train_loss.csv": "step,train_loss\n32,0.5\n64,0.25\n",
    "job/Train_Samples_lr.csv": "step,lr\n32,0.1\n64,0.05\n",
}

CATBOOST = {
    "job/learn_error.tsv": "iter\tLogloss\n0\t0.75\n1\t0.5\n",
    "job/test_error.tsv": "iter\tLogloss\n0\t1.75\n1\t1.5\n",
    "job/time_left.tsv": "iter\tPassed\tRemaining\n0\t1\t9\n",
}


def lay(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize("limit", [1, 1000])
@pytest.mark.parametrize(
    ("files", "run", "points"),
    [
        (
            DVCLIVE,
            "dvclive/plots/metrics",
            [("lr", 1, "0.1"), ("lr", 2, "0.05"), ("train/loss", 1, "0.5"), ("train/loss", 2, "0.25")],
        ),
        (
            CATBOOST,
            "job",
            [
                ("Logloss", 0, "0.75"),
                ("Logloss", 1, "0.5"),
                ("test/Logloss", 0, "1.75"),
                ("test/Logloss", 1, "1.5"),
            ],
        ),
        (
            TORCHRL,
            "csv_logs/dqn/scalars",
            [
                ("lr", 100, "0.1"),
                ("lr", 200, "0.05"),
                ("train/reward", 100, "1.5"),
                ("train/reward", 200, "2.5"),
            ],
        ),
        (
            DEEPSPEED,
            "job",
            [
                *(("Train/Samples/lr", 32, "0.1"), ("Train/Samples/lr", 64, "0.05")),
                *(("Train/Samples/train_loss", 32, "0.5"), ("Train/Samples/train_loss", 64, "0.25")),
            ],
        ),
    ],
    ids=["dvclive", "catboost", "torchrl", "deepspeed"],
)
def test_the_files_of_one_run(tmp_path, files, run, points, limit):
    lay(tmp_path, files)
    assert [one.path for one in discover([tmp_path]).runs] == [tmp_path / run]
    reader = Reader(tmp_path).poll(limit)
    assert reader.points == points
    assert not reader.read_issues


def test_a_metric_that_appears_and_one_that_grows(tmp_path):
    lay(tmp_path, DVCLIVE)
    reader = Reader(tmp_path)
    before = len(reader.poll().points)
    metrics = tmp_path / "dvclive" / "plots" / "metrics"
    (metrics / "acc.tsv").write_text("step\tacc\n3\t0.9\n")
    with (metrics / "lr.tsv").open("a") as file:
        file.write("1767225602000\t3\t0.01\n")
    assert reader.poll().points[before:] == [("acc", 3, "0.9"), ("lr", 3, "0.01")]


def test_a_directory_of_tables_called_scalars_is_no_run(tmp_path):
    lay(tmp_path, {"scalars/prices.csv": "100,1.5\n200,2.5\n"})
    assert not discover([tmp_path]).runs


def test_a_test_of_catboost_that_a_person_names_is_no_training(tmp_path):
    lay(tmp_path, CATBOOST)
    (run,) = discover([tmp_path / "job" / "test_error.tsv"]).runs
    assert (run.path.name, run.part) == ("test_error.tsv", "test")
