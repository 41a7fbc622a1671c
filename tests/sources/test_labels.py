"""What trackers call a run stands beside its directory, in logs that the trackers themselves wrote."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.sinks.message import message
from sentinel.sinks.webhook import webhook_body
from sentinel.sources.discovery import discover
from sentinel.sources.identity import Label, RunIdentity
from sentinel.testing.sinks import NOTIFICATION

FIXTURES = Path(__file__).parent / "fixtures"


def labels(path: Path) -> dict[str, Label]:
    return {run.path.name: run.source.poll({}, 1000).label for run in discover([path]).runs}


def test_wandb_has_a_name_where_somebody_gave_one():
    found = labels(FIXTURES / "wandb")
    assert found["run-named.wandb"] == Label("swift sun 3", "fixture")
    assert found["run-finished.wandb"] == Label("", "fixture")


def test_mlflow_names_run_and_experiment_in_its_file_store():
    assert {*labels(FIXTURES / "mlflow" / "mlruns").values()} == {Label("one", "demo"), Label("two", "demo")}


def test_mlflow_names_run_and_experiment_in_its_database(tmp_path):
    with sqlite3.connect(tmp_path / "mlflow.db") as connection:
        connection.executescript((FIXTURES / "mlflow" / "mlflow.sql").read_text())
    connection.close()
    assert {*labels(tmp_path).values()} == {Label("one", "demo"), Label("two", "demo")}
    (run, *_) = discover([tmp_path]).runs
    assert run.source.poll(run.source.poll({}, 1000).cursor, 1000).label == Label()


def test_swanlab_names_run_and_project_in_both_of_its_formats():
    assert [*labels(FIXTURES / "swanlab").values()] == [Label("one", "demo")] * 2


def test_a_copy_of_a_store_without_its_names_has_no_label(tmp_path):
    store = shutil.copytree(FIXTURES / "mlflow" / "mlruns", tmp_path / "mlruns")
    for number, meta in enumerate(sorted(store.rglob("meta.yaml"))):
        meta.write_bytes((b"name: [", b"- a list", b"\x00\xff")[number % 3])
    assert {*labels(store).values()} == {Label()}


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        (Label(), "run-5f3a"),
        (Label("swift-sun-3", "rlhf"), "run-5f3a (swift-sun-3 in rlhf)"),
        (Label("swift-sun-3", ""), "run-5f3a (swift-sun-3)"),
        (Label("", "rlhf"), "run-5f3a (in rlhf)"),
        (Label("run-5f3a", "run"), "run-5f3a"),
        (Label.of("two\nlines \udcff", None), "run-5f3a (two lines ?)"),
    ],
)
def test_a_label_repeats_no_name(label, shown):
    assert label.beside("run-5f3a") == shown


def test_an_alert_and_its_json_name_the_run_as_its_tracker_does():
    identity = RunIdentity("run-5f3a", "/runs/run-5f3a", label=Label("swift-sun-3", "rlhf"))
    notification = replace(NOTIFICATION, run=identity)
    assert " in run-5f3a (swift-sun-3 in rlhf)" in message(notification).lines[0].text
    body = webhook_body(notification, 0.0)["run"]
    assert (body["run"], body["display_name"], body["project"]) == ("run-5f3a", "swift-sun-3", "rlhf")
