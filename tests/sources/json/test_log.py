"""JSON documents that are logs, and those that are not."""

import io
import json
from pathlib import Path

from sentinel.sources.discovery import discover
from sentinel.sources.general import document_log
from sentinel.sources.json import documents
from sentinel.sources.json.log import FORMAT
from tests.sources.reader import Reader

FIXTURE = Path(__file__).parents[1] / "fixtures" / "json" / "keras"


def test_lists_by_name_are_columns(tmp_path):
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"loss": [3.0], "val_loss": [4.0], "best": 1}))
    reader = Reader(tmp_path).poll()
    path.write_text(json.dumps({"loss": [3.0, 2.0], "val_loss": [4.0, None], "lr": [1], "best": 1}))
    reader.poll()
    assert [p for p in reader.points if p[0] == "loss"] == [("loss", 1, "3.0"), ("loss", 2, "2.0")]
    assert not reader.restarts


def test_nulls_before_numbers_stand_for_rows_without_a_measurement(tmp_path):
    history = {"loss": [3.0, 2.0, 1.0, 0.5], "val_loss": [4.0, None, 3.0, None], "acc": [0.5, 0.5, 0.5, None]}
    (tmp_path / "history.json").write_text(json.dumps(history))
    points = Reader(tmp_path).poll().points
    measured = [("val_loss", 1, "4.0"), ("val_loss", 3, "3.0")]
    assert [point for point in points if point[0] == "val_loss"] == measured
    assert [point for point in points if point[2] == "nan"] == [("acc", 4, "nan")]


def test_a_list_of_entries_has_their_steps(tmp_path):
    entries = [{"step": 5, "loss": 2.0}, "done", {"step": 10, "eval_loss": 3.0, "lr": float("nan")}]
    (tmp_path / "training_metrics.json").write_text(json.dumps(entries))
    assert Reader(tmp_path).poll().points == [("loss", 5, "2.0"), ("eval_loss", 10, "3.0"), ("lr", 10, "nan")]


def test_lists_that_name_a_part_of_the_data_are_of_the_metric_that_the_file_names(tmp_path):
    losses = {part: [1 / n for n in range(1, 30)] for part in ("train", "val")}
    (tmp_path / "losses.json").write_text(json.dumps(losses))
    tags = {tag for tag, _, _ in Reader(tmp_path).poll().points}
    assert tags == {"losses train", "losses val"}


def test_which_files_count(tmp_path):
    contents = {
        "yes/history.json": '{"loss": [1, 2]}',
        "yes/train_history.json": '{\n  "epoch": [\n    1\n  ],\n  "acc": [\n    0.5\n  ]\n}',
        "yes/training_metrics.json": '[{"loss": 1, "step": 1}]',
        "yes/metrics.json": '[\n{"step": 1, "x": 2}\n]',
        "yes/log_history.json": '[{"epoch": 1, "learning_rate": 0.1',
        "yes/wrapped_history.json": '{"model": "a", "history": [{"epoch": 1, "loss": 0.5}]}',
        "yes/training_logs.json": '{"best_metric": null, "log_history": [{"loss": 2, "step": 5}]}',
        "yes/parts_log.json": '{"train": {"loss": [0.5, 0.4]}, "val": {"loss": [0.6, 0.5]}}',
        "yes/training_stats.json": '{"episode_rewards": [1.5, 2.5',
        "yes/pandas_log.json": '{"epoch": {"0": 1, "1": 2}, "loss": {"0": 0.5, "1": 0.4}}',
        "yes/seed7.json": '[{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.4}]',
        "no/package.json": '{"loss": [1, 2]}',
        "no/config.json": '{"step": 1, "loss": 2}',
        "no/train_results.json": '{"epoch": 3.0, "train_loss": 2.0}',
        "no/all_results.json": '{"epoch": 3.0, "train_loss": 2.0}',
        "no/results.json": '{"resnet": {"accuracy": [0.5, 0.6]}}',
        "no/training_data.json": '[{"prompt": "loss of a step", "step": "one"}]',
        "no/metrics_summary.json": '{"accuracy": [0.5, 0.6]}',
        "no/logs.json": '["step", "loss"]',
        "no/empty/metrics.json": "",
    }
    for name, content in contents.items():
        path = tmp_path / name.partition("/")[2]
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    runs = [run for run in discover([tmp_path]).runs if run.format == FORMAT]
    found = {str(run.path.relative_to(tmp_path)) for run in runs}
    assert found == {name.partition("/")[2] for name in contents if name.startswith("yes/")}


def test_the_forms_of_documents(tmp_path):
    points = [("loss", 5, "2.0"), ("loss", 10, "1.5")]
    entries = [{"step": 5, "loss": 2.0}, {"step": 10, "loss": 1.5}]
    documents = [
        entries,
        {"best_metric": None, "global_step": 10, "max_steps": 20, "log_history": entries},
        {"model": {"layers": 2}, "history": entries},
        {"history": {"step": [5, 10], "loss": [2.0, 1.5]}},
        {"step": {"0": 5, "1": 10}, "loss": {"0": 2.0, "1": 1.5}},
    ]
    for i, document in enumerate(documents):
        path = tmp_path / str(i) / "training_log.json"
        path.parent.mkdir()
        path.write_text(json.dumps(document))
        reader = Reader(path).poll()
        assert reader.points == points
        assert reader.batch.config == ({"max_steps": 20} if i == 1 else {})


def test_lists_of_several_lengths_and_rows_below_another_name(tmp_path):
    document = {
        "args": {"sizes": [4, 8]},
        "episode_rewards": [1.0, 2.0, 3.0, 4.0],
        "validation": {"history": [{"episode": 2, "mean_reward": 1.5}, {"episode": 4, "mean_reward": 3.5}]},
        "q_values": [0.5, 0.75],
    }
    (tmp_path / "training_metrics.json").write_text(json.dumps(document))
    reader = Reader(tmp_path).poll()
    assert [point for point in reader.points if point[0] == "episode_rewards"][-1][1] == 4
    assert [point for point in reader.points if point[0] == "validation/mean_reward"] == [
        ("validation/mean_reward", 2, "1.5"), ("validation/mean_reward", 4, "3.5"),
    ]  # fmt: skip
    assert {tag for tag, _, _ in reader.points} == {"episode_rewards", "validation/mean_reward", "q_values"}


def test_lists_that_a_watch_of_an_earlier_version_began_are_read_again(tmp_path):
    """It made rows of the lists and counted these; a version between read nothing from such a cursor on."""
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"loss": [3.0, 2.0, 1.0], "val_loss": [4.0, 3.0, 2.0]}))
    (run,) = discover([tmp_path]).runs
    begun = {"entries": 2, "last": "e4a6a0577479b2b4", "records": {}, "facts": {}, "is_general": False}
    for cursor in (begun, {**begun, "entries": 0, "restarted": True}):
        reader = Reader(tmp_path)
        reader.cursors[run.id] = json.dumps(cursor)
        assert reader.poll().restarts == 1
        assert [value for tag, _, value in reader.points if tag == "loss"] == ["3.0", "2.0", "1.0"]
        path.write_text(json.dumps({"loss": [3.0, 2.0, 1.0, 0.5], "val_loss": [4.0, 3.0, 2.0, 1.0]}))
        assert reader.poll().points[-2:] == [("loss", 4, "0.5"), ("val_loss", 4, "1.0")]
        assert reader.restarts == 1
        path.write_text(json.dumps({"loss": [3.0, 2.0, 1.0], "val_loss": [4.0, 3.0, 2.0]}))


def test_entries_that_become_lists_are_another_training(tmp_path):
    path = tmp_path / "history.json"
    path.write_text(json.dumps([{"epoch": 1, "loss": 9.0}]))
    reader = Reader(tmp_path).poll()
    path.write_text(json.dumps({"loss": [3.0, 2.0]}))
    assert reader.poll().points[-2:] == [("loss", 1, "3.0"), ("loss", 2, "2.0")]
    assert reader.restarts == 1


def test_lists_that_are_too_large_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(document_log, "LARGEST", 1 << 20)
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"loss": [2.0] * (1 << 18)}))
    reader = Reader(tmp_path).poll().poll()
    assert reader.read_issues == [f"{path}: is larger than 1 MiB and is not read"]
    path.write_text(json.dumps({"loss": [3.0, 2.0]}))
    assert reader.poll().points == [("loss", 1, "3.0"), ("loss", 2, "2.0")]


def test_settings_and_final_figures_beside_the_columns(tmp_path):
    document = {"train_losses": [3.0, 2.0], "metrics": {"psnr": 28.5}, "config": {"epochs": 2, "sizes": [4]}}
    (tmp_path / "history.json").write_text(json.dumps(document))
    reader = Reader(tmp_path).poll()
    assert reader.points == [("train_losses", 1, "3.0"), ("train_losses", 2, "2.0")]
    assert reader.batch.config == {"epochs": 2, "sizes.0": 4}


def test_parts_of_a_training_by_name(tmp_path):
    document = {"train": {"loss": [0.5, 0.4]}, "val": {"loss": [0.6, 0.5]}}
    (tmp_path / "log.json").write_text(json.dumps(document))
    assert Reader(tmp_path).poll().points == [
        ("train/loss", 1, "0.5"), ("val/loss", 1, "0.6"), ("train/loss", 2, "0.4"), ("val/loss", 2, "0.5"),
    ]  # fmt: skip


def test_what_keras_kept():
    reader = Reader(FIXTURE).poll()
    assert {tag for tag, _, _ in reader.points} == {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert [step for tag, step, _ in reader.points if tag == "loss"] == list(range(1, 9))


def test_a_document_that_a_merge_left_in_conflict(tmp_path):
    ours = json.dumps([{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}], indent=1)
    theirs = json.dumps([{"step": 9, "loss": 9.0}], indent=1)
    path = tmp_path / "training_log.json"
    path.write_text(f"<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> main\n")
    assert Reader(path).poll().points == [("loss", 1, "0.5"), ("loss", 2, "0.25")]
    path.write_text(
        ours.replace('  "loss": 0.25', '<<<<<<< HEAD\n"loss": 0.25\n=======\n"loss": 7\n>>>>>>> main\n')
    )
    assert Reader(path).poll().points == [("loss", 1, "0.5"), ("loss", 2, "0.25")]


def test_a_document_in_utf_16(tmp_path):
    path = tmp_path / "training_log.json"
    path.write_bytes(json.dumps([{"step": 1, "loss": 0.5}]).encode("utf-16"))
    assert Reader(path).poll().points == [("loss", 1, "0.5")]


def test_a_document_that_is_saved_in_the_middle_of_a_reading_is_no_broken_one(tmp_path, monkeypatch):
    """The reading has the entries before, and the end of the document after."""
    path = tmp_path / "history.json"

    class Saving(io.FileIO):
        def read(self, size):
            before = super().read(size)
            path.write_text(json.dumps({"loss": [3.0, *range(20)]}))
            return before + super().read(size)

    path.write_text(json.dumps({"loss": [3.0]}))
    monkeypatch.setattr(documents, "open_log", Saving)
    assert documents.load(path) is None
    monkeypatch.undo()
    assert documents.load(path) == {"loss": [3.0, *range(20)]}
