"""The results of an archive on disk: Parquet files by part, and a manifest that says which of them count.

    DIR/runs/KEY.parquet         a row for each run
    DIR/incidents/KEY.parquet    a row for each incident
    DIR/incidents/siblings.parquet   the same of incidents that only a comparison of all runs finds
    DIR/parts/KEY.json           who judged the part, and the checksums of its tables
    DIR/manifest-0-of-1.json     the parts of a shard, and what could not be searched

Every file appears whole: it is written under another name and renamed. A part is done when its checksums are
there and its tables have them. One process writes for a shard at a time, and removes only what it wrote.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from sentinel.archives.lock import sole_writer
from sentinel.archives.record import Glance, PackedCourses, Record, glance, unpacked_record
from sentinel.archives.slurm_accounting import Owners
from sentinel.archives.tables import IncidentColumns, RunColumns, columns, incident_row, run_row
from sentinel.common.errors import SentinelError
from sentinel.common.paths import exists
from sentinel.common.shard import WHOLE, Shard
from sentinel.common.text import clean_text
from sentinel.sources.readers.files import open_log

_SIBLINGS = "siblings"  # no part: what runs are beside their siblings
_PARQUET_TABLES = ("incidents", "runs")
_TABLE_ERRORS = (OSError, pl.exceptions.PolarsError)  # of a table that is read or written

_BLOCK_ROWS = 64  # rows of a table of runs that are read at once
_MAX_BLOCKS_OF_RECORDS = 8  # that stay in memory
_MAX_COURSES_IN_MEMORY = 4096  # runs whose courses stay in memory
_MAX_NAMED = 3  # files, in a message
_MAX_REASON = 200  # characters of an error of polars

_Block = Sequence[tuple[bytes, str | None, float | None]]


class PartState(msgspec.Struct, frozen=True):
    """What is known of a part: the ``shard`` that judged it, the stamp of the owners that its table of runs
    was written with, how many runs could not be judged, and the checksums of its tables, none before all of
    them are there.
    """

    shard: str
    owners: str = ""
    failures: int = 0
    checksums: Mapping[str, str] = {}


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of a shard.

    ``paths`` are where the parts were looked for. ``siblings`` is what the configuration says of the rule
    about siblings; None in results that are older.
    """

    schema: int
    shards: int
    parts: Sequence[str]
    read_issues: Sequence[str]
    paths: Sequence[str]
    siblings: Mapping[str, Any] | None = None


class Row(NamedTuple):
    """Where the record of a run is: the key of a part, and the number of the row in its table."""

    part: str
    number: int


class Results:
    """A directory of results."""

    def __init__(self, directory: Path, owners: Owners | None = None, shard: Shard = WHOLE) -> None:
        self._directory = directory
        self._owners = owners or Owners()
        self.shard = shard

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make the directories, and keep other processes from writing for this shard meanwhile.

        Raises SentinelError if they cannot be written, or if another process writes.
        """
        try:
            for table_name in ("parts", *_PARQUET_TABLES):
                (self._directory / table_name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SentinelError(f"{self._directory}: results cannot be written: {error.strerror}") from None
        with sole_writer(self._directory, self.shard):
            yield

    def require_paths(self, paths: Sequence[str]) -> None:
        """Raise SentinelError if results are here of a path that none of these holds: they would be removed.

        A manifest that is damaged says of none.
        """
        for manifest_file in self._manifests():
            with suppress(_DamagedManifest):
                left_out = [path for path in _manifest(manifest_file).paths if not _is_within(path, paths)]
                if left_out:
                    names = ", ".join(left_out[:_MAX_NAMED]) + (", ..." if len(left_out) > _MAX_NAMED else "")
                    raise SentinelError(
                        f"{self._directory}: holds results of {names}, which would be removed; name that as "
                        "well, or give another --out"
                    )

    def has(self, part_key: str) -> bool:
        """Return whether a part is done and whole. What another shard did is this one's from now on."""
        part_state = self._state(part_key)
        if part_state is None or not part_state.checksums or self._damaged(part_key, part_state):
            return False
        if part_state.shard != str(self.shard):
            self._write_state(part_key, msgspec.structs.replace(part_state, shard=str(self.shard)))
        return True

    def damaged(self, part_key: str) -> list[Path]:
        """Return the files of a part that was done and is no longer whole."""
        part_state = self._state(part_key)
        if part_state is not None:
            return self._damaged(part_key, part_state)
        results_file = self._state_file(part_key)
        return [results_file] if exists(results_file) else []

    def failures(self, part_key: str) -> bool:
        """Return whether a part that is done has a run which could not be judged."""
        part_state = self._state(part_key)
        return part_state is not None and part_state.failures > 0

    def write(self, part_key: str, packed: Sequence[bytes]) -> int:
        """Write the records of a part, and return the number of those that could not be judged."""
        self._write_state(part_key, PartState(str(self.shard)))  # so that what a kill leaves is somebody's
        archived_runs = [unpacked_record(content) for content in packed]
        incidents = [
            incident_row(record, incident) for record in archived_runs for incident in record.incidents
        ]
        _replace(self._file("incidents", part_key), pl.DataFrame(incidents, columns(IncidentColumns)))
        run_rows = [run_row(record, part_key, self._owners) for record in archived_runs]
        table = pl.DataFrame(run_rows, columns(RunColumns)).with_columns(
            record=pl.Series(packed, dtype=pl.Binary)
        )
        _replace(self._file("runs", part_key), table)
        failures = sum(record.overview is None for record in archived_runs)
        checksums = {kind: _checksum(self._file(kind, part_key)) for kind in _PARQUET_TABLES}
        self._write_state(part_key, PartState(str(self.shard), self._owners.stamp, failures, checksums))
        return failures

    def write_siblings(self, incident_rows: Iterable[IncidentColumns]) -> None:
        """Write the incidents that only a comparison of all runs finds, until the results change."""
        _replace(self._file("incidents", _SIBLINGS), pl.DataFrame([*incident_rows], columns(IncidentColumns)))

    def finish(
        self,
        part_keys: Iterable[str],
        read_issues: Iterable[str],
        siblings: Mapping[str, Any],
        paths: Sequence[str],
    ) -> None:
        """Say which parts are those of the archive as it is now, and remove the others of this shard, and
        those of another number of shards once all shards are done.

        ``siblings`` is what the configuration says of the rule about siblings; see `sibling_rule`. ``paths``
        are where the parts were looked for; see `require_paths`.
        """
        keys = [*part_keys]
        for part_key in keys:
            part_state = self._state(part_key)
            if part_state is None or part_state.owners != self._owners.stamp:
                self.write(part_key, [*self.packed(part_key)])
        content = msgspec.json.encode(Manifest(1, self.shard.count, keys, [*read_issues], paths, siblings))
        manifest_file = self._directory / f"manifest-{self.shard.index}-of-{self.shard.count}.json"
        _write(manifest_file, lambda file: file.write_bytes(msgspec.json.format(content, indent=1)))
        for old_manifest in self._manifests():
            if not old_manifest.name.endswith(f"-of-{self.shard.count}.json"):
                old_manifest.unlink()
        self._remove_others({*keys})

    def _remove_others(self, keys: set[str]) -> None:
        all_done = len(self._manifests()) == self.shard.count
        shard_count = f"/{self.shard.count}"
        with suppress(OSError):  # such as on a disk that failed meanwhile; the next one removes them
            self._file("incidents", _SIBLINGS).unlink(missing_ok=True)
            for part_file in (self._directory / "parts").glob("*.json"):
                part_state = self._state(part_file.stem)
                shard = part_state.shard if part_state else ""
                is_own = shard == str(self.shard) and part_file.stem not in keys
                if is_own or (all_done and not shard.endswith(shard_count)):
                    for table_name in _PARQUET_TABLES:
                        self._file(table_name, part_file.stem).unlink(missing_ok=True)
                    part_file.unlink(missing_ok=True)

    def parts(self) -> list[str]:
        """Return the keys of all parts. Raises SentinelError unless the results are complete and whole."""
        keys = [key for manifest in self._read_manifests() for key in manifest.parts]
        broken = [file for key in keys for file in self._missing(key)]
        if broken:
            file_names = ", ".join(str(file) for file in broken[:_MAX_NAMED])
            ellipsis = ", ..." if len(broken) > _MAX_NAMED else ""
            mend = "`sentinel archive judge` with the same paths judges again what is not whole"
            raise SentinelError(f"{file_names}{ellipsis}: damaged or missing; {mend}")
        return keys

    def _missing(self, part_key: str) -> list[Path]:
        """Return the files of a part that are damaged or not there."""
        part_state = self._state(part_key)
        if part_state is None or not part_state.checksums:
            return [self._state_file(part_key)]
        return self._damaged(part_key, part_state)

    def _damaged(self, part_key: str, part_state: PartState) -> list[Path]:
        files = [(self._file(kind, part_key), checksum) for kind, checksum in part_state.checksums.items()]
        return [file for file, checksum in files if _checksum(file) != checksum]

    def _state(self, part_key: str) -> PartState | None:
        try:
            return msgspec.json.decode(_content(self._state_file(part_key)), type=PartState)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _write_state(self, part_key: str, part_state: PartState) -> None:
        _write(self._state_file(part_key), lambda file: file.write_bytes(msgspec.json.encode(part_state)))

    def _state_file(self, part_key: str) -> Path:
        return self._directory / "parts" / f"{part_key}.json"

    def packed(self, part_key: str) -> Iterator[bytes]:
        """Yield the packed records of a part, in their order."""
        first_row = 0
        while block := self._block(part_key, first_row):
            yield from (content for content, _, _ in block)
            first_row += _BLOCK_ROWS

    def glance(self, row: Row) -> Glance:
        """Return what is compared among all runs, of the record in a row."""
        return glance(self._stored_row(row)[0])

    def record(self, row: Row) -> Record:
        """Return the record in a row, with what the table says of its owner."""
        content, user, gpus = self._stored_row(row)
        return msgspec.structs.replace(unpacked_record(content), user=user, gpus=gpus)

    @lru_cache(_MAX_COURSES_IN_MEMORY)  # noqa: B019  one is made for each command
    def courses(self, row: Row) -> PackedCourses:
        """Return the courses by which a run is compared with those that differ from it in one setting."""
        comparable = self.record(row).comparable
        return comparable.courses if comparable else {}

    def _stored_row(self, row: Row) -> tuple[bytes, str | None, float | None]:
        within = row.number % _BLOCK_ROWS
        return self._block(row.part, row.number - within)[within]

    @lru_cache(_MAX_BLOCKS_OF_RECORDS)  # noqa: B019  one is made for each command
    def _block(self, part_key: str, first_record: int) -> _Block:
        file = self._file("runs", part_key)
        try:
            table = pl.scan_parquet(file, glob=False).slice(first_record, _BLOCK_ROWS)
            return table.select("record", "user", "gpus").collect().rows()
        except _TABLE_ERRORS as error:
            raise SentinelError(f"{file}: cannot be read: {_why(error)}") from None

    def sibling_rule(self) -> Mapping[str, Any] | None:
        """Return what the configuration said of the rule about siblings; None of results that are older."""
        rules = (manifest.siblings for manifest in self._read_manifests())
        return next((rule for rule in rules if rule is not None), None)

    def read_issues(self) -> list[str]:
        """Return what could not be searched."""
        return [*dict.fromkeys(text for manifest in self._read_manifests() for text in manifest.read_issues)]

    def _read_manifests(self) -> list[Manifest]:
        manifests = [_manifest(manifest_file) for manifest_file in self._manifests()]
        if not manifests:
            raise SentinelError(
                f"{self._directory}: no results; `sentinel archive judge PATH --out DIR` makes them"
            )
        if missing := manifests[0].shards - len(manifests):
            raise SentinelError(
                f"{self._directory}: {missing} of {manifests[0].shards} shards are not done yet"
            )
        return manifests

    def _manifests(self) -> list[Path]:
        return sorted(self._directory.glob("manifest-*-of-*.json"))

    def _file(self, kind: str, part_key: str) -> Path:
        return self._directory / kind / f"{part_key}.parquet"


class _DamagedManifest(SentinelError):
    """A manifest that cannot be read, or holds something else."""


def _manifest(manifest_file: Path) -> Manifest:
    try:
        return msgspec.json.decode(_content(manifest_file), type=Manifest)
    except OSError as error:
        raise _DamagedManifest(f"{manifest_file}: cannot be read: {_why(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _DamagedManifest(
            f"{manifest_file}: damaged; `sentinel archive judge` with the same paths writes it again"
        ) from None


def _is_within(path: str, paths: Iterable[str]) -> bool:
    """Return whether a path, or an address, is one of these or lies below one."""
    return any(path == above or path.startswith(f"{above.rstrip('/')}/") for above in paths)


def _content(file: Path) -> bytes:
    with open_log(file) as content:
        return content.read()


def _checksum(file: Path) -> str:
    """Return the checksum of a file; empty if it cannot be read."""
    try:
        return blake2b(_content(file)).hexdigest()
    except OSError:
        return ""


def _replace(table_file: Path, table: pl.DataFrame) -> None:
    _write(table_file, lambda file: table.write_parquet(file, compression="zstd", row_group_size=_BLOCK_ROWS))


def _write(results_file: Path, write: Callable[[Path], object]) -> None:
    """Make a file appear whole. Raises SentinelError if it cannot be written; nothing is left of it then."""
    unfinished = results_file.with_name(f".{results_file.name}.{os.getpid()}")
    try:
        write(unfinished)
        unfinished.replace(results_file)
    except _TABLE_ERRORS as error:
        raise SentinelError(f"{results_file}: cannot be written: {_why(error)}") from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _why(error: Exception) -> str:
    """Return an error in one line."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return clean_text(reason, _MAX_REASON)
