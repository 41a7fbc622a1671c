"""The results of an archive on disk: Parquet files by part, and a manifest that says which of them count.

    DIR/runs/KEY.parquet         a row for each run
    DIR/incidents/KEY.parquet    a row for each incident
    DIR/manifest-0-of-1.json     the parts of a shard, and what could not be searched

Every file appears whole: it is written under another name and renamed. A part is done when its runs are
there, because they are written after its incidents.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sentinel.alerts.incident import Incident
from sentinel.alerts.wire import utc_text
from sentinel.archives.parts import Shard
from sentinel.archives.record import Record, unpacked_record
from sentinel.ground.errors import SentinelError

RUNS: Mapping[str, Any] = {
    "run": pl.String,
    "path": pl.String,
    "source": pl.String,
    "framework": pl.String,
    "user": pl.String,
    "began": pl.String,
    "ended": pl.String,
    "processes": pl.Int64,
    "points": pl.Int64,
    "last_step": pl.Int64,
    "incidents": pl.Int64,
    "worst": pl.String,
    "failure": pl.String,
    "record": pl.Binary,
}
"""The columns of a run. Times are ISO 8601 in UTC. ``processes`` that trained together, where the settings
say. ``record`` is what `sentinel reduce` reads."""

INCIDENTS: Mapping[str, Any] = {
    "run": pl.String,
    "path": pl.String,
    "id": pl.String,
    "detector": pl.String,
    "severity": pl.String,
    "maturity": pl.String,
    "signal": pl.String,
    "state": pl.String,
    "onset_step": pl.Int64,
    "onset_time": pl.String,
    "fired_step": pl.Int64,
    "fired_time": pl.String,
    "last_step": pl.Int64,
    "causes": pl.List(pl.String),
    "inhibited_by": pl.String,
    "summary": pl.String,
}
"""The columns of an incident."""


class Results:
    """A directory of results."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def begin(self) -> None:
        """Make the directories. Raises SentinelError if they cannot be written."""
        try:
            for kind in ("runs", "incidents"):
                (self._directory / kind).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SentinelError(f"{self._directory}: results cannot be written: {error.strerror}") from None

    def has(self, key: str) -> bool:
        """Whether a part is done."""
        return self._file("runs", key).exists()

    def failures(self, key: str) -> bool:
        """Whether a part that is done has a run which could not be judged."""
        column = pl.read_parquet(self._file("runs", key), columns=["failure"])["failure"]
        return column.null_count() < len(column)

    def write(self, key: str, packed: Sequence[bytes]) -> None:
        """Keep the records of a part."""
        found = [(unpacked_record(one), one) for one in packed]
        incidents = [_incident_row(record, incident) for record, _ in found for incident in record.incidents]
        _replace(self._file("incidents", key), pl.DataFrame(incidents, INCIDENTS, orient="row"))
        rows = [(*_run_row(record), content) for record, content in found]
        _replace(self._file("runs", key), pl.DataFrame(rows, RUNS, orient="row"))

    def finish(self, shard: Shard, parts: Iterable[str], complaints: Iterable[str]) -> None:
        """Say which parts are those of the archive as it is now, and remove what no manifest names."""
        told = {"schema": 1, "shards": shard.count, "parts": [*parts], "complaints": [*complaints]}
        place = self._directory / f"manifest-{shard.index}-of-{shard.count}.json"
        _write(place, lambda part: part.write_text(json.dumps(told, indent=1), encoding="utf-8"))
        for old in self._manifests():
            if not old.name.endswith(f"-of-{shard.count}.json"):
                old.unlink()
        if len(self._manifests()) == shard.count:
            kept = {key for one in self._told() for key in one["parts"]}
            for kind in ("runs", "incidents"):
                for file in (self._directory / kind).glob("*.parquet"):
                    if file.stem not in kept:
                        file.unlink()

    def records(self) -> list[Record]:
        """All runs, by path. Raises SentinelError if the results are not complete."""
        keys = [key for one in self._told() for key in one["parts"]]
        found = (
            unpacked_record(content)
            for key in keys
            for content in pl.read_parquet(self._file("runs", key), columns=["record"])["record"]
        )
        return sorted(found, key=lambda one: (Path(one.path).parts, one.format))

    def complaints(self) -> list[str]:
        """What could not be searched."""
        return [*dict.fromkeys(text for one in self._told() for text in one["complaints"])]

    def _told(self) -> list[dict[str, Any]]:
        told = [json.loads(place.read_text(encoding="utf-8")) for place in self._manifests()]
        if not told:
            raise SentinelError(f"{self._directory}: no results; `sentinel replay PATH --out DIR` makes them")
        if missing := told[0]["shards"] - len(told):
            raise SentinelError(
                f"{self._directory}: {missing} of {told[0]['shards']} shards are not done yet"
            )
        return told

    def _manifests(self) -> list[Path]:
        return sorted(self._directory.glob("manifest-*-of-*.json"))

    def _file(self, kind: str, key: str) -> Path:
        return self._directory / kind / f"{key}.parquet"


def _run_row(record: Record) -> tuple[Any, ...]:
    seen, described = record.seen, record.described
    facts = seen.facts if seen else None
    worst = max(
        (incident.severity for incident in record.incidents if incident.inhibited_by is None), default=None
    )
    return (
        record.name,
        record.path,
        record.format,
        seen.understanding.framework if seen else None,
        _owner(record.path),
        utc_text(facts.first_time) if facts else None,
        utc_text(facts.last_time) if facts else None,
        described.world_size,
        facts.points if facts else 0,
        facts.last_step if facts else None,
        len(record.incidents),
        worst.label if worst is not None else None,
        record.failure or (seen.stopped if seen else None),
    )


def _incident_row(record: Record, one: Incident) -> tuple[Any, ...]:
    return (
        record.name,
        record.path,
        one.id,
        one.detector,
        one.severity.label,
        one.maturity.value,
        one.signal,
        one.state.value,
        one.onset_step,
        utc_text(one.onset_time),
        one.fired_step,
        utc_text(one.fired_time),
        one.last_step,
        list(one.catalogue),
        one.inhibited_by,
        one.summary,
    )


def _owner(path: str) -> str | None:
    """Whose log it is, if it lies on this machine."""
    try:
        return Path(path).owner()
    except (OSError, KeyError, NotImplementedError):
        return None


def _replace(place: Path, table: pl.DataFrame) -> None:
    _write(place, lambda part: table.write_parquet(part, compression="zstd"))


def _write(place: Path, write: Callable[[Path], object]) -> None:
    """Make a file appear whole. Raises SentinelError if it cannot be written."""
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        write(part)
        part.replace(place)
    except OSError as error:
        raise SentinelError(f"{place}: cannot be written: {error.strerror or error}") from None
