"""What the records of SwanLab's log files mean: protobuf messages, or JSON in files of SwanLab before 0.8.

Only the messages and fields that sentinel reads are declared here, so SwanLab need not be installed. Their
numbers are those of SwanLab's `protos/swanlab/`.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from sentinel.sources.base import Ending, EndKind, Line
from sentinel.sources.identity import Label
from sentinel.sources.readers.axis import count_of
from sentinel.sources.readers.plain import JSON, LATEST, plain_text
from sentinel.sources.readers.records import seconds

JSON_VERSION = 1  # of the format, as the header of a file states it
PROTOBUF_VERSION = 2  # likewise

_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Timestamp": {"seconds": (1, "int64"), "nanos": (2, "int32")},
    "Value": {"number": (1, "double")},
    "Scalar": {
        "key": (1, "string"),
        "step": (2, "int64"),
        "timestamp": (4, "Timestamp"),
        "value": (5, "Value"),
    },
    "Log": {"line": (1, "string"), "timestamp": (3, "Timestamp")},
    "Start": {"project": (1, "string"), "name": (4, "string")},
    "Finish": {"state": (1, "int32")},
    "Record": {
        "start": (10, "Start"),
        "finish": (11, "Finish"),
        "scalar": (13, "Scalar"),
        "log": (16, "Log"),
    },
}
"""Fields by message: number and type. An enumeration is read as an int32, which it is on the wire."""

_END_OF_STATE = {1: EndKind.FINISHED, 2: EndKind.CRASHED, 3: EndKind.PREEMPTED}
"""Values of SwanLab's ``RunState``. It calls a run aborted (3) that a person interrupted."""


class Scalar(NamedTuple):
    """One number of one metric. ``time`` is NaN if it is not known."""

    key: str
    step: int
    time: float
    value: float


Content = Scalar | Line | Ending | Label | None
"""What a record holds; None for what sentinel does not read."""


def parse(record: bytes, version: int) -> Content:
    """Return the content of a record.

    Raises ValueError for a record that is none of SwanLab's.
    """
    return _of_json(record) if version == JSON_VERSION else _of_protobuf(record)


def _of_protobuf(record: bytes) -> Content:
    from google.protobuf.message import DecodeError  # slow to import

    try:
        message = record_type().FromString(record)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    if message.HasField("scalar"):
        scalar = message.scalar
        return Scalar(scalar.key, scalar.step, _time(scalar.timestamp), scalar.value.number)
    if message.HasField("log"):
        return Line(_time(message.log.timestamp), message.log.line)
    if message.HasField("start"):
        return Label.of(message.start.name, message.start.project)
    if message.HasField("finish") and message.finish.state in _END_OF_STATE:
        return _recorded_ending(_END_OF_STATE[message.finish.state])
    return None


def _of_json(record: bytes) -> Content:
    try:
        message = JSON.decode(record.decode())
        kind = message["model_type"]
        data = message["data"]
        match kind:
            case "Scalar":
                step, _ = count_of(data["step"])
                if step is None:
                    raise ValueError("step")
                time = _json_time(data["metric"].get("create_time"))
                return Scalar(plain_text(data["key"]), step, time, float(data["metric"]["data"]))
            case "Log":
                return Line(_json_time(data["create_time"]), plain_text(data["message"]))
            case "Project":
                return Label.of("", data["name"])
            case "Experiment":
                return Label.of(data["name"], "")
            case "Footer":
                return _recorded_ending(EndKind.FINISHED if data["success"] else EndKind.CRASHED)
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError) as error:
        raise ValueError(type(error).__name__) from None
    return None


def _recorded_ending(outcome: EndKind) -> Ending:
    return Ending(outcome, f"its last record says {outcome}")


def _time(timestamp: Any) -> float:
    when = timestamp.seconds + timestamp.nanos / 1e9
    return when if 0 < when < LATEST else math.nan


def _json_time(text: Any) -> float:
    when = seconds(text) if isinstance(text, str) else None
    return math.nan if when is None else when


@cache
def record_type() -> Any:
    """Return the class of the messages."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    file = FileDescriptorProto(name="swanlab.proto", package="swanlab", syntax="proto3")
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            field = declared.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            if kind in _MESSAGES:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".swanlab.{kind}"
            else:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("swanlab.Record"))
