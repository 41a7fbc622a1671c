"""The results of an archive on disk: Parquet files by part, and a manifest that says which of them count.

    DIR/runs/KEY.parquet         a row for each run
    DIR/incidents/KEY.parquet    a row for each incident
    DIR/manifest-0-of-1.json     the parts of a shard, and what could not be searched

Every file appears whole: it is written under another name and renamed. A part is done when its runs are
there, because they are written after its incidents.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from sentinel.alerts.incident import Change
from sentinel.archives.owners import Owners
from sentinel.archives.record import Comparable, PackedCourses, Record, SiblingRecord, unpacked_record
from sentinel.archives.tables import IncidentColumns, RunColumns, columns, incident_row, run_row
from sentinel.ground.errors import SentinelError
from sentinel.ground.shard import Shard

_OWNERS = "owners"  # metadata of the tables of runs: the stamp of the owners that they were written with


_PARTS_AT_HAND = 64  # whose courses are kept in memory while runs are compared
_PARTS_TOLD = 4  # whose changes are, as what shares a training lies in one part, if it can


class Results:
    """A directory of results."""

    def __init__(self, directory: Path, owners: Owners | None = None) -> None:
        self._directory = directory
        self._owners = owners or Owners()
        self._part_of: dict[str, str] = {}  # by run id

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

    def write(self, key: str, packed: Sequence[bytes]) -> int:
        """Keep the records of a part. Gives the number of those that could not be judged."""
        records = [unpacked_record(content) for content in packed]
        incidents = [incident_row(record, incident) for record in records for incident in record.incidents]
        _replace(self._file("incidents", key), pl.DataFrame(incidents, columns(IncidentColumns)), {})
        rows = [run_row(record, key, self._owners) for record in records]
        table = pl.DataFrame(rows, columns(RunColumns)).with_columns(
            record=pl.Series(packed, dtype=pl.Binary)
        )
        _replace(self._file("runs", key), table, {_OWNERS: self._owners.stamp})
        return sum(record.seen is None for record in records)

    def _packed(self, key: str) -> Sequence[bytes]:
        return pl.read_parquet(self._file("runs", key), columns=["record"])["record"].to_list()

    def finish(
        self, shard: Shard, parts: Iterable[str], complaints: Iterable[str], siblings: Mapping[str, Any]
    ) -> None:
        """Say which parts are those of the archive as it is now, and remove what no manifest names.

        ``siblings`` is what the configuration says of the rule about siblings; see `sibling_rule`.
        """
        keys = [*parts]
        told = {
            "schema": 1,
            "shards": shard.count,
            "parts": keys,
            "complaints": [*complaints],
            "siblings": siblings,
        }
        for key in keys:
            if pl.read_parquet_metadata(self._file("runs", key)).get(_OWNERS) != self._owners.stamp:
                self.write(key, self._packed(key))
        place = self._directory / f"manifest-{shard.index}-of-{shard.count}.json"
        _write(place, lambda part: part.write_text(json.dumps(told, indent=1), encoding="utf-8"))
        for old in self._manifests():
            if not old.name.endswith(f"-of-{shard.count}.json"):
                old.unlink()
        if len(self._manifests()) == shard.count:
            kept = {key for done in self._told() for key in done["parts"]}
            for kind in ("runs", "incidents"):
                for file in (self._directory / kind).glob("*.parquet"):
                    if file.stem not in kept:
                        file.unlink()

    def records(self) -> list[Record]:
        """All runs, by path, without their courses and changes.

        Raises SentinelError if the results are not complete.
        """
        keys = [key for done in self._told() for key in done["parts"]]
        records, settings = {}, dict[bytes, bytes]()
        for key in keys:
            for record in self._records(key):
                self._part_of[record.id] = key
                bare = record.comparable and Comparable(record.comparable.settings, {})
                own = record.sibling
                if own is not None:
                    own = SiblingRecord(settings.setdefault(own.settings, own.settings), own.healthy, {})
                one = msgspec.structs.replace(record, comparable=bare, sibling=own, changes=())
                records[record.id, record.failure] = one
        # A run to which a link leads may be in two parts.
        return sorted(records.values(), key=lambda record: (Path(record.path).parts, record.format))

    def sibling_rule(self) -> Mapping[str, Any] | None:
        """What the configuration said of the rule about siblings; None of results that are older."""
        return next((done["siblings"] for done in self._told() if "siblings" in done), None)

    def courses(self, run: str) -> PackedCourses:
        """The courses of a run that `records` gave, by its id."""
        return self._courses(self._part_of[run])[run]

    @lru_cache(_PARTS_AT_HAND)  # noqa: B019  one is made for each command
    def _courses(self, key: str) -> Mapping[str, PackedCourses]:
        kept = ((one.id, (one.comparable, one.sibling)) for one in self._records(key))
        return {run: {k: v for of in both if of for k, v in of.courses.items()} for run, both in kept}

    def changes(self, run: str) -> Sequence[Change]:
        """What happened to the incidents of a run that `records` gave, by its id, in order."""
        return self._changes(self._part_of[run])[run]

    @lru_cache(_PARTS_TOLD)  # noqa: B019  one is made for each command
    def _changes(self, key: str) -> Mapping[str, Sequence[Change]]:
        return {one.id: one.changes for one in self._records(key)}

    def _records(self, key: str) -> Iterator[Record]:
        rows = pl.read_parquet(self._file("runs", key), columns=["record", "user", "gpus"])
        for content, user, gpus in rows.select("record", "user", "gpus").iter_rows():
            yield msgspec.structs.replace(unpacked_record(content), user=user, gpus=gpus)

    def complaints(self) -> list[str]:
        """What could not be searched."""
        return [*dict.fromkeys(text for done in self._told() for text in done["complaints"])]

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


def _replace(place: Path, table: pl.DataFrame, metadata: dict[str, str]) -> None:
    _write(place, lambda part: table.write_parquet(part, compression="zstd", metadata=metadata))


def _write(place: Path, write: Callable[[Path], object]) -> None:
    """Make a file appear whole. Raises SentinelError if it cannot be written."""
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        write(part)
        part.replace(place)
    except OSError as error:
        raise SentinelError(f"{place}: cannot be written: {error.strerror or error}") from None
