"""Processes that write into one file are told apart if a column names them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.json.lines import JsonLines


def log(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path, limit=1000):
    """The points of each stream, except those of the column itself, and the streams that began anew."""
    found = {}
    restarted = []
    batch = JsonLines(path).poll({}, limit)
    batches = [batch]
    while batch.more:
        batches.append(batch := JsonLines(path).poll(json.loads(json.dumps(batch.cursor)), limit))
    for chunk in (chunk.flat for batch in batches for chunk in batch.chunks):
        points = zip((chunk.tags[i] for i in chunk.tag), chunk.step.tolist(), chunk.value, strict=True)
        found.setdefault(chunk.stream, []).extend(point for point in points if point[0] == "loss")
        restarted += [chunk.stream] * chunk.restarted
    return found, restarted, batch.cursor


def losses(begin, count):
    return [("loss", step, step / 8) for step in range(begin, begin + count)]


@pytest.mark.slow
@settings(max_examples=30)
@given(order=st.lists(st.booleans(), min_size=2, max_size=30), limit=st.integers(1, 9))
@pytest.mark.parametrize("column", [{"rank": 0}, {"run_id": "a"}, {"PID": 4711.0}])
def test_however_two_processes_take_turns_each_has_its_own_stream(tmp_path_factory, column, order, limit):
    ((name, first),) = column.items()
    other = first + first if isinstance(first, str) else first + 1
    steps = {first: 0, other: 100}
    rows = []
    for turn in [True, *order]:
        rows.append({name: first if turn else other, "step": steps[first if turn else other], "loss": 0.0})
        rows[-1]["loss"] = rows[-1]["step"] / 8
        steps[rows[-1][name]] += 1
    found, _, _ = read(log(tmp_path_factory.mktemp("log") / "metrics.jsonl", rows), limit)
    assert found.pop("metrics.jsonl") == losses(0, steps[first])
    rest = [points for points in found.values() if points]
    assert rest == ([losses(100, steps[other] - 100)] if steps[other] > 100 else [])
    assert found.keys() <= {f"metrics.jsonl:{name} {int(other) if isinstance(other, float) else other}"}


def test_a_file_that_began_anew_began_anew_for_all(tmp_path):
    rows = [{"rank": rank, "step": step, "loss": 1.0} for step in range(3) for rank in (0, 1)]
    path = log(tmp_path / "metrics.jsonl", rows)
    *_, cursor = read(path)
    log(path, [*rows[1:3], {"rank": 2, "step": 0, "loss": 1.0}])
    batch = JsonLines(path).poll(cursor, 1000)
    assert {chunk.stream: chunk.restarted for chunk in batch.chunks} == {
        "metrics.jsonl": True,
        "metrics.jsonl:rank 0": False,
        "metrics.jsonl:rank 2": False,
    }


@pytest.mark.parametrize("rank", [[0.5, 1.5], [True, False], ["x" * 200, "y" * 200]])
def test_what_names_no_process(tmp_path, rank):
    rows = [{"rank": rank[i % 2], "step": i, "loss": i / 8} for i in range(20)]
    path = log(tmp_path / "metrics.jsonl", rows)
    assert read(path)[0] == {"metrics.jsonl": losses(0, 20)}


@pytest.mark.slow
def test_a_metric_of_that_name_ends_the_search_for_processes(tmp_path):
    path = log(tmp_path / "metrics.jsonl", [{"rank": i, "step": i, "loss": i / 8} for i in range(1000)])
    found, _, _ = read(path)
    assert len(found) < 100
    assert found["metrics.jsonl"][-900:] == losses(100, 900)
    assert all(before[1] < after[1] for before, after in pairwise(found["metrics.jsonl"]))


def test_settings_belong_to_the_process_that_states_them(tmp_path):
    rows = [
        {"run": "a", "step": 0, "loss": 1.0},
        {"run": "b", "config": {"lr": 0.5}},
        {"run": "b", "step": 0, "loss": 1.0},
    ]
    batch = JsonLines(log(tmp_path / "metrics.jsonl", rows)).poll({}, 100)
    assert {chunk.stream: dict(chunk.config) for chunk in batch.chunks} == {
        "metrics.jsonl": {},
        "metrics.jsonl:run b": {"lr": 0.5},
    }


def test_a_column_tells_what_is_held_out(tmp_path):
    rows = [
        {"Phase": "train", "epoch": 1, "loss": 2.0, "time": 1e9},
        {"Phase": "Val", "epoch": 1, "loss": 3.0, "val_acc": 0.5, "time": 1e9},
        {"Phase": "cooldown", "epoch": 2, "loss": 1.0, "time": 1e9},
    ]
    (chunk,) = JsonLines(log(tmp_path / "metrics.jsonl", rows)).poll({}, 100).chunks
    tags = [chunk.tags[i] for i in chunk.tag]
    assert [(tag, value) for tag, value in zip(tags, chunk.value, strict=True) if tag != "epoch"] == [
        ("loss", 2.0),
        ("val/loss", 3.0),
        ("val_acc", 0.5),
        ("loss", 1.0),
    ]
    assert chunk.step.tolist() == [1, 1, 1, 1, 1, 2, 2]
    assert set(chunk.time) == {1e9}


def test_a_validation_that_counts_its_own_batches_belongs_to_the_last_step(tmp_path):
    rows = [
        row
        for epoch in (1, 2)
        for row in (
            *({"mode": "train", "epoch": epoch, "iter": i, "loss": 1.0} for i in (50, 100)),
            {"mode": "val", "epoch": epoch, "iter": 20, "lr": 0.5, "bbox_mAP": 0.5},
        )
    ]
    (chunk,) = JsonLines(log(tmp_path / "metrics.jsonl", rows)).poll({}, 100).chunks
    points = [(chunk.tags[i], step) for i, step in zip(chunk.tag, chunk.step.tolist(), strict=True)]
    assert [point for point in points if point[0] != "epoch"] == [
        *(("loss", step) for step in (50, 100)),
        ("lr", 100),
        ("val/bbox_mAP", 100),
        *(("loss", step) for step in (150, 200)),
        ("lr", 200),
        ("val/bbox_mAP", 200),
    ]
