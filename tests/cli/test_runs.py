"""`sentinel runs`: what is there and how it stands."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sentinel.replays.listing import list_runs
from sentinel.report.listing import lines

pytestmark = pytest.mark.slow

WANDB = Path(__file__).parents[1] / "sources" / "fixtures" / "wandb"

LOSS = [
    {"step": i, "loss": 1 / (i + 1), "learning_rate": 1e-4, "timestamp": 1.7e9 + i} for i in range(10, 200)
]


@pytest.fixture
def run(tmp_path):
    def write(name, records):
        path = tmp_path / "runs" / name / "metrics.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        for place in (path, path.parent):
            os.utime(place, (1.7e9 + 3600, 1.7e9 + 3600))
        return path

    return write


def listed(sentinel, *words):
    ran = sentinel("runs", "runs", "--format", "json", *words)
    assert ran.status == 0
    return {run["run"]: run for run in json.loads(ran.out)["runs"]}


def test_a_run_is_told_with_what_can_be_judged(sentinel, run):
    run("a", LOSS)
    first, last = sentinel("runs", "runs").out.splitlines()
    assert re.fullmatch(r"a/metrics.jsonl  jsonl, lost, 380 points, judged by \d+ of \d+ that fit", first)
    assert last == "1 run: 1 lost"
    one, _, times, signals, *lacking, _ = sentinel("runs", "runs", "--details").out.splitlines()
    assert one == first
    assert times.startswith("    times: 2023-11-14 22:13:30 UTC to ")
    assert signals == "    signals: learning_rate (learning_rate), loss (loss)"
    assert [line for line in lacking if line.startswith("    no kl: not judged by kl-blowup")]
    assert not [line for line in lacking if "flat-loss-at-init" in line]


def test_as_json_with_settings_and_their_origin(sentinel, run):
    path = run("a", LOSS)
    (path.parent / "args.json").write_text('{"max_steps": 199, "model": {"name": "x"}}')
    os.utime(path.parent / "args.json", (1.6e9, 1.6e9))
    (found,) = listed(sentinel).values()
    assert found["config"]["model.name"] == {"value": "x", "origin": "args.json"}
    assert found["state"] == "finished"
    assert 0 < found["judged_by"] < found["detectors"]
    assert found["state_evidence"] == "step 199 is the last one planned"
    assert found["whole"] is True
    assert {lack["detector"] for lack in found["not_judged"]} >= {"kl-blowup"}


def test_a_plan_that_came_later_than_the_log_is_shown_and_not_believed(sentinel, run):
    path = run("a", LOSS)
    (path.parent / "args.json").write_text('{"max_steps": 199}')
    (found,) = listed(sentinel).values()
    assert found["config"]["max_steps"]["value"] == 199
    assert found["state"] != "finished"


def test_a_run_that_another_goes_on_from_was_preempted(sentinel, run):
    later = [{**record, "timestamp": record["timestamp"] + 500} for record in LOSS]
    logs = {"first": LOSS[:100], "resumed": later[90:], "unrelated": later, "logged seldom": later[5::5]}
    for name, records in logs.items():
        path = run(name, records)
        path.rename(path.parent.parent / f"{name}.jsonl")
    found = listed(sentinel)
    assert {name: one["state"] for name, one in found.items()} == {
        "first.jsonl": "preempted",
        "logged seldom.jsonl": "lost",
        "resumed.jsonl": "lost",
        "unrelated.jsonl": "lost",
    }
    assert found["first.jsonl"]["state_evidence"] == "resumed.jsonl goes on from there"


def test_what_a_run_printed_ended_as_the_record_of_the_same_run_says(sentinel, tmp_path):
    for kind in ("finished", "crashed"):
        directory = tmp_path / "runs" / f"run-20260101_000000-{kind}"
        printed = directory / "files" / "output.log"
        printed.parent.mkdir(parents=True)
        shutil.copy(WANDB / f"run-{kind}.wandb", directory)
        printed.write_text(
            "".join(f"epoch {n} loss: {1 / n:.4f}\n" for n in range(1, 30)) + "training finished"
        )
        os.utime(printed, (1.7e9, 1.7e9))
        found = listed(sentinel)[f"{directory.name}/files/output.log"]
        assert found["state"] == kind, "a part of it finished"
        assert found["state_evidence"].endswith(f"in the exit record of {directory.name}")


def test_a_replay_says_of_a_run_how_it_stands_as_the_listing_does(sentinel, run):
    later = [{**record, "timestamp": record["timestamp"] + 500} for record in LOSS]
    scheduled = [{**record, "learning_rate": 1e-4 * (199 - record["step"]) / 189} for record in LOSS]
    evaluated = [*LOSS[:-20], {"step": 180, "eval_loss": 0.1, "timestamp": LOSS[-20]["timestamp"]}]
    logs = {"first": LOSS[:100], "resumed": later[90:], "scheduled": scheduled, "evaluated": evaluated}
    for name, records in logs.items():
        path = run(name, records)
        path.rename(path.parent.parent / f"{name}.jsonl")
    replayed = json.loads(sentinel("replay", "runs", "--format", "json").out)["runs"]
    states = {run["run"]: (run["state"], run["state_evidence"]) for run in replayed}
    silent = re.compile(r"last written .+? ago")
    said = {run["run"]: (run["state"], run["state_evidence"]) for run in listed(sentinel).values()}
    assert silent.sub("", str(states)) == silent.sub("", str(said))
    assert {state for state, _ in states.values()} == {"preempted", "lost", "finished"}
    assert "the end of its schedule" in states["scheduled.jsonl"][1]


def test_of_many_runs_only_the_beginning_is_read(sentinel, run, monkeypatch):
    monkeypatch.setattr("sentinel.replays.listing._MAX_SCANNED_POINTS", 100)
    run("a", LOSS)
    (found,) = listed(sentinel).values()
    assert found["whole"] is False
    assert 0 < found["points"] < 380
    assert "+ points" in sentinel("runs", "runs").out


def test_broken_settings_are_told_and_text_of_runs_cannot_steer_a_terminal(sentinel, run):
    path = run("a", [{**record, "\x1b[31mloss": 1.0} for record in LOSS])
    (path.parent / "args.json").write_text("{")
    out = sentinel("runs", "runs").out
    assert "unreadable: " in out
    assert "args.json: is no JSON at line 1" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("path", "line"), [("nowhere", "nowhere: no such file"), ("empty", "empty: no log that")]
)
def test_nothing_to_list_gets_one_line(sentinel, tmp_path, path, line):
    (tmp_path / "empty").mkdir()
    ran = sentinel("runs", path)
    assert ran.status == 2
    assert ran.err.startswith(f"sentinel: {line}")


@pytest.mark.long  # several processes
def test_many_runs_are_read_by_several_processes_with_the_same_outcome(sentinel, run, tmp_path):
    for number in range(150):
        run(f"run{number}", LOSS[: 20 + number])
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "log.jsonl").write_text("no JSON\n")
    here = sentinel("runs", "runs", "--format", "json")
    command = [sys.executable, "-m", "sentinel", "runs", "runs", "--format", "json"]
    there = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    silent = re.compile(r"last written .+? ago")
    assert silent.sub("", there.stdout) == silent.sub("", here.out)
    assert len(json.loads(here.out)["read_issues"]) == 1


def test_the_logs_of_one_training_stand_together(sentinel, run):
    better = run("a", LOSS)
    run("b", LOSS)
    (better.parent / "metrics.csv").write_text("step,loss\n1,1.0\n2,1.0\n3,1.0\n")
    documents = json.loads(sentinel("runs", "runs", "--format", "json").out)["runs"]
    ids = [f"{one['source']}:{one['path']}" for one in documents]
    assert [one["training"] for one in documents] == [ids[1], ids[1], ids[2]]
    first, second, third, total = sentinel("runs", "runs").out.splitlines()
    assert first.startswith("a/metrics.jsonl")
    assert second.startswith("  also in a/metrics.csv")
    assert third.startswith("b/metrics.jsonl")
    assert total.startswith("2 runs in 3 logs: ")


@pytest.mark.slow
def test_siblings_are_shown_with_what_differs(sentinel, run):
    for name, rate, seed in ("a", 0.1, 1), ("b", 0.1, 2), ("c", 0.2, 3):
        path = run(name, LOSS)
        settings = {"learning_rate": rate, "seed": seed, "depth": 2}
        (path.parent / "args.json").write_text(json.dumps(settings))
    shown = sentinel("runs", "runs", "--siblings").out.splitlines()
    assert shown[0] == "3 siblings, which differ in learning_rate (0.1, 0.2)"
    assert shown[1:] == [f"  {name}/metrics.jsonl" for name in "abc"]
    (group,) = json.loads(sentinel("runs", "runs", "--siblings", "--format", "json").out)["siblings"]
    assert group["differ"] == {"learning_rate": ["0.1", "0.2"]}
    run("d", LOSS)
    shutil.rmtree("runs/a"), shutil.rmtree("runs/b")
    assert sentinel("runs", "runs", "--siblings").out.startswith("no siblings: ")


def test_on_a_terminal_each_run_has_one_line_and_no_two_read_alike(run, tmp_path):
    long = "a-name-that-goes-on-for-longer-than-a-terminal-is-wide"
    for number in range(3):
        run(f"{long}-{number}", LOSS)
    listing = list_runs([tmp_path / "runs"], {}, (), time.time())
    shown = [text for _, text in lines(listing, False, 80)]
    assert max(map(len, shown)) <= 80
    assert len({*shown}) == len(shown)
    assert all("…" in text for text in shown[:3])
    assert long in next(lines(listing, False))[1], "where nothing is folded, nothing is left out"
