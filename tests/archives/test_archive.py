"""Archives that are judged in parts give what one replay gives."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import polars as pl
import pytest

from sentinel.archives.engine import Local
from sentinel.archives.isolating import isolated
from sentinel.archives.judging import Judge
from sentinel.archives.parts import Folder, Part, RunName
from sentinel.archives.record import failed, packed_record, unpacked_record
from sentinel.common.errors import SentinelError
from sentinel.common.shard import Shard
from sentinel.config.file import Config
from sentinel.notifications.decide import Reason
from sentinel.replays.replaying import replay
from sentinel.report import archive as report
from sentinel.report import cost, cost_page
from sentinel.report.json import document
from sentinel.sources.discovery import discover
from tests.archives.conftest import NOW, InTurn, archived, as_json, config, records, reported, whole
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


class Failing(InTurn):
    """An engine without a result for what has a run of a certain name."""

    def __init__(self, poison):
        self.poison = poison

    def results(self, work, parts):
        for part in parts:
            found = work(part)
            names = [unpacked_record(one).name for one in found] if isinstance(work, Judge) else []
            yield part, "its process died" if self.poison in names else found


@pytest.mark.long  # processes
def test_an_archive_gives_what_one_replay_gives(tmp_path, tree):
    results, judged = archived(tmp_path / "results", tree)
    expected = as_json(document(replay([tree], config(tree), lambda *_: None), NOW))
    found = reported(results)
    assert found == expected
    assert judged.runs == len(expected["runs"])
    told = {one["reason"] for run in found["runs"] for i in run["incidents"] for one in i["notifications"]}
    assert Reason.TOLD_OF_ANOTHER_LOG in told
    assert Reason.BELOW_SINK_SEVERITY in told
    first = next(run for run in found["runs"] if run["run"] == "in-two-parts/a.jsonl")
    assert first["state_evidence"] == "in-two-parts/b.jsonl goes on from there"


@pytest.mark.long  # processes
def test_processes_and_shards_give_the_same(tmp_path, tree):
    expected = reported(archived(tmp_path / "whole", tree)[0])
    for index in range(3):
        results, _ = archived(tmp_path / "sharded", tree, Local(2), shard=Shard(index, 3))
    assert reported(results) == expected


@pytest.mark.long
def test_shards_that_are_not_done_are_said(tmp_path, tree):
    results, _ = archived(tmp_path / "results", tree, shard=Shard(0, 3))
    with pytest.raises(SentinelError, match="2 of 3 shards are not done yet"):
        records(results)


def test_a_form_of_lines_that_a_person_named_is_read_and_judged_again_when_it_changes(tmp_path):
    (tmp_path / "logs").mkdir()
    lines = (f"qq {n / 4} after {n * 10}\n" for n in range(1, 9))
    (tmp_path / "logs" / "own.log").write_text("".join(lines))
    without, _ = archived(tmp_path / "results", tmp_path / "logs")
    assert not records(without)
    form = {"line": "qq {qq} after {step}"}
    settings = Config.model_validate({"paths": [str(tmp_path / "logs")], "console": [form]})
    results, judged = archived(tmp_path / "results", tmp_path / "logs", settings=settings)
    assert judged.completed == 1
    assert [record.format for record in records(results)] == ["console"]


@pytest.mark.long  # processes
def test_what_did_not_change_is_not_judged_again(tmp_path, tree):
    out = tmp_path / "results"
    _, first = archived(out, tree)
    _, again = archived(out, tree)
    assert (again.completed, again.reused) == (0, first.parts)
    log = tree / "two-logs" / "metrics.jsonl"
    os.utime(log, ns=(1, 1))
    _, changed = archived(out, tree)
    assert changed.completed == 1
    shutil.rmtree(tree / "two-logs")
    results, _ = archived(out, tree)
    assert not [one for one in records(results) if "two-logs" in one.path]
    assert {file.stem for file in (out / "runs").iterdir()} == {
        file.stem for file in (out / "incidents").iterdir()
    }


@pytest.mark.long  # processes
def test_a_run_that_no_process_survives_costs_no_other_run_its_verdict(tmp_path, tree):
    results, judged = archived(tmp_path / "results", tree, Failing("kl-blowup"))
    found = whole(results)
    assert [one.name for one in found.failed] == ["kl-blowup"]
    assert judged.failed == 1
    body = json.loads("".join(report.pieces(found)))
    assert len(body["runs"]) == len(discover([tree]).runs) - 1
    assert [text for text in body["read_issues"] if text.endswith("kl-blowup: its process died")]
    _, again = archived(tmp_path / "results", tree)
    assert again.completed == 0
    results, again = archived(tmp_path / "results", tree, retry_failed=True)
    assert again.completed == 1
    assert not whole(results).failed


class Deadly:
    """Work that ends its process at one run, in the ways in which processes end."""

    def __init__(self, way):
        self.way = way

    def __call__(self, part):
        runs = part.only or [RunName(f"csv:{name}", name) for name in part.folders[0].names]
        if any(one.name == "poison" for one in runs):
            if self.way == "raises":
                raise RuntimeError("secret of the log")
            if self.way == "hangs":
                signal.pause()
            if self.way == "eats":
                os.kill(os.getpid(), signal.SIGKILL)  # what the system does to who needs too much memory
            os._exit(3)
        return [packed_record(failed(one, "judged")) for one in runs]

    def names(self, part):
        return [msgspec.msgpack.encode(RunName(f"csv:{name}", name)) for name in part.folders[0].names]


@pytest.mark.long  # processes
@pytest.mark.parametrize("way", ["raises", "exits", "eats", "hangs"])
def test_a_poisoned_run_is_isolated_by_splitting(way):
    names = [[f"{part}-{number}" for number in range(4)] for part in range(5)]
    names[2][1] = "poison"
    work = [Part([Folder(str(n), tuple(group))], str(n), 4) for n, group in enumerate(names)]
    engine = Local(2, seconds=2.0 if way == "hangs" else None)
    found = {part.key: records for part, records in isolated(engine, Deadly(way), work)}
    told = {one.name: one.failure for part in work for one in map(unpacked_record, found[part.key])}
    assert set(told) == {name for group in names for name in group}
    assert {name for name, why in told.items() if why != "judged"} == {"poison"}
    assert "secret" not in told["poison"]


def finished_parts(out):
    """The parts whose checksums stand there; a part that is being written has none yet."""
    return {place for place in out.glob("parts/*.json") if json.loads(place.read_text()).get("checksums")}


@pytest.mark.long  # processes
def test_a_driver_that_dies_or_is_stopped_leaves_what_the_next_one_goes_on_with(tmp_path, tree):
    for number in range(400):  # so many small ones that there are several parts, whatever their names
        more = tree / f"more-{number}" / "run"
        more.mkdir(parents=True)
        (more / "log.jsonl").write_text("".join(f'{{"step": {i}, "loss": {i % 7}}}\n' for i in range(20)))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "sentinel", "archive", "judge", tree, "--out", out, "--workers", "1"]
    before: set[Path] = set()
    for how in (signal.SIGKILL, signal.SIGINT):
        driver = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
        while driver.poll() is None and finished_parts(out) == before:
            pass
        driver.send_signal(how)
        said = driver.communicate(timeout=PATIENCE)[1].decode()
        if how is signal.SIGINT:
            assert driver.returncode == 130
            assert "the same command goes on" in said
            assert "Traceback" not in said
        assert not [*out.glob("manifest*")]
        before = finished_parts(out)
    results, judged = archived(out, tree)
    assert judged.reused >= len(before) > 0
    expected, _ = archived(tmp_path / "whole", tree)
    found, wanted = (  # the states depend on the time of day
        [(run["run"], run["incidents"]) for run in reported(one)["runs"]] for one in (results, expected)
    )
    assert found == wanted


def test_a_directory_that_holds_only_directories_may_be_a_run(tmp_path):
    metrics = tmp_path / "mlruns" / "0" / "0123456789abcdef0123456789abcdef" / "metrics"
    metrics.mkdir(parents=True)
    (metrics / "loss").write_text("".join(f"{1767225600000 + i} {2 - i / 50} {i}\n" for i in range(50)))
    results, _ = archived(tmp_path / "results", tmp_path / "mlruns")
    assert [one.path for one in records(results)] == [str(metrics.parent)]


@pytest.mark.long
def test_the_tables_can_be_read_by_others(tmp_path, tree):
    archived(tmp_path / "results", tree)
    runs = pl.read_parquet(tmp_path / "results" / "runs" / "*.parquet")
    incidents = pl.read_parquet(tmp_path / "results" / "incidents" / "*.parquet")
    assert runs.height == len(discover([tree]).runs)
    worst = dict(zip(runs["run"], runs["worst"], strict=True))
    assert worst["kl-blowup"] == "critical"
    assert worst["healthy-rl"] is None
    assert set(incidents["path"]) <= set(runs["path"])
    assert Path(runs["path"][0]).is_absolute()


@pytest.mark.long
def test_what_changes_while_it_is_judged_costs_no_other_run_its_verdict(tmp_path, tree):
    class Late(InTurn):
        """An engine before whose work some logs go, and others grow."""

        def results(self, work, parts):
            waiting = [*parts]
            shutil.rmtree(tree / "kl-blowup", ignore_errors=True)
            with (tree / "two-logs" / "metrics.jsonl").open("a") as log:
                log.write('{"step": 90, "loss": 1.0}\n')
            yield from super().results(work, waiting)

    results, _ = archived(tmp_path / "results", tree, Late())
    assert {one["run"] for one in reported(results)["runs"]} == {
        one["run"] for one in reported(archived(tmp_path / "again", tree)[0])["runs"]
    }


@pytest.mark.long
def test_the_report_says_what_failures_cost(tmp_path, tree):
    results, _ = archived(tmp_path / "results", tree)
    text = "\n".join(line for _, line in cost.lines(cost.cost(whole(results))))
    assert text.startswith("14 runs in 15 logs: ")
    for title in ("By fault:", "By framework:", "By week:", "What cost the most"):
        assert title in text
    assert "kl-blowup  1 run" in text
    found = cost.cost(whole(results))
    assert found.verdict in cost_page.html(found)
    assert "| kl-blowup | 1 |" in cost_page.markdown(found)


@pytest.mark.long  # processes
def test_commands(sentinel, tmp_path, tree):
    out = tmp_path / "results"
    ran = sentinel("archive", "judge", tree / "kl-blowup", "--out", out, "--workers", 1)
    assert ran.status == 0
    assert ran.out.startswith("1 part judged: 1 run; 0 parts known before")
    assert sentinel("archive", "report", out).out.startswith("1 run: 1 critical")
    assert json.loads(sentinel("archive", "report", out, "--format", "json").out)["coverage"]["read"] == 1
    assert "write I/N" in sentinel("archive", "judge", tree, "--out", out, "--shard", "3/3").err
    assert "Missing option '--out'" in sentinel("archive", "judge", tree, "--workers", 2).err
    assert "--address needs" in sentinel("archive", "judge", tree, "--out", out, "--address", "there").err
    missing = sentinel("archive", "report", tmp_path / "nothing")
    assert missing.status == 2
    assert "no results" in missing.err
