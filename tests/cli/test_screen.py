"""`sentinel PATH`: one screen about many logs."""

import json
import math
import os
import re
import shutil

import pytest

from tests.tools.docs import ROOT

pytestmark = pytest.mark.slow

SAMPLES = ROOT / "sample_logs"


@pytest.mark.long
def test_a_path_without_a_command_gives_one_screen_with_the_costliest_runs(sentinel):
    ran = sentinel(SAMPLES / "kl-blowup", SAMPLES / "loss-scale-collapse", SAMPLES / "healthy-rl")
    first, *rest = ran.out.splitlines()
    assert first.startswith("3 runs read in ")
    assert first.endswith(": 2 critical, 0 with a warning, 1 quiet")
    assert any(line.startswith("    kl-blowup: the KL to the reference is") for line in rest)
    assert rest.index("Critical:") < rest.index("Next:")
    assert len(rest) < 24
    assert ran.status == 0


def test_two_logs_of_one_training_are_one_run(sentinel, sick_run):
    rows = [json.loads(line) for line in (sick_run / "metrics.jsonl").read_text().splitlines()]
    table = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (sick_run / "metrics.csv").write_text("\n".join([*table, ""]))
    screen = sentinel(sick_run).out
    assert screen.startswith("1 run in 2 logs read in ")
    assert screen.splitlines()[0].endswith(": 1 critical, 0 with a warning, 0 quiet")
    assert screen.count("kl-blowup: ") == 1
    verdict = r"^1 run in 2 logs, 400 points: 2 incidents in 1 run$"
    assert re.search(verdict, sentinel("replay", sick_run).out, re.MULTILINE)
    markdown = sentinel("replay", sick_run, "--format", "markdown").out
    assert markdown.startswith("**2 incidents (2 critical) in 1 of 1 run in 2 logs with 400 points.**")


@pytest.mark.long
def test_a_training_that_one_of_its_logs_ends_did_not_go_silent(sentinel, tmp_path):
    rows = [{"step": step, "loss": 1 + step % 7 / 10} for step in range(100)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "metrics.csv").write_text(
        "step,loss\n" + "".join("{step},{loss}\n".format(**row) for row in rows)
    )
    for file in tmp_path.iterdir():
        os.utime(file, (1e9, 1e9))
    assert "1 ended, with nothing in the log that says how" in sentinel(tmp_path).out
    with (tmp_path / "metrics.jsonl").open("a") as log:
        log.write('{"step": 100, "done": true}\n')
    os.utime(tmp_path / "metrics.jsonl", (1e9, 1e9))
    screen = sentinel(tmp_path).out
    assert screen.startswith("1 run in 2 logs")
    assert "ended, with nothing" not in screen
    assert sentinel("runs", tmp_path).out.endswith("1 run in 2 logs: 1 finished\n")


def test_a_quiet_run_is_said_to_be_quiet_and_the_next_commands_are_named(sentinel):
    screen = sentinel(SAMPLES / "healthy-rl").out
    assert ": no trouble found" in screen
    assert f"sentinel watch {SAMPLES / 'healthy-rl'}" in screen


def test_without_arguments_the_paths_of_the_configuration_are_read(sentinel, sick_run):
    assert "kl-blowup" in sentinel().out


def test_without_a_configuration_the_current_directory_is_read(sentinel, tmp_path):
    shutil.copytree(SAMPLES / "kl-blowup", tmp_path / "here")
    assert sentinel().out.startswith("1 run read in ")


def test_where_no_log_lies_one_line_says_how_to_go_on(sentinel):
    ran = sentinel()
    assert ran.status == 2
    assert ran.err.count("\n") == 1
    assert "name a directory of runs, or see `sentinel --help`" in ran.err


def test_a_mistyped_command_is_not_taken_for_a_path(sentinel):
    ran = sentinel("wach")
    assert ran.status == 2
    assert "No such command 'wach'" in ran.err


def kl_runs(place, last_kl):
    """Runs whose KL leaves the far behind, by their names and how large it becomes."""
    for name, kl in last_kl.items():
        (place / name).mkdir(parents=True)
        rows = [{"step": step, "kl": 0.01 if step < 100 else kl} for step in range(200)]
        (place / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_siblings_with_the_same_trouble_are_shown_once(sentinel, tmp_path):
    kl_runs(tmp_path, {f"seed-{seed}": 3.0 for seed in range(4)})
    screen = sentinel(tmp_path).out
    assert screen.count("kl-blowup: ") == 1
    assert " and 3 runs like it" in screen


def test_a_run_that_goes_on_stands_before_one_that_is_over(sentinel, tmp_path):
    kl_runs(tmp_path, {"over": 3.0})
    os.utime(tmp_path / "over" / "metrics.jsonl", (1e9, 1e9))
    shutil.copytree(SAMPLES / "non-finite-metric", tmp_path / "past")
    (tmp_path / "now").mkdir()
    rows = [{"step": step, "loss": 1.0 if step < 50 else math.nan} for step in range(60)]
    (tmp_path / "now" / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = sentinel(tmp_path).out.splitlines()
    first = lines[lines.index("Critical:") + 1]
    assert first.startswith("  now/metrics.jsonl")
    assert first.endswith("still running")


def test_a_long_name_keeps_its_end_and_whole_words_within_60_characters(sentinel, tmp_path):
    long = "a-name-that-goes-on-for-longer-than-any-terminal-is-wide-" * 2
    kl_runs(tmp_path, {f"{long}one": 3.0, "short": 0.01})
    name = next(line for line in sentinel(tmp_path).out.splitlines() if "…" in line).split("  ")[1]
    assert len(name) <= 60
    assert name.endswith("-one/metrics.jsonl")
    assert name.removeprefix("…").split("-")[0] in long.split("-")
