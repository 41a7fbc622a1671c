"""Slurm's accounting tells who ran what on how many GPUs, and nothing is guessed."""

import json
from datetime import datetime

import polars as pl
import pytest

from sentinel.archives.slurm_accounting import Owner, Owners
from sentinel.common.errors import SentinelError
from tests.archives.conftest import archived

DAY = "2026-01-0{}T00:00:00"


def job(place, user, gpus, start, end="Unknown"):
    tres = f"billing=8,cpu=8,gres/gpu={gpus},gres/gpu:h100={gpus}" if gpus else "cpu=8"
    return {
        "WorkDir": place,
        "User": user,
        "Account": "vision",
        "AllocTRES": tres,
        "Start": DAY.format(start),
        "End": end if end == "Unknown" else DAY.format(end),
    }


def table(path, *jobs):
    pl.DataFrame(jobs).write_parquet(path)
    return path


def at(day):
    return datetime.fromisoformat(DAY.format(day)).timestamp()


@pytest.fixture
def owners(tmp_path):
    jobs = (
        job("/runs", "admin", 0, 1),
        job("/runs/a/", "ann", 8, 2, 4),
        job("/runs/b", "bob", 4, 1),
        job("/runs/b", "ann", 4, 1),
        job("", "nobody", 1, 1),
    )
    return Owners.read(table(tmp_path / "jobs.parquet", *jobs))


def test_the_nearest_job_that_ran_then_owns_a_run(owners):
    assert owners.owner("/runs/a/metrics.csv", at(3)) == Owner("ann", "vision", 8.0)
    assert owners.owner("/runs/a/deep/er", at(5)) == Owner("admin", "vision", None)
    assert owners.owner("/runs/ab", at(3)) == Owner("admin", "vision", None)


def test_what_is_not_sure_is_not_said(owners):
    assert owners.owner("/runs/b/x", at(3)) == Owner()
    assert owners.owner("/runs/a/x", None) == Owner()
    assert owners.owner("/elsewhere", at(3)) == Owner()


def test_another_table_is_said(tmp_path):
    pl.DataFrame({"User": ["ann"]}).write_parquet(tmp_path / "jobs.parquet")
    for name in ("jobs.parquet", "missing.parquet"):
        with pytest.raises(SentinelError, match="no Parquet table with the columns WorkDir"):
            Owners.read(tmp_path / name)


@pytest.mark.slow
def test_other_owners_change_the_rows_and_judge_nothing_again(tmp_path):
    run = tmp_path / "runs" / "a"
    run.mkdir(parents=True)
    rows = [{"step": i, "loss": 2.0 - i / 100, "_timestamp": at(3) + i} for i in range(60)]
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def found(**options):
        _, judged = archived(tmp_path / "out", tmp_path / "runs", **options)
        runs = pl.read_parquet(tmp_path / "out" / "runs" / "*.parquet")
        return judged.completed, *runs.select("project", "gpus", "gpus_from").row(0)

    jobs = table(tmp_path / "jobs.parquet", job(str(run), "ann", 2, 1))
    assert found() == (1, None, None, None)
    assert found(owners=Owners.read(jobs)) == (0, "vision", 2.0, "owners")
