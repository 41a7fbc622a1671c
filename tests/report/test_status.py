"""`sentinel status` over state directories as watches leave them."""

import json
import os
import re
import time
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from sentinel.detectors.api import Severity
from sentinel.report import lines, status, status_lines
from sentinel.report.status_body import document
from sentinel.report.watch_table import watch_table
from sentinel.runs.log import StoredRun
from sentinel.runs.metadata import FoundSetting, RunMetadata
from sentinel.runs.state_codec import packed
from sentinel.sources.base import Ending, EndKind
from sentinel.storage.outbox import Undelivered
from sentinel.storage.store import Store, Update
from tests.sinks.samples import INCIDENT

NOW = 1.7e9
PATH = "/data/team/a-very-long-name-of-an-experiment/with-another-long-name-below-it/run-{:04}"
NO_STATE = packed({})


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as store:
        yield store


def fill(store, count, sick):
    """Runs, of which some have an incident."""
    updates = []
    for number in range(count):
        path = PATH.format(number)
        one = INCIDENT.replace(id=f"{number:016x}", run=f"jsonl:{path}")
        updates.append(Update(f"jsonl:{path}", path, "jsonl", packed({}), [one] if number in sick else []))
    store.commit(updates, NOW)


def shown(store, tmp_path, end=""):
    return status.status(store, tmp_path, NOW + 60, lambda path: path.endswith(end))


@pytest.mark.slow
def test_of_a_thousand_runs_the_worst_are_shown_and_the_rest_is_counted(store, tmp_path, monkeypatch, capsys):
    fill(store, 1000, {7, 993})
    monkeypatch.setattr(lines.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    lines.print_lines(status_lines.lines(shown(store, tmp_path)))
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) < 100
    assert all(len(line) <= 80 or " " not in line.strip() for line in printed.splitlines())
    assert "1,000 runs below" in printed
    first, second = re.findall(r"^  lost: (run-\d+)", printed, re.MULTILINE)[:2]
    assert {first, second} == {"run-0007", "run-0993"}
    assert "and 980 more: 980 lost" in printed


def test_nothing_is_folded_or_padded_without_a_terminal(store, tmp_path, capsys):
    fill(store, 3, {1})
    lines.print_lines(status_lines.lines(shown(store, tmp_path)))
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) > 80
    assert not [line for line in printed if line != line.rstrip()]


def test_runs_can_be_chosen(store, tmp_path):
    fill(store, 30, {3, 4})
    chosen = shown(store, tmp_path, "run-0003")
    assert [run.row.path for run in chosen.runs] == [PATH.format(3)]
    assert [one.run for one in chosen.incidents] == [f"jsonl:{PATH.format(3)}"]


def test_a_single_run_has_its_whole_path(store, tmp_path):
    fill(store, 1, set())
    assert any(f": {PATH.format(0)}" in line for _, line in status_lines.lines(shown(store, tmp_path)))


def test_the_document_is_json_and_holds_all_runs(store, tmp_path):
    fill(store, 50, {3})
    told = json.loads(json.dumps(document(shown(store, tmp_path))))
    assert len(told["runs"]) == 50
    assert told["runs"][0]["path"] == PATH.format(3)
    assert told["incidents"][0]["path"] == PATH.format(3)


@pytest.mark.long
def test_the_document_holds_all_open_incidents_the_worst_first(store, tmp_path):
    fill(store, 1500, range(1500))
    mild = INCIDENT.replace(id="mild", run=f"jsonl:{PATH.format(7)}", severity=Severity.INFO)
    store.commit([Update(mild.run, PATH.format(7), "jsonl", NO_STATE, [mild])], NOW + 1)
    incidents = document(shown(store, tmp_path))["incidents"]
    assert len(incidents) == 1501
    assert incidents[-1]["id"] == "mild"


def test_names_of_runs_cannot_write_to_the_terminal(store, tmp_path):
    path = "/data/\x1b[2Jgone\u202e/run\n  critical: faked"
    store.commit(
        [Update(f"jsonl:{path}", path, "jsonl", NO_STATE, [INCIDENT.replace(run=f"jsonl:{path}")])], NOW
    )
    for _, line in status_lines.lines(shown(store, tmp_path)):
        assert line.isprintable()


def test_the_logs_of_one_training_stand_together(store, tmp_path):
    settled = StoredRun(RunMetadata(last_step=5, config={"lr": FoundSetting(0.1, "jsonl")}))
    logs = {
        f"{kind}:/none/a/metrics.{kind}": StoredRun(RunMetadata(last_step=5)) for kind in ("csv", "console")
    }
    logs |= {"jsonl:/none/b/metrics.jsonl": StoredRun(), "jsonl:/none/a/metrics.jsonl": settled}
    sick = INCIDENT.replace(run="console:/none/a/metrics.console")
    for id_ in logs:
        found = [sick] if sick.run == id_ else []
        store.commit([Update(id_, id_.partition(":")[2], id_.partition(":")[0], b"", found)], NOW)
    found = status.status(store, tmp_path, NOW + 60, read_run=lambda row: logs[row.id])
    first = "jsonl:/none/a/metrics.jsonl"
    second = "jsonl:/none/b/metrics.jsonl"
    assert [(one.row.id, one.training) for one in found.runs] == [
        (first, first),
        (sick.run, first),
        ("csv:/none/a/metrics.csv", first),
        (second, second),
    ]
    assert [one["training"] for one in document(found)["runs"]] == [first, first, first, second]
    told = [line for _, line in status_lines.lines(found)]
    assert told[0] == "2 runs in 4 logs below /none: 2 lost"
    rows = told[told.index("Runs, the worst first") + 1 :][:4]
    assert rows[0].startswith("lost: a/metrics.jsonl, step 5")
    assert rows[1].startswith("also in a/metrics.console, lost, step 5")
    assert rows[2].startswith("also in a/metrics.csv, lost, step 5")
    assert rows[3].startswith("lost: b/metrics.jsonl")


def test_what_several_logs_of_a_training_tell_stands_once(store, tmp_path):
    runs = {f"{kind}:/none/a/metrics.{kind}": StoredRun() for kind in ("csv", "jsonl")}
    runs["csv:/none/b/metrics.csv"] = StoredRun()
    for number, id_ in enumerate(runs):
        found = [INCIDENT.replace(id=f"{number}", run=id_)]
        found += [INCIDENT.replace(id="later", run=id_, onset_step=9000, fired_step=9000)] * (number == 1)
        store.commit([Update(id_, id_.partition(":")[2], id_.partition(":")[0], b"", found)], NOW)
    found = status.status(store, tmp_path, NOW, read_run=lambda row: runs[row.id])
    told = "\n".join(line for _, line in status_lines.lines(found)).partition("Runs, the worst first")[0]
    assert "Open incidents: none, and 4 of runs that are over" in told
    heads = re.findall(r"since step (\d+) in (./)", told)
    assert sorted(heads) == [("400", "a/"), ("400", "b/"), ("9000", "a/")]
    assert re.findall(r"also in (a/).*, id [01]\)", told) == ["a/"]


def test_a_log_that_grows_beside_its_crashed_training_is_no_running_one(store, tmp_path):
    """What measures the machine may go on."""
    (tmp_path / "system.csv").write_text("step,cpu\n")
    crashed = StoredRun(RunMetadata(), Ending(EndKind.CRASHED, "process 7 was killed by SIGKILL"))
    logs = {f"jsonl:{tmp_path}/metrics.jsonl": crashed, f"csv:{tmp_path}/system.csv": StoredRun()}
    for id_ in logs:
        store.commit([Update(id_, id_.partition(":")[2], id_.partition(":")[0], b"", [])], NOW)
    written = (tmp_path / "system.csv").stat().st_mtime
    found = status.status(store, tmp_path, written + 60, read_run=lambda row: logs[row.id])
    told = [line for _, line in status_lines.lines(found)]
    assert told[0].endswith(": 1 crashed")
    assert "also in system.csv, which still grows" in told


def test_the_log_that_knows_the_end_stands_for_its_training(store, tmp_path):
    ended = StoredRun(RunMetadata(), Ending(EndKind.FINISHED, "it said so"))
    logs = {"csv:/none/a/metrics.csv": StoredRun(RunMetadata(config={"lr": FoundSetting(0.1, "csv")}))}
    logs |= {"jsonl:/none/a/metrics.jsonl": ended}
    for id_ in logs:
        store.commit([Update(id_, id_.partition(":")[2], id_.partition(":")[0], b"", [])], NOW)
    found = status.status(store, tmp_path, NOW + 60, read_run=lambda row: logs[row.id])
    assert status_lines.summary(found.runs) == "1 run in 2 logs below /none/a: 1 finished"


def test_what_is_in_trouble_and_goes_on_comes_first(store, tmp_path):
    """Incidents of runs that are over are over, and what another one explains is not counted."""
    now = time.time()
    runs = {}
    for number in range(30):
        log = tmp_path / f"{number:02}.jsonl"
        log.write_text("{}\n")
        ending = None if number in (7, 8) else Ending(EndKind.CRASHED, "it printed an error")
        runs[f"jsonl:{log}"] = StoredRun(RunMetadata(last_step=5), ending)
        found = [INCIDENT.replace(id=f"a{number:02}", run=f"jsonl:{log}")]
        if number == 7:
            found = [found[0].replace(severity=Severity.WARNING)]
            found.append(found[0].replace(id="b", detector="loss-spike", inhibited_by="a07"))
        if number == 8:
            found = []
        store.commit([Update(f"jsonl:{log}", str(log), "jsonl", b"", found)], NOW)
    found = status.status(store, tmp_path, now, read_run=lambda row: runs[row.id])
    told = [line for _, line in status_lines.lines(found)]
    at = told.index("Open incidents: 1, and 28 of runs that are over")
    assert told[at + 1].endswith("in 07.jsonl")
    assert told[told.index("Runs, the worst first") + 1].startswith("running: 07.jsonl")
    assert found.runs[0].row.path.endswith("07.jsonl")


def test_an_empty_state_is_said(tmp_path):
    with Store(tmp_path) as store:
        found = shown(store, tmp_path)
    assert [line for _, line in status_lines.lines(found)] == [
        "0 runs",
        "",
        "no watch is running",
        "",
        "Open incidents: none",
    ]


@pytest.mark.slow
def test_the_table_of_a_watch_shows_the_worst_first_and_fits_the_screen(store, tmp_path):
    fill(store, 50, {7})
    console = Console(file=StringIO(), width=100, height=30)
    console.print(watch_table(shown(store, tmp_path), console.height, console.width))
    lines = console.file.getvalue().splitlines()
    assert len(lines) <= 30
    assert lines[0].startswith("50 runs below")
    first = next(line for line in lines if "run-" in line)
    assert "run-0007" in first
    assert INCIDENT.detector in first
    assert "and 28 trainings more" in lines
    assert any(line.startswith("no watch is running") for line in lines)


def test_the_table_of_a_watch_says_which_receiver_takes_nothing(store, tmp_path):
    fill(store, 1, {0})
    waiting = Undelivered("slack", "0" * 16, 3, failed=False, error="it answered 503", next_attempt=NOW + 90)
    console = Console(file=StringIO(), width=100)
    console.print(watch_table(replace(shown(store, tmp_path), undelivered=[waiting]), 30, 100))
    assert "notifications wait for slack: it answered 503" in console.file.getvalue()


def test_a_run_with_an_open_stall_is_stalled_and_says_what_its_process_does(store, tmp_path):
    log = tmp_path / "metrics.jsonl"
    log.write_text("{}\n")
    os.utime(log, (NOW, NOW))
    id_ = f"jsonl:{log}"
    silent = StoredRun(RunMetadata(first_time=NOW - 60, last_time=NOW, last_step=5))
    evidence = {"silent_seconds": 1200.0, "goes_on": "process 7 holds the log"}
    stall = INCIDENT.replace(run=id_, detector="stream-stall", evidence=evidence)
    states = []
    for incidents in ([], [stall]):
        store.commit([Update(id_, str(log), "jsonl", b"", incidents)], NOW)
        found = status.status(store, tmp_path, NOW + 1200, read_run=lambda _: silent)
        states += [(run.state, "process 7 holds the log" in run.evidence) for run in found.runs]
    assert states == [("silent", False), ("stalled", True)]


def test_equal_incidents_of_many_runs_stand_once(store, tmp_path):
    fill(store, 10, range(8))
    found = shown(store, tmp_path)
    number = iter(range(100))
    several = [one.replace(summary=f"the KL is {next(number)}.5, above 2") for one in found.incidents]
    printed = [line for _, line in status_lines.lines(replace(found, incidents=several))]
    assert "Open incidents: none, and 8 of runs that are over" in printed
    assert sum(INCIDENT.detector in line and "since step" in line for line in printed) == 1
    assert sum(line.startswith("also in run-") for line in printed) == 5
    assert "and in 2 more logs" in printed


@pytest.mark.slow
def test_a_row_of_the_table_of_a_watch_is_one_line_whatever_its_name(store, tmp_path):
    paths = [
        f"/data/a-study-with-a-long-name-of-{number:02}-and-what-follows-it/metrics" for number in range(9)
    ]
    store.commit([Update(f"jsonl:{path}", path, "jsonl", packed({}), []) for path in paths], NOW)
    console = Console(file=StringIO(), width=80, height=30)
    console.print(watch_table(shown(store, tmp_path), console.height, console.width))
    rows = [line for line in console.file.getvalue().splitlines() if "lost" in line][1:]
    assert len({row.split()[0] for row in rows}) == len(rows) == 9
