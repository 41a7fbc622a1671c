"""Finds the texts and images of event files that were logged nearest to some steps.

The records are only found here and given as they are. They are few, so that a reader that parses each event
by itself, such as tbparse, is fast on them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any

from sentinel.sources.base import Samples
from sentinel.sources.readers.files import open_log
from sentinel.sources.tensorboard.settings import settings_in

_LENGTH_HEADER = Struct("<Q4x")  # length, and its checksum
_MARKS = b"\x0a\x04text", b"\x0a\x06images", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
"""Names of plugins as protobuf writes them, and how PNG and JPEG begin."""

_MAX_EVENT_FILES = 64  # of a run; a report waits for them
_MAX_FILE_BYTES = 128 << 20  # a larger file is left out
_MAX_RECORD = 1 << 20  # bytes; a report would grow too large
_MAX_RECORDS = 20_000  # of a file that are looked at
_MAX_SAMPLE_TAGS = 12  # for each step


def samples(files: Sequence[Path], steps: Iterable[int]) -> Samples:
    """Return for each step the record nearest to it of each tag, as the bytes of an event file.

    Texts that state settings are left out. Above the bounds of this module a file is not searched, and
    ``problems`` says so.
    """
    targets = sorted({*steps})
    problems = []
    near: dict[int, dict[str, tuple[int, bytes]]] = {step: {} for step in targets}
    if len(files) > _MAX_EVENT_FILES:
        problems.append(f"texts and images were searched in {_MAX_EVENT_FILES} of {len(files)} event files")
    for path in files[:_MAX_EVENT_FILES]:
        try:
            with open_log(path) as file:
                data = file.read(_MAX_FILE_BYTES + 1)
        except OSError as error:
            problems.append(f"{path.name}: cannot be read for texts and images ({error.strerror})")
            continue
        if len(data) > _MAX_FILE_BYTES:
            limit = f"{_MAX_FILE_BYTES >> 20} MiB"
            problems.append(f"{path.name}: is larger than {limit}, so its texts and images are not shown")
            continue
        for tag, step, framed in islice(_samples(data), _MAX_RECORDS):
            for target in targets:
                of_step = near[target]
                distance = abs(step - target)
                nearer = of_step.get(tag)
                if distance < nearer[0] if nearer else len(of_step) < _MAX_SAMPLE_TAGS:
                    of_step[tag] = distance, framed
    nearest = {step: dict.fromkeys(framed for _, framed in tags.values()) for step, tags in near.items()}
    return Samples({step: b"".join(framed) for step, framed in nearest.items() if framed}, problems)


def _samples(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield tag, step and framed record of each text and image."""
    from google.protobuf.message import DecodeError  # slow to import
    from tensorboard.compat.proto.event_pb2 import Event

    for framed in _marked(data):
        record = framed[_LENGTH_HEADER.size : -4]
        try:
            event = Event.FromString(record)
            settings = settings_in(record)
        except DecodeError:
            continue
        for value in event.summary.value if not settings else ():
            if _is_sample(value):
                yield value.tag, event.step, framed


def _is_sample(value: Any) -> bool:
    """Return whether it is an image or a text; an image's tensor begins with its width and height."""
    plugin = value.metadata.plugin_data.plugin_name
    texts = value.tensor.string_val
    return bool(value.image.encoded_image_string or (plugin, len(texts) > 0) == ("text", True)) or (
        plugin == "images" and len(texts) > 2
    )


def _marked(data: bytes) -> Iterator[bytes]:
    """Yield the framed records that hold one of the marks. Records behind a broken frame are not found."""
    marks = iter(sorted(offset for mark in _MARKS for offset in _offsets(data, mark)))
    mark = next(marks, None)
    begin = 0
    last = len(data) - _LENGTH_HEADER.size
    while mark is not None and begin <= last:
        (length,) = _LENGTH_HEADER.unpack_from(data, begin)
        end = begin + _LENGTH_HEADER.size + length + 4
        if mark < end <= len(data):
            if length <= _MAX_RECORD:
                yield data[begin:end]
            while mark is not None and mark < end:
                mark = next(marks, None)
        begin = end


def _offsets(data: bytes, mark: bytes) -> Iterator[int]:
    """Yield where a mark begins; several times as fast as one pattern for all marks."""
    offset = data.find(mark)
    while offset >= 0:
        yield offset
        offset = data.find(mark, offset + 1)
