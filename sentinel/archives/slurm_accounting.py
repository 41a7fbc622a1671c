"""Who ran what on how many GPUs, as Slurm's accounting tells it.

    sacct --allusers --starttime 2026-01-01 --parsable2 --format WorkDir,User,Account,AllocTRES,Start,End

makes the columns, which polars turns into Parquet: ``pl.read_csv(FILE, separator="|").write_parquet(...)``.
"""

import math
import os
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import polars as pl

from sentinel.common.errors import SentinelError
from sentinel.common.lazy_pattern import lazy_pattern

_SLURM_COLUMNS = ("WorkDir", "User", "Account", "AllocTRES", "Start", "End")
_GPUS_OF_JOB = lazy_pattern(r"\bgres/gpu=(\d+)")


class Owner(NamedTuple):
    """What is known of the job that wrote a log; None where nothing is."""

    user: str | None = None
    project: str | None = None
    gpus: float | None = None


class _SlurmJob(NamedTuple):
    start: float
    end: float
    owner: Owner


class Owners(msgspec.Struct, frozen=True):
    """The jobs by their working directory. ``stamp`` is another one for another table."""

    jobs: dict[str, list[_SlurmJob]] = msgspec.field(default_factory=dict)
    stamp: str = ""

    @classmethod
    def read(cls, table: Path) -> Self:
        """Return the jobs in a Parquet table. Raises SentinelError if it is none, or lacks a column."""
        try:
            content = table.read_bytes()
            job_rows = pl.read_parquet(content, columns=list(_SLURM_COLUMNS))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise SentinelError(
                f"--owners {table}: no Parquet table with the columns {', '.join(_SLURM_COLUMNS)} "
                f"({type(error).__name__})"
            ) from None
        jobs: dict[str, list[_SlurmJob]] = {}
        for row in job_rows.unique().sort(_SLURM_COLUMNS).iter_rows(named=True):
            if row["WorkDir"]:
                jobs.setdefault(os.path.normpath(row["WorkDir"]), []).append(_job(row))
        return cls(jobs, blake2b(content, digest_size=8).hexdigest())

    def owner(self, path: str, began: float | None) -> Owner:
        """Return the owner of the run at ``path``: the job that worked nearest above it when the run began.

        Nothing is known if several jobs with different answers worked there then, or if the log has no times.
        """
        above = path
        while began is not None and above not in ("", "/"):
            owners = {job.owner for job in self.jobs.get(above, ()) if job.start <= began <= job.end}
            if owners:
                return owners.pop() if len(owners) == 1 else Owner()
            above = above.rpartition("/")[0]
        return Owner()


def _job(row: dict[str, Any]) -> _SlurmJob:
    gpus = _GPUS_OF_JOB.search(row["AllocTRES"] or "")
    owner = Owner(row["User"] or None, row["Account"] or None, float(gpus[1]) if gpus else None)
    return _SlurmJob(_time(row["Start"], -math.inf), _time(row["End"], math.inf), owner)


def _time(time_text: object, unknown: float) -> float:
    """Return seconds since the epoch; Slurm writes local times, and `Unknown` for a job that still runs."""
    try:
        return datetime.fromisoformat(str(time_text)).timestamp()
    except ValueError:
        return unknown
