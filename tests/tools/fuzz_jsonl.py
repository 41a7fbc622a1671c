"""Mutated JSONL files: no crash, no hang, bounded memory, every complaint names the file and the line.

    python -m tests.tools.fuzz_jsonl COUNT [SEED [FILE...]]

FILEs are mutated instead of the samples that are built in.
"""

import json
import math
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sentinel.sources.json.lines import JsonLines

_LARGEST = 1 << 18  # bytes of a mutated file
_TOKENS = [
    b"\n", b"\r\n", b"\0", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u0000", b"\\ud800", b"\xff",
    b"\xef\xbb\xbf", b"\xff\xfe{\0", b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"1" * 19,
    b"0x1f", b'"12/500"', b'"2024-02-30T00:00:00"', b'{"step": 1e300}', b'"epoch": NaN', b'"iter": -5',
    b'{"a":' * 3000, b"[" * 3000, b"x" * 100_000,
]  # fmt: skip


def _records(i: int) -> list[dict[str, Any]]:
    """The records of step ``i`` as several libraries write them."""
    loss = 4.0 / (i + 1) + 0.01 * (i % 7)
    epoch = i / 60
    return [
        {
            "current_steps": i,
            "loss": loss,
            "lr": 1e-5,
            "epoch": epoch,
            "elapsed_time": "0:01:03",
            "eval_loss": None,
        },
        {"loss": loss, "token_acc": 0.5, "global_step/max_steps": f"{i}/60", "percentage": "2%"},
        {"mode": "train", "epoch": i // 20, "iter": i % 20, "lr": 0.0, "time": 0.3, "loss": loss},
        {
            "_step": i,
            "_timestamp": 1.7e9 + i,
            "train": {"loss": loss, "grad": {"norm": str(loss)}},
            "bins": [1, 2],
        },
        {"epoch": i, "loss": math.nan if i > 50 else loss, "date": "2024-01-01T00:00:00Z", "best": True},
    ]


def _samples() -> list[bytes]:
    logs = zip(*(_records(i) for i in range(60)), strict=True)
    return ["".join(json.dumps(record) + "\n" for record in log).encode() for log in logs]


def _flip(data: bytes, chance: random.Random) -> bytes:
    flipped = bytearray(data)
    for _ in range(chance.randint(1, 20)):
        flipped[chance.randrange(len(flipped))] = chance.randrange(256)
    return bytes(flipped)


def _cut(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.choices(range(len(data) + 1), k=2))
    return data[:start] + data[end:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.choices(range(len(data) + 1), k=2))
    return data[:end] + data[start:end] * chance.randint(1, 4) + data[end:]


def _insert(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(data) + 1)
        data = data[:place] + chance.choice(_TOKENS) + data[place:]
    return data


def _swap_numbers(data: bytes, chance: random.Random) -> bytes:
    return re.sub(rb"\d+\.\d+", lambda n: chance.choice(_TOKENS) if chance.random() < 0.05 else n[0], data)


_MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [_flip, _cut, _repeat, _insert, _swap_numbers]


def fuzz_jsonl(count: int, seed: int, samples: Sequence[bytes] = ()) -> int:
    """Read so many mutated files in random pieces; gives the number of points read.

    Raises AssertionError, or whatever the source raised, with the seed that does it again.
    """
    originals = samples or _samples()
    points = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "metrics.jsonl")
        for number in range(seed, seed + count):
            chance = random.Random(number)
            data = chance.choice(originals)
            for _ in range(chance.randint(1, 3)):
                data = chance.choice(_MUTATIONS)(data or b"{", chance)[:_LARGEST]
            try:
                points += _read_in_pieces(path, data, chance)
            except BaseException as error:
                error.add_note(f"seed {number}")
                raise
    return points


def _read_in_pieces(path: Path, data: bytes, chance: random.Random) -> int:
    path.unlink(missing_ok=True)
    path.touch()
    source = JsonLines(path)
    cursor = {}
    points = 0
    cuts = sorted(chance.choices(range(len(data) + 1), k=chance.randint(0, 3)))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        with path.open("ab") as file:
            file.write(data[start:end])
        for _ in range(len(data) + 2):
            batch = source.poll(cursor, chance.choice([1, 50, 10_000]))
            cursor = json.loads(json.dumps(batch.cursor, allow_nan=False))
            points += sum(chunk.value.size for chunk in batch.chunks)
            for complaint in batch.read_issues:
                assert complaint.path == path
                assert re.fullmatch(r"line \d+", complaint.location) or "UTF-16" in complaint.problem
            if not batch.more:
                break
        else:
            raise AssertionError("polling never ends")
    return points


if __name__ == "__main__":
    count, seed, *files = [*sys.argv[1:], "0"] if len(sys.argv) == 2 else sys.argv[1:]
    began = time.perf_counter()
    read = fuzz_jsonl(int(count), int(seed), [Path(file).read_bytes() for file in files])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} files, {read} points, {time.perf_counter() - began:.0f} s, peak {peak:.0f} MB resident")
