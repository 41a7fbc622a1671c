"""Writes ``.wandb`` files record by record, as wandb does."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from struct import pack
from typing import Any

from wandb.proto.wandb_internal_pb2 import HistoryRecord, Record

HEADER = b":W&B\xe1\xbe\0"
BLOCK = 1 << 15
CHUNK_HEADER = 7
FULL = 1
FIRST = 2
MIDDLE = 3
LAST = 4


class WandbLog:
    """One file. What was written is on disk."""

    def __init__(self, path: Path):
        self.path = path
        self.size = self.records = 0
        path.touch()
        self.append(HEADER)

    def history(self, row: Mapping[str, Any]) -> None:
        self.write(Record(history=history_record(row)))

    def write(self, record: Record) -> None:
        self.records += 1
        record.num = self.records
        self.append(framed(record.SerializeToString(), self.size))

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)
        self.size += len(data)


def history_record(row: Mapping[str, Any]) -> HistoryRecord:
    record = HistoryRecord()
    for name, value in row.items():
        record.item.add(nested_key=[name], value_json=json.dumps(value))
    record.step.num = row.get("_step", 0)
    return record


def framed(payload: bytes, offset: int) -> bytes:
    """The chunks of one record, the first of which begins at this offset of the file."""
    room = BLOCK - offset % BLOCK
    padding = bytes(room if room < CHUNK_HEADER else 0)
    room = (BLOCK if padding else room) - CHUNK_HEADER
    parts = [payload[:room]]
    whole = BLOCK - CHUNK_HEADER
    parts += [payload[at : at + whole] for at in range(room, len(payload), whole)]
    kinds = [FULL] if len(parts) == 1 else [FIRST, *[MIDDLE] * (len(parts) - 2), LAST]
    return padding + b"".join(map(chunk, kinds, parts))


def chunk(kind: int, data: bytes) -> bytes:
    checked = bytes([kind]) + data
    return pack("<IH", zlib.crc32(checked), len(data)) + checked
