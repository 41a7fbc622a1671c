"""Event files, byte for byte as torch and tensorboardX write them, built from parts."""

import struct

import google_crc32c
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

NAME = "events.out.tfevents.1700000000.host.123.0"


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
