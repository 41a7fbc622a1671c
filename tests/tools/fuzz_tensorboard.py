"""Damaged event files: no crash, no hang, bounded memory, every complaint names the file and the byte.

    python -m tests.tools.fuzz_tensorboard COUNT [SEED]

Half of the damage is done inside records whose checksums are then made to hold again, so that it also
reaches what lies behind the framing.
"""

import random
import re
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto

from tests.sources.reader import Reader
from tests.sources.tensorboard.writer import NAME, VERSION, checksum, event, header, record, scalar

_LENGTHS = [0, 1, 255, 1 << 16, 1 << 24, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 60, (1 << 64) - 1]
_BOMBS = [header(n) for n in _LENGTHS] + [struct.pack("<Q", n) + checksum(b"") for n in _LENGTHS]
_TOKENS = [*_BOMBS, VERSION, b"\0", bytes(20), bytes(5000), b"\xff" * 20, b"\xff\xfe", b"*\x02\n\0" * 500]


def _samples() -> list[list[bytes]]:
    """The records of healthy files."""
    scalars = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    loop = [scalar(tag, i, 1 / (i + 1), 1.7e9 + i) for i in range(90) for tag in ("loss", "norm", "rate/lr")]
    tensors = [
        Summary.Value(tag="x", metadata=scalars, tensor=TensorProto(dtype="DT_FLOAT", float_val=[i]))
        for i in range(80)
    ]
    others = [
        Summary.Value(tag="h", histo=HistogramProto(num=9, bucket_limit=range(30), bucket=range(30))),
        Summary.Value(tag="i", image=Summary.Image(encoded_image_string=bytes(900))),
        Summary.Value(tag="t", tensor=TensorProto(dtype="DT_STRING", string_val=[b"words"])),
    ]
    return [
        [VERSION],
        [VERSION, *loop],
        [VERSION, *(event(value, step=i) for i, value in enumerate(tensors))],
        [VERSION, *loop[:9], *map(event, others), *loop[9:90], event(*others, *tensors[:5]), *loop[90:]],
    ]


def _flip(data: bytes, chance: random.Random) -> bytes:
    flipped = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 20])):
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def _truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _cut(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice([1, 4, 12, 60, 500]) :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + chance.choice([*_TOKENS, chance.randbytes(30)]) + data[start:]


def _overwrite(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    token = chance.choice([*_TOKENS, chance.randbytes(30)])
    return data[:start] + token + data[start + len(token) :]


def _splice(data: bytes, chance: random.Random) -> bytes:
    other = b"".join(chance.choice(_SAMPLES))
    return data[: chance.randrange(len(data))] + other[chance.randrange(len(other)) :]


_SAMPLES = _samples()
_MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    _flip, _truncate, _cut, _insert, _overwrite, _splice,
]  # fmt: skip


def _mutated(chance: random.Random) -> bytes:
    records = list(chance.choice(_SAMPLES))
    inside = chance.random() < 0.5
    for _ in range(chance.randint(1, 3) * inside):
        place = chance.randrange(len(records))
        payload = records[place][12:-4]
        records[place] = record(chance.choice(_MUTATIONS)(payload or b"\n", chance))
    data = b"".join(records)
    for _ in range(chance.randint(1 - inside, 3)):
        data = chance.choice(_MUTATIONS)(data or b"\n", chance)
    return data


def fuzz_tensorboard(count: int, seed: int) -> int:
    """Read so many damaged files in random pieces; gives the number of points read.

    Raises AssertionError, or whatever the source raised, with the seed that does it again.
    """
    points = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, NAME)
        for number in range(seed, seed + count):
            chance = random.Random(number)
            try:
                points += _read_in_pieces(path, _mutated(chance), chance)
            except BaseException as error:
                error.add_note(f"seed {number}")
                raise
    return points


def _read_in_pieces(path: Path, data: bytes, chance: random.Random) -> int:
    path.unlink(missing_ok=True)
    path.touch()
    reader = Reader(path.parent)
    cuts = sorted(chance.choices(range(len(data) + 1), k=chance.randint(0, 3)))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        with path.open("ab") as file:
            file.write(data[start:end])
        reader.poll(chance.choice([1, 50, 10_000]))
    assert reader.points == Reader(path.parent).poll(10_000).points
    for complaint in reader.read_issues:
        assert re.match(rf"{re.escape(str(path))} at byte \d+: record ", complaint), complaint
    return len(reader.points)


if __name__ == "__main__":
    count, seed = [*map(int, sys.argv[1:]), 0][:2]
    began = time.perf_counter()
    read = fuzz_tensorboard(count, seed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} files, {read} points, {time.perf_counter() - began:.0f} s, peak {peak:.0f} MB resident")
