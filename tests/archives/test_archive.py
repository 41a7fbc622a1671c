"""Archives that are judged in parts give what one replay gives."""

import json
import os
import select
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from sentinel.archives.archive import judge_archive
from sentinel.archives.engine import Local, isolated
from sentinel.archives.parts import NamedRun, Part, Shard, parts
from sentinel.archives.record import failed, packed_record, unpacked_record
from sentinel.archives.reducing import settled
from sentinel.archives.results import Results
from sentinel.config.file import Config
from sentinel.ground.errors import SentinelError
from sentinel.replays.replaying import replay
from sentinel.report import archive as report
from sentinel.report.json import document
from sentinel.sources.discovery import discover
from tests.patience import PATIENCE
from tests.tools.docs import ROOT

NOW = 1.8e9
FAULTS = ROOT / "sample_logs"


class InTurn:
    """An engine of this process."""

    def results(self, work, parts):
        for part in parts:
            yield part, work(part)


class Failing(InTurn):
    """One that gives nothing for a part with a run of a certain name."""

    def __init__(self, poison):
        self.poison = poison

    def results(self, work, parts):
        for part in parts:
            poisoned = any(self.poison in named.name for named in part.runs)
            yield part, "its process died" if poisoned else work(part)


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(ROOT / "sample_logs", tmp_path / "tree")
    run = tmp_path / "tree" / "two-logs"
    run.mkdir()
    rows = [{"step": i, "loss": 2.0 - i / 100, "acc": i / 200} for i in range(60)]
    rows += [{"step": i, "loss": float("nan"), "acc": 0.1} for i in range(60, 90)]
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    (run / "metrics.csv").write_text(f"step,loss,acc\n{text}")
    return tmp_path / "tree"


def config(*paths):
    return Config(paths=[str(path) for path in paths])


def archived(tmp_path, tree, engine=None, **options):
    results = Results(tmp_path / "results")
    counts = judge_archive(config(tree), results, engine or InTurn(), NOW, lambda *_: None, **options)
    return results, counts


def whole(results, paths):
    policies = [sink.policy() for sink in config(paths).sinks]
    return settled(results.records(), results.complaints(), policies)


def without_names(runs):
    """As JSON, as it is shown to people."""
    return json.loads(json.dumps(runs))


@pytest.mark.slow  # processes
def test_an_archive_gives_what_one_replay_gives(tmp_path, tree):
    results, counts = archived(tmp_path, tree)
    expected = document(replay([tree], config(tree), lambda *_: None), NOW)
    found = report.document(whole(results, tree))
    assert without_names(found) == without_names(expected)
    assert counts.runs == len(expected["runs"])
    told = {one["reason"] for run in found["runs"] for i in run["incidents"] for one in i["told"]}
    assert len(told) > 1  # what depends on other runs was decided


@pytest.mark.slow  # processes
def test_processes_and_shards_give_the_same(tmp_path, tree):
    expected = report.document(whole(archived(tmp_path, tree)[0], tree))
    sharded = tmp_path / "sharded"
    sharded.mkdir()
    for index in range(3):
        results, _ = archived(sharded, tree, Local(2), shard=Shard(index, 3))
    assert report.document(whole(results, tree)) == expected


def test_shards_that_are_not_done_are_said(tmp_path, tree):
    results, _ = archived(tmp_path, tree, shard=Shard(0, 3))
    with pytest.raises(SentinelError, match="2 of 3 shards are not done yet"):
        results.records()


@pytest.mark.slow  # processes
def test_what_did_not_change_is_not_judged_again(tmp_path, tree):
    _, first = archived(tmp_path, tree)
    _, again = archived(tmp_path, tree)
    assert (again.runs, again.known) == (0, first.runs)
    log = tree / "two-logs" / "metrics.jsonl"
    os.utime(log, ns=(1, 1))
    results, changed = archived(tmp_path, tree)
    assert changed.runs > 0
    shutil.rmtree(tree / "two-logs")
    results, _ = archived(tmp_path, tree)
    assert not [one for one in results.records() if "two-logs" in one.path]
    kept = {file.stem for file in (tmp_path / "results" / "runs").iterdir()}
    assert kept == {file.stem for file in (tmp_path / "results" / "incidents").iterdir()}


@pytest.mark.slow  # processes
def test_a_run_that_no_process_survives_costs_no_other_run_its_verdict(tmp_path, tree):
    results, _ = archived(tmp_path, tree, Failing("kl-blowup"))
    found = whole(results, tree)
    assert [one.name for one in found.failed] == ["kl-blowup"]
    assert len(found.runs) == len(discover([tree]).runs) - 1
    body = report.document(found)
    assert [text for text in body["complaints"] if text.endswith("kl-blowup: its process died")]
    _, again = archived(tmp_path, tree)
    assert again.runs == 0
    results, again = archived(tmp_path, tree, retry_failed=True)
    assert again.runs
    assert not whole(results, tree).failed


class Deadly:
    """Work that ends its process at one run, in the ways in which processes end."""

    def __init__(self, way):
        self.way = way

    def __call__(self, part):
        if any(named.name == "poison" for named in part.runs):
            if self.way == "raises":
                raise RuntimeError("secret of the log")
            os._exit(3)
        return [packed_record(failed(named, "judged")) for named in part.runs]


@pytest.mark.slow  # processes
@pytest.mark.parametrize("way", ["raises", "exits"])
def test_a_poisoned_run_is_isolated_by_splitting(way):
    run = discover([FAULTS / "kl-blowup"]).runs[0]
    names = [[f"{part}-{number}" for number in range(4)] for part in range(5)]
    names[2][1] = "poison"
    work = [Part([NamedRun(run, name) for name in group], str(n)) for n, group in enumerate(names)]
    found = dict(isolated(Local(2), Deadly(way), work))
    records = {one.name: one.failure for part in work for one in map(unpacked_record, found[part])}
    assert set(records) == {name for group in names for name in group}
    assert {name for name, why in records.items() if why != "judged"} == {"poison"}
    assert "secret" not in records["poison"]


class Waiting:
    """Work that writes the id of its process to a pipe, and never ends."""

    def __init__(self, pipe):
        self.pipe = pipe

    def __call__(self, _):
        with self.pipe.open("a") as told:
            told.write(f"{os.getpid()}\n")
        threading.Event().wait()


@pytest.mark.slow  # processes
def test_no_process_outlives_a_driver_that_was_killed(tmp_path):
    pipe, main = tmp_path / "pipe", tmp_path / "main.py"
    os.mkfifo(pipe)
    script = (
        "from pathlib import Path\n"
        "from sentinel.archives.engine import Local\n"
        "from sentinel.archives.parts import Part\n"
        "from tests.archives.test_archive import Waiting\n"
        "if __name__ == '__main__':\n"
        f"    [*Local(2).results(Waiting(Path({str(pipe)!r})), [Part([], '0'), Part([], '1')])]\n"
    )
    main.write_text(script)
    kept = os.open(pipe, os.O_RDWR)  # so that the pipe has no end before both have written
    with subprocess.Popen([sys.executable, main], env={**os.environ, "PYTHONPATH": str(ROOT)}) as driver:
        with pipe.open() as told:
            ended = [os.pidfd_open(int(told.readline())) for _ in range(2)]
        driver.kill()
    os.close(kept)
    for one in ended:
        assert select.select([one], [], [], PATIENCE)[0]
        os.close(one)


def test_a_new_directory_moves_only_the_parts_around_it(tmp_path):
    runs = []
    for number in range(300):
        place = tmp_path / f"run-{number:03}"
        place.mkdir()
        (place / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n')
        runs.append(discover([place]).runs[0])
    named = [NamedRun(run, run.path.parent.name) for run in runs]
    before = {part.key for part in parts(named, "")}
    after = {part.key for part in parts(named[:150] + named[151:], "")}
    assert len(before) > 10
    assert len(before - after) <= 2
    assert {part.key for part in parts(named, "other")}.isdisjoint(before)


def test_the_tables_can_be_read_by_others(tmp_path, tree):
    archived(tmp_path, tree)
    runs = pl.read_parquet(tmp_path / "results" / "runs" / "*.parquet")
    incidents = pl.read_parquet(tmp_path / "results" / "incidents" / "*.parquet")
    assert runs.height == len(discover([tree]).runs)
    worst = dict(zip(runs["run"], runs["worst"], strict=True))
    assert worst["kl-blowup"] == "critical"
    assert worst["healthy-rl"] is None
    assert set(incidents["path"]) <= set(runs["path"])
    assert Path(runs["path"][0]).is_absolute()


def test_the_report_says_what_failures_cost(tmp_path, tree, capsys):
    results, _ = archived(tmp_path, tree)
    text = "\n".join(line for _, line in report.lines(whole(results, tree)))
    assert text.startswith("12 runs in 13 logs: ")
    for title in ("By fault:", "By framework:", "By week:", "What cost the most"):
        assert title in text
    assert "kl-blowup  1 run" in text


@pytest.mark.slow  # processes
def test_commands(sentinel, tmp_path, tree):
    out = tmp_path / "results"
    ran = sentinel("replay", tree / "kl-blowup", "--out", out, "--workers", 1)
    assert ran.status == 0
    assert ran.out.startswith("1 run judged, 0 were known")
    assert sentinel("reduce", out).out.startswith("1 run: 1 critical")
    assert json.loads(sentinel("reduce", out, "--format", "json").out)["coverage"]["read"] == 1
    assert "write I/N" in sentinel("replay", tree, "--out", out, "--shard", "3/3").err
    assert (
        "`sentinel reduce` makes the report" in sentinel("replay", tree, "--out", out, "--format", "html").err
    )
    assert "need --out DIR" in sentinel("replay", tree, "--workers", 2).err
    missing = sentinel("reduce", tmp_path / "nothing")
    assert missing.status == 2
    assert "no results" in missing.err
