"""Event files, byte for byte as torch and tensorboardX write them, built from parts."""

import struct
from pathlib import Path

import google_crc32c
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from tests.sources.reader import Reader

NAME = "events.out.tfevents.1700000000.host.123.0"

SCALARS = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
TEXT = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
SHAPELESS = TensorShapeProto()


def checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def header(length: int) -> bytes:
    packed = struct.pack("<Q", length)
    return packed + checksum(packed)


def record(payload: bytes) -> bytes:
    return header(len(payload)) + payload + checksum(payload)


def event(*values: Summary.Value, step: int = 0, time: float = 1.7e9) -> bytes:
    """The record of one event with these values."""
    return record(Event(wall_time=time, step=step, summary=Summary(value=values)).SerializeToString())


def scalar(tag: str, step: int, value: float, time: float = 1.7e9) -> bytes:
    return event(Summary.Value(tag=tag, simple_value=value), step=step, time=time)


VERSION = record(Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
"""The first record of every event file."""


def tensor(tag: str, metadata: SummaryMetadata | None = SCALARS, **fields: object) -> Summary.Value:
    return Summary.Value(tag=tag, tensor=TensorProto(**fields), metadata=metadata)


WORDS = tensor("note", TEXT, dtype="DT_STRING", string_val=[b"hello"])


def read(log: Path, *records: bytes) -> Reader:
    """What is read from an event file of these records."""
    log.write_bytes(b"".join([VERSION, *records]))
    return Reader(log.parent).poll(limit=50_000)
