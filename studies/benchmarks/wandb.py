"""One million history values in one ``.wandb`` file: our reader beside the others.

Run with ``python -m studies.benchmarks.wandb``. The file is laid out as wandb's own process writes it:
each history record follows a summary record of the same numbers, and its items are in no order. wandb has no
reader that yields a frame any more; `protobuf` is the usual loop over the messages into a polars frame.
`export` is how long it takes to write the history as JSON lines in such a loop, `read_ndjson` how long polars
takes to read those: less than the file itself takes, but only once somebody has exported it.
"""

import random
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import unpack_from

import orjson
import polars as pl
from wandb.proto.wandb_internal_pb2 import HistoryRecord, Record, SummaryRecord

from sentinel.sources.wandb.offline import WandbFile
from studies.benchmarks.tensorboard import TAGS
from tests.sources.wandb.log_writer import BLOCK, CHUNK_HEADER, FULL, HEADER, LAST, framed

VALUES = 1_000_000
LIMIT = 100_000  # points a poll


def write_run(path: Path, values: int) -> None:
    """What a training writes that logs TAGS at each step."""
    order = random.Random(0)
    names = [*TAGS, "_step", "_timestamp", "_runtime"]
    number = offset = 0
    with path.open("wb") as file:
        offset += file.write(HEADER)
        for step in range(values // len(TAGS)):
            row = {tag: order.random() / (1 + step) for tag in TAGS}
            row |= {"_step": step, "_timestamp": 1.7e9 + 0.37 * step, "_runtime": 0.37 * step}
            order.shuffle(names)
            items = [{"nested_key": [name], "value_json": repr(row[name])} for name in names]
            for record in (
                Record(summary=SummaryRecord(update=items)),
                Record(history=HistoryRecord(item=items, step={"num": step})),
            ):
                number += 1
                record.num = number
                offset += file.write(framed(record.SerializeToString(), offset))


def sentinel(path: Path) -> int:
    source = WandbFile(path)
    cursor = {}
    points = 0
    more = True
    while more:
        batch = source.poll(cursor, LIMIT)
        assert not batch.read_issues
        points += sum(len(chunk.value) for chunk in batch.chunks)
        cursor = batch.cursor
        more = batch.more
    return points


def messages(path: Path) -> Iterator[Record]:
    data = path.read_bytes()
    position = len(HEADER)
    parts = b""
    while position < len(data):
        room = BLOCK - position % BLOCK
        if room < CHUNK_HEADER:
            position += room
        checksum, length, kind = unpack_from("<IHB", data, position)
        begin = position + CHUNK_HEADER
        end = position + CHUNK_HEADER + length
        assert zlib.crc32(data[begin - 1 : end]) == checksum
        parts += data[begin:end]
        if kind in (FULL, LAST):
            yield Record.FromString(parts)
            parts = b""
        position = end


def rows(path: Path) -> Iterator[dict[str, float]]:
    for message in messages(path):
        if message.HasField("history"):
            yield {i.key or ".".join(i.nested_key): orjson.loads(i.value_json) for i in message.history.item}


def protobuf(path: Path) -> int:
    return _points(pl.DataFrame(list(rows(path))))


def export(path: Path) -> int:
    count = 0
    with path.with_suffix(".jsonl").open("wb") as file:
        for row in rows(path):
            file.write(orjson.dumps(row) + b"\n")
            count += sum(not name.startswith("_") for name in row)
    return count


def read_ndjson(path: Path) -> int:
    return _points(pl.read_ndjson(path.with_suffix(".jsonl")))


def _points(frame: pl.DataFrame) -> int:
    return sum(frame[name].count() for name in frame.columns if not name.startswith("_"))


def seconds(read: Callable[[Path], int], path: Path, values: int) -> float:
    start = time.perf_counter()
    assert read(path) == values, f"{read.__name__} read something else"
    return time.perf_counter() - start


def main(values: int = VALUES) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "run-benchmark.wandb")
        write_run(path, values)
        print(f"{values:,} values of {len(TAGS)} tags, {path.stat().st_size / 1e6:.0f} MB")
        seconds(sentinel, path, values)  # imports
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ours = min(seconds(sentinel, path, values) for _ in range(3))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        others = [(read, seconds(read, path, values)) for read in (protobuf, export, read_ndjson)]
    print(f"{'sentinel':<24}{ours:8.3f} s   {grown:.0f} MiB more at the second reading")
    for read, taken in others:
        print(f"{read.__name__:<24}{taken:8.3f} s   {taken / ours:6.1f} times as long")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
