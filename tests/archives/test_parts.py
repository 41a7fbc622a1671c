"""Parts hold together what belongs together, and move little when an archive changes."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from sentinel.archives.archive import origin_of
from sentinel.archives.judging import Judge
from sentinel.archives.parts import ListedFile, Part, parts, unit_of
from sentinel.archives.record import unpacked_record
from sentinel.common.days import DAY_SECONDS
from sentinel.sources.discovery import discover
from tests.archives.conftest import NOW, config
from tests.tools.docs import ROOT


@pytest.mark.parametrize(
    ("directory", "prefix"),
    [
        ("/runs/a", "/runs/a/"),
        ("/runs/a/checkpoint-500", "/runs/a/"),
        ("/runs/a/train", "/runs/a/"),
        ("/runs/a/validation", "/runs/a/"),
        ("/runs/a/loss_val", "/runs/a/loss_"),
        ("/runs/a/loss_train", "/runs/a/loss_"),
        ("/runs/a/1700000000.123", "/runs/a/"),
        ("/runs/a/a", "/runs/a/"),
        ("/runs/wandb/run-20260101_000000-abc/files", "/runs/wandb/run-20260101_000000-abc/"),
        (
            "/mlruns/0/0123456789abcdef0123456789abcdef/metrics/gpu",
            "/mlruns/0/0123456789abcdef0123456789abcdef/",
        ),
        ("/runs/dvclive/plots/metrics/deep/er", "/runs/dvclive/"),
        ("train", "train/"),
    ],
)
def test_a_unit_is_told_by_names(directory, prefix):
    assert unit_of(directory) == prefix


_NAMES = st.sampled_from(
    ["a", "b", "train", "val", "loss_val", "loss_train", "loss_of", "checkpoint-1", "files"]
)
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)


@pytest.mark.slow
@given(st.lists(st.tuples(_PATHS, st.sampled_from(["x.csv", "y.jsonl"])), unique=True))
def test_each_file_is_in_one_part_and_a_unit_in_one_piece(found):
    files = [ListedFile(f"/{directory}", name, "") for directory, name in found]
    files.sort(key=lambda file: f"{file.directory}/{file.name}")  # as a bucket lists them
    made = [*parts(files, "")]
    there = [(folder.path, name) for part in made for folder in part.folders for name in folder.names]
    assert sorted(there) == sorted((file.directory, file.name) for file in files)
    part_of = {folder.path: part.key for part in made for folder in part.folders}
    assert len(part_of) == sum(len(part.folders) for part in made)
    units = {}
    for directory, key in part_of.items():
        units.setdefault(unit_of(directory), set()).add(key)
    assert all(len(keys) == 1 for keys in units.values())


def test_a_new_directory_moves_only_the_parts_around_it():
    files = [ListedFile(f"/runs/{number:04}", "metrics.jsonl", "1") for number in range(2400)]
    before = {part.key for part in parts(files, "")}
    after = {part.key for part in parts(files[:300] + files[301:], "")}
    assert len(before) > 10
    assert len(before - after) <= 2
    assert {part.key for part in parts(files, "other")}.isdisjoint(before)
    changed = [file._replace(stamp="2") if number == 7 else file for number, file in enumerate(files)]
    assert len(before - {part.key for part in parts(changed, "")}) == 1


@pytest.mark.long  # judges the logs several times
@settings(max_examples=5, deadline=None)
@given(st.data())
def test_any_partition_gives_the_same_runs_and_incidents(data):
    tree = ROOT / "sample_logs"
    judge = Judge(origin_of([tree]), config(tree), NOW)
    units = [*parts(judge.origin.listed([]), "")]
    folders = [folder for part in units for folder in part.folders]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(folders) - 1))))
    found = {}
    for begin, end in zip([0, *cuts], [*cuts, len(folders)], strict=True):
        piece = Part(folders[begin:end], "", 0)
        found |= {one.id: one for one in map(unpacked_record, judge(piece))}
    assert set(found) == {run.id for run in discover([tree]).runs}
    together = judge(Part(folders, "", 0))
    assert {one.id: one for one in map(unpacked_record, together)} == found


@pytest.mark.slow
def test_the_days_of_a_log_are_kept(tmp_path):
    log = tmp_path / "a" / "metrics.jsonl"
    log.parent.mkdir()
    times = (1.7e9, 1.7e9 + 9 * DAY_SECONDS)
    log.write_text("".join(json.dumps({"step": int(t), "timestamp": t, "loss": 1.0}) + "\n" for t in times))
    (part,) = parts((judge := Judge(origin_of([tmp_path]), config(tmp_path), NOW)).origin.listed([]), "")
    (kept,) = judge(part)
    assert len(unpacked_record(kept).overview.metadata.extent.days()) == 2
