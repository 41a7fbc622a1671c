"""The results of an archive on disk: Parquet files by part, and a manifest that says which of them count.

    DIR/runs/KEY.parquet         a row for each run
    DIR/incidents/KEY.parquet    a row for each incident
    DIR/incidents/siblings.parquet   the same of incidents that only a comparison of all runs finds
    DIR/manifest-0-of-1.json     the parts of a shard, and what could not be searched

Every file appears whole: it is written under another name and renamed. A part is done when its runs are
there, because they are written after its incidents.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from sentinel.archives.record import Glance, PackedCourses, Record, glance, unpacked_record
from sentinel.archives.slurm_accounting import Owners
from sentinel.archives.tables import IncidentColumns, RunColumns, columns, incident_row, run_row
from sentinel.common.errors import SentinelError
from sentinel.common.shard import Shard

_SIBLINGS = "siblings"  # no part: what runs are beside their siblings
_OWNERS = "owners"  # metadata of the tables of runs: the stamp of the owners that they were written with


_BLOCK_ROWS = 64  # rows of a table of runs that are read at once
_MAX_BLOCKS = 8
_MAX_COURSES = 4096  # runs

_Block = Sequence[tuple[bytes, str | None, float | None]]


class Row(NamedTuple):
    """Where the record of a run is: the key of a part, and the number of the row in its table."""

    part: str
    number: int


class Results:
    """A directory of results."""

    def __init__(self, directory: Path, owners: Owners | None = None) -> None:
        self._directory = directory
        self._owners = owners or Owners()

    def begin(self) -> None:
        """Make the directories. Raises SentinelError if they cannot be written."""
        try:
            for kind in ("runs", "incidents"):
                (self._directory / kind).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SentinelError(f"{self._directory}: results cannot be written: {error.strerror}") from None

    def has(self, key: str) -> bool:
        """Return whether a part is done."""
        return self._file("runs", key).exists()

    def failures(self, key: str) -> bool:
        """Return whether a part that is done has a run which could not be judged."""
        column = pl.read_parquet(self._file("runs", key), columns=["failure"])["failure"]
        return column.null_count() < len(column)

    def write(self, key: str, packed: Sequence[bytes]) -> int:
        """Write the records of a part, and return the number of those that could not be judged."""
        records = [unpacked_record(content) for content in packed]
        incidents = [incident_row(record, incident) for record in records for incident in record.incidents]
        _replace(self._file("incidents", key), pl.DataFrame(incidents, columns(IncidentColumns)), {})
        rows = [run_row(record, key, self._owners) for record in records]
        table = pl.DataFrame(rows, columns(RunColumns)).with_columns(
            record=pl.Series(packed, dtype=pl.Binary)
        )
        _replace(self._file("runs", key), table, {_OWNERS: self._owners.stamp})
        return sum(record.overview is None for record in records)

    def write_siblings(self, rows: Iterable[IncidentColumns]) -> None:
        """Write the incidents that only a comparison of all runs finds, until the results change."""
        _replace(self._file("incidents", _SIBLINGS), pl.DataFrame([*rows], columns(IncidentColumns)), {})

    def finish(
        self, shard: Shard, parts: Iterable[str], complaints: Iterable[str], siblings: Mapping[str, Any]
    ) -> None:
        """Say which parts are those of the archive as it is now, and remove what no manifest names.

        ``siblings`` is what the configuration says of the rule about siblings; see `sibling_rule`.
        """
        keys = [*parts]
        manifest = {
            "schema": 1,
            "shards": shard.count,
            "parts": keys,
            "read_issues": [*complaints],
            "siblings": siblings,
        }
        for key in keys:
            if pl.read_parquet_metadata(self._file("runs", key)).get(_OWNERS) != self._owners.stamp:
                self.write(key, [*self.packed(key)])
        place = self._directory / f"manifest-{shard.index}-of-{shard.count}.json"
        _write(place, lambda part: part.write_text(json.dumps(manifest, indent=1), encoding="utf-8"))
        for old in self._manifests():
            if not old.name.endswith(f"-of-{shard.count}.json"):
                old.unlink()
        if len(self._manifests()) == shard.count:
            named_keys = {key for shard_manifest in self._read_manifests() for key in shard_manifest["parts"]}
            for kind in ("runs", "incidents"):
                for file in (self._directory / kind).glob("*.parquet"):
                    if file.stem not in named_keys:
                        file.unlink()

    def parts(self) -> list[str]:
        """Return the keys of all parts. Raises SentinelError if the results are not complete."""
        return [key for manifest in self._read_manifests() for key in manifest["parts"]]

    def packed(self, part: str) -> Iterator[bytes]:
        """Yield the packed records of a part, in their order."""
        first = 0
        while block := self._block(part, first):
            yield from (content for content, _, _ in block)
            first += _BLOCK_ROWS

    def glance(self, row: Row) -> Glance:
        """Return what is compared among all runs, of the record in a row."""
        return glance(self._row(row)[0])

    def record(self, row: Row) -> Record:
        """Return the record in a row, with what the table says of its owner."""
        content, user, gpus = self._row(row)
        return msgspec.structs.replace(unpacked_record(content), user=user, gpus=gpus)

    @lru_cache(_MAX_COURSES)  # noqa: B019  one is made for each command
    def courses(self, row: Row) -> PackedCourses:
        """Return the courses by which a run is compared with those that differ from it in one setting."""
        comparable = self.record(row).comparable
        return comparable.courses if comparable else {}

    def _row(self, row: Row) -> tuple[bytes, str | None, float | None]:
        within = row.number % _BLOCK_ROWS
        return self._block(row.part, row.number - within)[within]

    @lru_cache(_MAX_BLOCKS)  # noqa: B019  one is made for each command
    def _block(self, part: str, first: int) -> _Block:
        table = pl.scan_parquet(self._file("runs", part), glob=False).slice(first, _BLOCK_ROWS)
        return table.select("record", "user", "gpus").collect().rows()

    def sibling_rule(self) -> Mapping[str, Any] | None:
        """Return what the configuration said of the rule about siblings; None of results that are older."""
        return next(
            (manifest["siblings"] for manifest in self._read_manifests() if "siblings" in manifest), None
        )

    def read_issues(self) -> list[str]:
        """Return what could not be searched."""
        return [
            *dict.fromkeys(text for manifest in self._read_manifests() for text in manifest["read_issues"])
        ]

    def _read_manifests(self) -> list[dict[str, Any]]:
        manifests = [json.loads(place.read_text(encoding="utf-8")) for place in self._manifests()]
        if not manifests:
            raise SentinelError(
                f"{self._directory}: no results; `sentinel archive judge PATH --out DIR` makes them"
            )
        if missing := manifests[0]["shards"] - len(manifests):
            raise SentinelError(
                f"{self._directory}: {missing} of {manifests[0]['shards']} shards are not done yet"
            )
        return manifests

    def _manifests(self) -> list[Path]:
        return sorted(self._directory.glob("manifest-*-of-*.json"))

    def _file(self, kind: str, key: str) -> Path:
        return self._directory / kind / f"{key}.parquet"


def _replace(place: Path, table: pl.DataFrame, metadata: dict[str, str]) -> None:
    _write(
        place,
        lambda part: table.write_parquet(
            part, compression="zstd", row_group_size=_BLOCK_ROWS, metadata=metadata
        ),
    )


def _write(place: Path, write: Callable[[Path], object]) -> None:
    """Make a file appear whole. Raises SentinelError if it cannot be written."""
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        write(part)
        part.replace(place)
    except OSError as error:
        raise SentinelError(f"{place}: cannot be written: {error.strerror or error}") from None
