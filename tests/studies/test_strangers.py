"""The harness, with a few logs of our own instead of strangers'."""

import json
import shutil
from pathlib import Path

import pytest

from studies.strangers import __main__ as command
from studies.strangers.judge import Outcome, Said, judged
from studies.strangers.labels import Label, read
from studies.strangers.misses import misses
from studies.strangers.page import details, page

SAMPLES = Path(__file__).parents[2] / "sample_logs"


def said(detector, kind="", *, loud=True):
    return Said(detector, kind, loud, f"{detector} rang")


def outcome(path, *incidents, healthy=False, expect=({"loss-spike"},), **others):
    label = Label(
        kind=path.split("/")[0],
        path=path,
        repository=path.split("/")[1],
        fold=others.pop("fold", 0),
        healthy=healthy,
        expect=[] if healthy else [frozenset(group) for group in expect],
        accepted=frozenset() if healthy else frozenset().union(*expect),
        catalogue=frozenset(),
        info_is_enough=False,
        may_be_unread=False,
        notes="",
    )
    return Outcome(label, **{"read": True, "length": 50, "said": incidents, "silent": {}} | others)


@pytest.fixture
def folder(tmp_path):
    labels = {
        "logs/faulty/a": {"healthy": False, "expect": [["kl-blowup"]], "fold": 3, "catalogue": ["R2"]},
        "logs/healthy/b": {"healthy": True, "source_repo": "somebody/else"},
        "logs/empty/c": {"healthy": None, "may_be_unread": True},
    }
    for path, label in labels.items():
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "label.json").write_text(json.dumps(label))
    shutil.copytree(SAMPLES / "kl-blowup", tmp_path / "logs/faulty/a/run")
    shutil.copytree(SAMPLES / "healthy-rl", tmp_path / "logs/healthy/b/run")
    return tmp_path


@pytest.mark.slow
def test_a_log_belongs_to_the_label_above_it(folder):
    empty, faulty, healthy = judged(folder, [*read(folder)])
    assert (faulty.found, faulty.wanted, faulty.label.fold) == (1, 1, 3)
    assert {name.split(":")[0] for name in faulty.hits} == {"kl-blowup"}
    assert (healthy.label.repository, healthy.wrong) == ("somebody/else", [])
    assert healthy.length > 10
    assert not empty.read


@pytest.mark.long
def test_the_command_writes_tables_and_data(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(command, "LIKELIHOODS", tmp_path / "likelihoods.toml")
    monkeypatch.setattr(command, "DETAILS", tmp_path / "details")
    command.main(folder, None)
    assert "| logs | 1 | 1 | 1.000 | 1.000 | 1.000 | 0.000 | 0 |" in capsys.readouterr().out
    assert "somebody" not in (tmp_path / "page.md").read_text()
    assert "somebody/else" in (tmp_path / "details" / "strangers.md").read_text()
    rows = json.loads((tmp_path / "details" / "strangers.json").read_text())
    assert [row["label"]["path"] for row in rows] == ["logs/empty/c", "logs/faulty/a", "logs/healthy/b"]


def test_a_folder_without_labels_is_told_in_one_line(tmp_path):
    with pytest.raises(SystemExit) as ended:
        command.main(tmp_path / "nothing", None)
    assert "nothing: no label.json below; make strangers FOLDER=" in str(ended.value)


def test_only_what_sinks_hear_of_counts():
    one = outcome("logs/a", said("loss-spike", "single", loud=False), said("reward-collapse", "lost"))
    assert (one.found, one.found_with_info, one.hits) == (0, 1, frozenset())
    assert [wrong.name for wrong in one.wrong] == ["reward-collapse: lost"]


def test_a_miss_is_told_in_one_line_without_its_name():
    runs = [
        outcome("logs/a", said("loss-spike", "single", loud=False), said("reward-collapse", "lost")),
        outcome("logs/b", silent={"loss-spike": "lacks loss"}, expect=[{"loss-spike"}]),
        outcome("logs/c", silent={"loss-spike": "lacks loss"}, expect=[{"loss-spike", "loss-plateau"}]),
        outcome("logs/d", read=False, length=0),
        outcome("logs/e", said("loss-spike")),
    ]
    assert [line for line in misses(runs).splitlines() if line.startswith("| logs")] == [
        "| logs | 50 | `loss-spike` | as info | `reward-collapse: lost` |",
        "| logs | 50 | `loss-spike` | not in the log: lacks loss |  |",
        "| logs | 50 | `loss-plateau`, `loss-spike` | not solved |  |",
        "| logs | 0 | `loss-spike` | not in the log: no scalar |  |",
    ]


def test_each_repository_counts_alike():
    hit = said("loss-spike")
    miss = said("loss-plateau")
    many = [outcome(f"logs/a/{index}", hit) for index in range(3)]
    assert "| logs | 4 | 0 | 0.750 | 0.500 |" in page([*many, outcome("logs/b/0", miss)])


def test_healthy_runs_are_counted_by_length():
    runs = [outcome(f"logs/a/{length}", said("x"), healthy=True, length=length) for length in (10, 11, 10**6)]
    assert "| logs | 1 of 1 | 1 of 1 | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 0 | 1 of 1 |" in page(runs)


def test_the_fold_that_is_left_out_is_counted_but_not_named():
    runs = [outcome("logs/seen/0", fold=1), outcome("logs/hidden/0", fold=2)]
    text = details(runs, left_out=2)
    assert "| logs | 2 | 0 |" in text
    assert "logs/seen/0" in text
    assert "hidden" not in text
