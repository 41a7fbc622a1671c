"""`sentinel PATH`: one screen about many logs."""

import json
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
    assert any("critical kl-blowup: the KL to the reference is" in line for line in rest)
    assert len(rest) < 24
    assert ran.status == 0


def test_two_logs_of_one_training_are_one_run(sentinel, sick_run):
    rows = [json.loads(line) for line in (sick_run / "metrics.jsonl").read_text().splitlines()]
    table = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (sick_run / "metrics.csv").write_text("\n".join([*table, ""]))
    screen = sentinel(sick_run).out
    assert screen.startswith("1 run in 2 logs read in ")
    assert screen.splitlines()[0].endswith(": 1 critical, 0 with a warning, 0 quiet")
    assert screen.count("critical kl-blowup: ") == 1
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
    assert "ended without reaching their end: 1 went silent for good" in sentinel(tmp_path).out
    with (tmp_path / "metrics.jsonl").open("a") as log:
        log.write('{"step": 100, "done": true}\n')
    os.utime(tmp_path / "metrics.jsonl", (1e9, 1e9))
    screen = sentinel(tmp_path).out
    assert screen.startswith("1 run in 2 logs")
    assert "ended without" not in screen
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
