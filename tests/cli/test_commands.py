"""Each command as a person meets it: what it prints, where, and its exit status."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from sentinel import catalogue
from sentinel.cli.app import COMMANDS, program
from sentinel.common.clock import SystemClock
from sentinel.detectors.discovery import all_detectors
from sentinel.storage.lock import sole_watcher
from sentinel.storage.states import state_of_config
from sentinel.storage.store import Store
from tests.sinks.receiver import Receiver, status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["wach"], r"sentinel: No such command 'wach'.*"),
        (["watch", "--pol"], r"sentinel: No such option: --pol.*"),
        (["watch", "--config", "none.toml", "x"], r"sentinel: none.toml: No such file or directory"),
        (["watch", "nowhere"], r"sentinel: nowhere: no such file or directory; --wait waits until it exists"),
        (["replay", "nowhere"], r"sentinel: nowhere: no such file or directory"),
        (["replay", "empty"], r"sentinel: .*empty.*"),
        (["replay", "empty", "--fail-on", "bad"], r"sentinel: Invalid value for '--fail-on': .*"),
        (
            ["explain", "kl-blowp"],
            r"sentinel: no detector, rule or catalogue entry is called 'kl-blowp' \(did you mean .*",
        ),
        (["explain", "zzzzzz"], r"sentinel: no detector, rule or catalogue entry is called 'zzzzzz'"),
        (["status"], r"sentinel: .*nothing was watched.*"),
        (["silence", "add", "*", "--reason", "x", "--for", "2y"], r"sentinel: .*'2y' is not a duration; .*"),
        (
            ["silence", "add", "*", "--reason", "x", "--detector", "kl-blowp"],
            r"sentinel: no detector is called .*",
        ),
        (["check-config", "none.toml"], r"sentinel: none.toml: No such file or directory"),
        (
            ["test-alert", "--sink", "termnal"],
            r"sentinel: no sink is called 'termnal' \(did you mean 'terminal'\?\)",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_used_gets_one_line(sentinel, tmp_path, words, line):
    (tmp_path / "empty").mkdir()
    ran = sentinel(*words)
    assert ran.status == 2
    assert ran.out == ""
    assert re.fullmatch(line, ran.err.rstrip("\n"))


@pytest.mark.slow
def test_every_defect_of_a_configuration_gets_a_line(sentinel, tmp_path):
    (tmp_path / "sentinel.toml").write_text("pats = []\n[signals]\na = 'los'\n")
    ran = sentinel("check-config")
    assert ran.status == 2
    assert ran.err == (
        "sentinel: sentinel.toml:3: signals.a: 'los' is unknown (did you mean 'loss'?)\n"
        "sentinel: sentinel.toml:1: pats: unknown key (did you mean 'paths'?)\n"
    )


@pytest.mark.slow
def test_the_configuration_here_is_used_and_can_be_checked(sentinel, sick_run):
    assert sentinel("check-config").out == "sentinel.toml: no mistakes; sinks: terminal\n"
    assert json.loads(sentinel("check-config", "--schema").out)["title"] == "sentinel.toml"


@pytest.mark.slow
def test_what_a_configuration_needs_and_lacks_is_named(sentinel, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "sentinel.toml").write_text(
        'paths = ["here", "gone"]\n'
        '[[sinks]]\ntype = "slack"\nname = "team"\nurl_env = "NO_SUCH_VARIABLE"\n'
        '[[sinks]]\ntype = "webhook"\nurl_file = "no-such-file"\n'
        '[heartbeat]\nurl_env = "NO_OTHER_VARIABLE"\n'
    )
    ran = sentinel("check-config")
    assert ran.status == 0
    assert ran.out.splitlines()[1:] == [
        "missing here: environment variable NO_SUCH_VARIABLE is empty or not set (sink team)",
        "missing here: no-such-file: No such file or directory (sink webhook)",
        "missing here: environment variable NO_OTHER_VARIABLE is empty or not set (heartbeat)",
        "missing here: gone (`paths`)",
    ]


@pytest.mark.slow
def test_a_watch_can_wait_for_a_path(sentinel, tmp_path):
    ran = sentinel("watch", "later", "--wait", "--once")
    assert (ran.status, ran.out) == (0, "")


@pytest.mark.slow
def test_a_watch_says_what_it_found(sentinel, sick_run):
    found = [
        line for line in sentinel("watch", "--once").err.splitlines() if " INFO " in line and "found" in line
    ]
    assert len(found) == 1
    able, fitting = re.fullmatch(
        r".*found .*: (?:trl-grpo|jsonl), \d+ points; judged by (\d+) of (\d+) that fit", found[0]
    ).groups()
    assert 0 < int(able) < int(fitting) < len(all_detectors())


@pytest.mark.slow
def test_a_log_that_cannot_be_read_is_an_error_unless_others_can(sentinel, tmp_path):
    (tmp_path / "run-a.wandb").write_bytes(b"this is no log" * 10)
    alone = sentinel("replay", ".")
    assert alone.status == 2
    assert "is no W&B log, although its name says so" in alone.out
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n')
    both = sentinel("replay", ".")
    assert both.status == 0
    assert "nothing found  metrics.jsonl" in both.out


@pytest.mark.slow
def test_help_comes_without_the_heavy_libraries():
    loads_all = "import sys; from sentinel.cli.app import program; program(); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", loads_all], text=True).split()
    assert not {"polars", "numpy", "pydantic", "rich", "httpx", "sentinel.detectors.api"} & set(loaded)


@pytest.mark.slow
def test_what_is_asked_for_is_imported_and_no_other_command():
    asks = (
        "import sys; from sentinel.cli.app import program_for; program_for(sys.argv[1:]); print(*sys.modules)"
    )

    def loaded(word):
        modules = set(subprocess.check_output([sys.executable, "-c", asks, word], text=True).split())
        return {
            command.module for command in COMMANDS.values() if f"sentinel.cli.{command.module}" in modules
        }

    assert loaded("./runs") == set()
    assert loaded("status") == {"status"}


@pytest.mark.long  # a real process
@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        ([], {"multiprocessing", "pydantic", "rich", "scipy", "sentinel.sinks.base", "tensorboard", "yaml"}),
        (["replay"], {"multiprocessing", "pydantic", "scipy", "sentinel.sinks.base", "tensorboard", "yaml"}),
    ],
)
def test_a_finished_run_is_judged_without_what_sends_and_validates(tmp_path, command, heavy):
    losses = [*(1 / (1 + step) for step in range(50)), *10 * ["NaN"]]
    rows = [f'{{"step": {step}, "loss": {loss}}}\n' for step, loss in enumerate(losses)]
    (tmp_path / "metrics.jsonl").write_text("".join(rows))
    program = """if True:
        import contextlib, sys
        from sentinel.cli.app import main
        with contextlib.suppress(SystemExit):
            main(sys.argv[1:])
        print(*sys.modules)"""
    words = [sys.executable, "-c", program, *command, str(tmp_path)]
    *printed, modules = subprocess.check_output(words, text=True, cwd=tmp_path).splitlines()
    assert any("metrics.jsonl" in line or "1 run" in line for line in printed)
    assert not {"asyncio", "httpx", "prometheus_client", *heavy} & set(modules.split())


@pytest.mark.slow
def test_the_cores_are_left_to_the_trainings():
    program = """if True:
        import contextlib
        from sentinel.cli.app import main
        with contextlib.suppress(SystemExit):
            main(["--version"])
        import polars
        import os
        print(polars.thread_pool_size(), os.environ["OPENBLAS_NUM_THREADS"])"""
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_THREADS")}
    printed = subprocess.check_output([sys.executable, "-c", program], text=True, env=unset)
    assert printed.splitlines()[-1] == "1 1"


@pytest.mark.slow
def test_replay_as_json_prints_one_object(sentinel, sick_run):
    ran = sentinel("replay", sick_run, "--format", "json")
    assert ran.status == 0
    (run,) = json.loads(ran.out)["runs"]
    assert [i["detector"] for i in run["incidents"]] == ["kl-blowup"]
    assert run["incidents"][0]["onset_step"] >= 100


@pytest.mark.slow
def test_replay_as_report_names_run_and_detector(sentinel, sick_run):
    ran = sentinel("replay", sick_run.parent)
    assert ran.status == 0
    assert "sick" in ran.out
    assert "kl-blowup" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("fail_on", ["info", "warning", "critical"])
def test_findings_become_a_status_where_asked(sentinel, sick_run, fail_on):
    assert sentinel("replay", sick_run, "--format", "json", "--fail-on", fail_on).status == 1


@pytest.mark.slow
def test_a_threshold_from_the_configuration_counts(sentinel, sick_run, tmp_path):
    file = tmp_path / "lenient.toml"
    file.write_text(
        '[detectors.kl-blowup]\ncritical_per_token = 9.0\n[signals]\n"my/odd/kl" = "kl"\n', encoding="utf-8"
    )
    assert sentinel("replay", sick_run, "--config", file, "--fail-on", "critical").status == 0
    file.write_text('[detectors.kl-blowup]\nenabled = false\n[signals]\n"my/odd/kl" = "kl"\n')
    assert sentinel("replay", sick_run, "--config", file, "--fail-on", "info").status == 0


@pytest.mark.slow
def test_a_pass_over_runs_tells_and_is_remembered(sentinel, sick_run):
    first = sentinel("watch", "--once")
    assert first.status == 0
    assert "kl-blowup" in first.err
    assert "kl-blowup" not in sentinel("watch", "--once").err
    shown = sentinel("status").out
    assert "s ago, 1 run\n" in shown
    assert "first notification" in shown
    assert "kl-blowup" in shown.split("Open incidents")[1]


@pytest.mark.slow
def test_status_copes_with_what_cannot_be_decoded(sentinel, sick_run, tmp_path):
    sentinel("watch", "--once")
    with (
        closing(sqlite3.connect(state_of_config(tmp_path / "sentinel.toml") / "sentinel.sqlite")) as state,
        state,
    ):
        state.execute("UPDATE runs SET state = x'c1'")
        state.execute("UPDATE incidents SET incident = '{'")
        state.execute("UPDATE notification_log SET severity = 77")
        state.execute("UPDATE health SET value = '{'")
    shown = sentinel("status")
    assert shown.status == 0
    assert "its saved state cannot be decoded" in shown.out


@pytest.mark.long  # many commands
def test_a_run_whose_judging_stopped_is_said_everywhere(sentinel, tmp_path):
    """Two trainings that write one log side by side order nothing."""
    log = tmp_path / "runs" / "a.jsonl"
    log.parent.mkdir()
    rows = [{"step": step, "loss": 1.0} for pair in range(100) for step in (pair, 1000 + pair)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sentinel("watch", "runs", "--once")
    for words in (["status"], ["runs", "runs"], ["replay", "runs"]):
        assert "steps went back more than 64 times" in " ".join(sentinel(*words).out.split())
    for command in ("runs", "replay"):
        (run,) = json.loads(sentinel(command, "runs", "--format", "json").out)["runs"]
        assert run["stopped"].startswith("its steps went back")
    assert sentinel("replay", "runs", "--fail-on", "critical").status == 1


@pytest.mark.long
@pytest.mark.parametrize("form", ["terminal", "jsonl"])
def test_a_run_that_cannot_be_read_fails_beside_one_that_is_well(sentinel, tmp_path, form):
    (tmp_path / "well.jsonl").write_text("".join(f'{{"step": {i}, "loss": 1.0}}\n' for i in range(20)))
    gone = tmp_path / "gone.jsonl"
    gone.symlink_to("/proc/self/mem")
    words = ["replay", tmp_path / "well.jsonl", gone, "--format", form]
    assert sentinel(*words, "--fail-on", "critical").status == 1
    assert sentinel(*words).status == 0


@pytest.mark.slow
def test_a_file_that_is_no_log_is_said_everywhere_and_an_incident_until_it_is_one(sentinel, tmp_path):
    log = tmp_path / "runs" / "metrics.json"
    log.parent.mkdir()
    log.write_text('[{"step": 1, "loss": 1.0}, {"step": oh, "loss": 1.0}, {"step": 3, "loss": 1.0}]')
    (run,) = json.loads(sentinel("replay", "runs", "--format", "json").out)["runs"]
    (told,) = run["incidents"]
    assert (told["detector"], told["severity"]) == ("judging-stopped", "info")
    assert run["stopped"] in told["summary"]
    sentinel("watch", "runs", "--once")
    assert (
        "judging-stopped"
        in sentinel("status").out.split("Open incidents")[1].split("Runs, the worst first")[0]
    )
    log.write_text(json.dumps([{"step": 1, "loss": 1.0}] * 20))
    sentinel("watch", "runs", "--once")
    assert "Open incidents: none" in sentinel("status").out


@pytest.mark.slow
def test_status_shows_a_log_of_which_a_part_cannot_be_read(sentinel, sick_run):
    with (sick_run / "metrics.jsonl").open("a") as log:
        log.write('{"step": oh}\n{"step": 201}\n')
    sentinel("watch", "--once")
    assert "metrics.jsonl at line 201" in sentinel("status").out.split("last complaint")[1]


@pytest.mark.slow
def test_status_tells_of_a_watch_that_records_nothing(sentinel, sick_run, tmp_path):
    state = state_of_config(tmp_path / "sentinel.toml")
    sentinel("watch", "--once")
    with Store(state) as store:
        store.set_health({"watch": {"polled_at": SystemClock().now() - 1000, "runs": 1}})
    assert "recorded nothing" not in sentinel("status").out, "nobody watches"
    with sole_watcher(state):
        assert f"process {os.getpid()} watches, but recorded nothing for 16 min" in sentinel("status").out
        with Store(state) as store:
            store.set_health({"watch": {"polled_at": SystemClock().now(), "runs": 1}})
        assert "recorded nothing" not in sentinel("status").out


@pytest.mark.slow
def test_status_says_whether_a_watch_is_running(sentinel, sick_run, tmp_path):
    sentinel("watch", "--once")
    assert re.search(r"\nno watch is running\nwatch: polled \d+ s ago, 1 run\n", sentinel("status").out)
    assert json.loads(sentinel("status", "--format", "json").out)["watch_process"] is None
    with sole_watcher(state_of_config(tmp_path / "sentinel.toml")):
        assert "no watch" not in sentinel("status").out
        shown = json.loads(sentinel("status", "--format", "json").out)
    assert shown["watch_process"] == str(os.getpid())


@pytest.mark.slow
def test_a_receiver_that_asks_for_a_pause_shows_in_the_status(sentinel, sick_run, tmp_path):
    with Receiver() as receiver:
        receiver.default = status(429, Retry_After="86400")
        with (tmp_path / "sentinel.toml").open("a") as file:
            file.write(f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n')
        assert sentinel("watch", "--once").status == 0
        assert len(receiver.received) == 1
    shown = sentinel("status").out.split("Undelivered")[1].split("Latest decisions")[0]
    assert "the receiver answered 429 and asked for a pause of 15 min" in shown
    assert re.search(r"in 1[45] min", shown)


@pytest.mark.slow
def test_a_silenced_run_is_recorded_and_not_told(sentinel, sick_run):
    added = sentinel("silence", "add", "*sick*", "--for", "2h", "--reason", "known [bold]defect")
    silence_id = added.out.split(":")[0]
    assert "kl-blowup" not in sentinel("watch", "--once").err
    assert "silenced" in sentinel("status").out
    listed = sentinel("silence", "list").out
    assert silence_id in listed
    assert "known [bold]defect" in listed
    assert sentinel("silence", "remove", silence_id).status == 0
    assert sentinel("silence", "list").out == ""
    assert sentinel("silence", "remove", silence_id).status == 2


@pytest.mark.slow
def test_a_test_alert_reaches_each_sink_and_failures_are_said(sentinel, tmp_path):
    with Receiver() as receiver:
        receiver.default = status(404)
        (tmp_path / "sentinel.toml").write_text(
            f'[[sinks]]\ntype = "terminal"\n'
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}?token=hunter2"\n'
            f'[[sinks]]\ntype = "slack"\nurl_env = "NOT_SET_ANYWHERE"\n'
        )
        ran = sentinel("test-alert")
        assert json.loads(receiver.received[0].body)["event"] == "test"
    assert ran.status == 1
    assert ran.out == "terminal: delivered\n"
    assert "webhook: not delivered: the receiver answered 404" in ran.err
    assert "slack: not delivered: environment variable NOT_SET_ANYWHERE is empty or not set" in ran.err
    assert "hunter2" not in ran.out + ran.err


@pytest.mark.slow
def test_settings_of_the_environment_that_cannot_be_used_fail_one_sink_alone(sentinel, tmp_path, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://user:hunter2@proxy:1080")
    with Receiver() as receiver:
        (tmp_path / "sentinel.toml").write_text(
            '[[sinks]]\ntype = "slack"\nurl = "https://receiver.invalid/hook"\n'
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n'
        )
        ran = sentinel("test-alert")
    assert (ran.status, ran.out) == (1, "webhook: delivered\n")
    assert ran.err.startswith("slack: not delivered: the proxy settings of the environment (ALL_PROXY")
    assert len(ran.err.splitlines()) == 1
    assert "hunter2" not in ran.err


@pytest.mark.slow
def test_the_version_is_told(sentinel):
    assert sentinel("--version").out == f"sentinel {version('training-sentinel')}\n"


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["watch"], ["silence", "add"]])
def test_help_has_a_short_name(sentinel, words):
    assert sentinel(*words, "-h").out == sentinel(*words, "--help").out


def test_a_shell_completes_commands(sentinel, monkeypatch):
    monkeypatch.setenv("_SENTINEL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sentinel che")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert sentinel("che").out == "check-config\n"


@pytest.mark.slow
def test_the_catalogue_can_be_listed_and_searched(sentinel):
    everything = sentinel("explain").out
    assert "- **kl-blowup**: " in everything
    assert "O24" in everything
    assert "- **O24**: The fp16 loss scale" in sentinel("explain", "--list", "catalogue").out
    search = ("--list", "catalogue", "--search", "bus error memory")
    assert sentinel("explain", *search).out.startswith("- **DP15**: ")
    assert "- **L6**: " in sentinel("explain", "P15").out


@pytest.mark.slow
def test_lists_hold_one_kind_alone(sentinel):
    assert "| `update_ratio/<group>` |" in sentinel("explain", "--list", "probes").out
    assert sentinel("explain", "updates").out.startswith("# updates\n")
    detectors = sentinel("explain", "--list", "detectors").out
    assert "- **kl-blowup**: " in detectors
    assert "O24" not in detectors


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["overview", "."], "sentinel PATH"),
        (["reduce", "verdicts", "--format", "html"], "sentinel archive report DIR"),
        (["catalogue", "--search", "x"], "sentinel explain --list catalogue"),
        (["probes"], "sentinel explain --list probes"),
        (["replay", ".", "--workers", "1", "--out", "verdicts"], "sentinel archive judge PATH... --out DIR"),
        (["replay", ".", "--out=verdicts"], "sentinel archive judge PATH... --out DIR"),
    ],
)
def test_an_earlier_form_of_a_command_names_the_one_of_today(sentinel, tmp_path, words, form):
    (tmp_path / words[0]).mkdir()  # a path of its name is no reason to show the screen
    ran = sentinel(*words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.endswith(f" is now `{form}`\n")
    assert ran.err.count("\n") == 1


def test_help_has_sections(sentinel):
    lines = sentinel("--help").out.splitlines()
    headings = [line for line in lines if line and not line.startswith((" ", "Usage"))]
    assert headings == ["Options:", "Look:", "Watch:", "Answer:", "Archive:", "Programs:"]


@pytest.mark.slow
def test_the_page_of_a_detector_says_how_severe_each_of_its_findings_can_be(sentinel):
    page = sentinel("explain", "loss-spike").out
    assert "- **jumped** (info or warning): loss jumped from {usual} to {value}" in page
    assert "only sinks with `include_preview = true`" not in page
    assert "only sinks with `include_preview = true`" in sentinel("explain", "memory-growth").out


@pytest.mark.slow
def test_a_page_has_no_empty_part(sentinel):
    page = sentinel("explain", "console-error").out
    assert "## Parameters" not in page
    assert "## What it may be" not in page


@pytest.mark.long
def test_every_page_can_be_explained(sentinel):
    for name, detector in all_detectors().items():
        ran = sentinel("explain", name)
        assert ran.out.startswith(f"# {name}\n")
        assert all(f"`{parameter} = " in ran.out for parameter in detector.parameters)
    for entry in catalogue.load().values():
        assert sentinel("explain", entry.id).out.startswith(f"# {entry.id}: {entry.title}\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_alone_has_the_help_that_it_has_among_all(name):
    alone, among_all = (
        CliRunner().invoke(commands, [name, "--help"], prog_name="sentinel")
        for commands in (program([name]), program())
    )
    assert f"sentinel {name}" in alone.output
    assert alone.output == among_all.output


@pytest.mark.slow
def test_a_wait_without_a_path_is_for_the_current_directory(sentinel, tmp_path):
    rows = [{"step": step, "loss": 1 / (1 + step)} for step in range(60)] + [{"step": 60, "done": True}]
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(log, (1e9, 1e9))  # it ended long ago
    ran = sentinel("wait", "--timeout", "60s", "--format", "json")
    assert (ran.status, json.loads(ran.out)["outcome"]) == (0, "ended")
