"""The processes that write into one file, told apart by a column that names them, such as `rank`.

The process that writes first has the stream of the file. Each further one has a stream of its own. If there
are more than a few dozen, the column holds something else, and all that follows belongs to the first stream.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.sources.base import Chunk
from sentinel.sources.readers.plain import Plain
from sentinel.sources.readers.records import Records, named

if TYPE_CHECKING:
    import polars as pl

_PROCESS_KEYS = (
    "rank",
    "global_rank",
    "process_index",
    "worker",
    "worker_id",
    "pid",
    "run_id",
    "run",
    "run_name",
)
_MOST = 64
_LONGEST = 100  # characters of a name


class Writers:
    """The streams of one file, given the memory of those before (``{}`` for none).

    ``restarted`` says that the file began anew.
    """

    def __init__(self, stream: str, memory: Mapping[str, Any], restarted: bool) -> None:
        self.count = 0  # points of this poll
        memories = memory.get("writers", {"": {}})
        if restarted:
            memories = {name: {"restarted": True} for name in memories}
            memory = {}
        self._stream = stream
        self._first: str | None = memory.get("first")  # process that wrote first
        self._are_processes: bool = memory.get("are_processes", True)
        self._writers = {name: _ProcessRecords(process_memory) for name, process_memory in memories.items()}

    def memory(self) -> dict[str, Any]:
        """Return what the next records need to know of these; JSON-able."""
        return {
            "first": self._first,
            "are_processes": self._are_processes,
            "writers": {name: writer.memory() for name, writer in self._writers.items()},
        }

    def add(self, record: Mapping[str, Any], line: int) -> None:
        """Add a record with points."""
        self.count += self._of(record).add(record, line)

    def configure(self, record: Mapping[str, Any], settings: Mapping[str, Plain]) -> None:
        """Add settings that precede the next points. ``record`` is the one that states them."""
        self._of(record).configure(settings)

    def add_rows(self, frame: "pl.DataFrame") -> bool:
        """Add rows of numbers. False if they must be added one by one."""
        if named(frame.columns, _PROCESS_KEYS) is not None:
            return False
        added = self._writer("").add_rows(frame)
        self.count += added
        return added > 0

    def chunks(self) -> Iterator[Chunk]:
        """Yield the points and settings of this poll."""
        for name, writer in self._writers.items():
            yield from writer.chunks(f"{self._stream}:{name}" if name else self._stream)

    def _of(self, record: Mapping[str, Any]) -> "_ProcessRecords":
        column = named(record, _PROCESS_KEYS) if self._are_processes else None
        value = record[column] if column else None
        if type(value) is float and value.is_integer():
            value = int(value)  # orjson reads no NaN, and what reads it reads all numbers as floats
        if type(value) not in (int, str) or len(str(value)) > _LONGEST:
            return self._writer("")
        name = f"{column} {value}"
        self._first = self._first or name
        self._are_processes = len(self._writers) <= _MOST
        return self._writer("" if name == self._first or not self._are_processes else name)

    def _writer(self, name: str) -> "_ProcessRecords":
        if name not in self._writers:
            self._writers[name] = _ProcessRecords({})
        return self._writers[name]


class _ProcessRecords:
    """What one process wrote, given the memory of its earlier records."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self._records = Records(memory.get("records", {}))
        self._restarted: bool = memory.get("restarted", False)  # no point was read since then
        self._chunks: list[Chunk] = []
        self._config: Mapping[str, Plain] = {}  # that precedes the next point

    def memory(self) -> dict[str, Any]:
        return {"records": self._records.memory(), "restarted": self._restarted}

    def add(self, record: Mapping[str, Any], line: int) -> int:
        """Add a record. Gives the number of its points."""
        before = len(self._records)
        self._records.add(record, line)
        return len(self._records) - before

    def configure(self, settings: Mapping[str, Plain]) -> None:
        if self._records:
            self._end_chunk(self._records.chunk("", self._restarted))
            self._records = Records(self._records.memory())
        self._config = {**self._config, **settings}

    def add_rows(self, frame: "pl.DataFrame") -> int:
        """Add rows of numbers. Gives the number of their points; 0 if they must be added one by one."""
        if chunk := self._records.rows(frame, "", self._restarted):
            self._end_chunk(chunk)
            return chunk.value.size
        return 0

    def chunks(self, stream: str) -> Sequence[Chunk]:
        if self._records or self._config:
            self._end_chunk(self._records.chunk("", self._restarted))
        return [replace(chunk, stream=stream) for chunk in self._chunks]

    def _end_chunk(self, chunk: Chunk) -> None:
        self._chunks.append(replace(chunk, config=self._config))
        self._config = {}
        self._restarted = self._restarted and not len(chunk.step)
