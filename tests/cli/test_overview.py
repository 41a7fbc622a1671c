"""`sentinel PATH`: one screen about many logs."""

import shutil

from tests.readme import ROOT

SAMPLES = ROOT / "sample_logs"


def test_a_path_without_a_command_gives_one_screen_with_the_costliest_runs(sentinel):
    ran = sentinel(SAMPLES / "kl-blowup", SAMPLES / "loss-scale-collapse", SAMPLES / "healthy-rl")
    first, *rest = ran.out.splitlines()
    assert first.startswith("3 runs read in ")
    assert first.endswith(": 2 critical, 0 with a warning, 1 quiet")
    assert any("critical kl-blowup: the KL to the reference is" in line for line in rest)
    assert len(rest) < 24
    assert ran.status == 0


def test_a_quiet_run_is_said_to_be_quiet_and_the_next_commands_are_named(sentinel):
    screen = sentinel("overview", SAMPLES / "healthy-rl").out
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
