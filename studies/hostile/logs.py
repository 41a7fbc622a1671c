"""Logs of each format, harmed in each way, beside a sick run that must be found all the same."""

import codecs
import io
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sentinel.config.file import Config
from sentinel.replays.listing import list_runs
from sentinel.replays.replaying import replay
from sentinel.report.terminal import show
from studies.hostile.attempt import Attempt, require
from tests.sources.writers import WRITERS, Writer

AREA = "Readers"
STEPS = 60
SPARSE_BYTES = 64 << 20
TAG = "loss<script>\x1b]0;x\x07\u202e $(reboot)"

INVISIBLE = "\x1b\u202e\x07"
"""Characters of the tag that no terminal may get."""

Harm = Callable[[Path], None]


def truncated(log: Path) -> None:
    os.truncate(log, log.stat().st_size * 2 // 3)


def zero_filled(log: Path) -> None:
    log.write_bytes(bytes(max(log.stat().st_size, 1 << 20)))


def zeros_in_the_middle(log: Path) -> None:
    content = log.read_bytes()
    middle = len(content) // 2
    log.write_bytes(content[:middle] + bytes(4096) + content[middle:])


def repeated(log: Path) -> None:
    log.write_bytes(log.read_bytes() * 200)


def deep(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b'\n{"step": 61, "loss": ' + b'{"a": [' * 100_000 + b"\n")


def wide(log: Path) -> None:
    row = json.dumps({"step": 61, **{f"metric/{number}": number for number in range(10_000)}})
    cells = ",".join(map(str, range(20_000)))
    log.write_bytes(log.read_bytes() + f"\n{row}\n{cells}\n".encode())


def huge_line(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b'\n{"step": 61, "loss": "' + b"1 epoch loss: " * (1 << 20) + b"\n")


def wrong_encoding(log: Path) -> None:
    log.write_bytes(codecs.BOM_UTF16_LE + log.read_bytes().decode("latin-1").encode("utf-16-le") + b"\xff")


def flipped(log: Path) -> None:
    content = bytearray(log.read_bytes())
    for place in range(0, len(content), 97):
        content[place] ^= 0xA5
    log.write_bytes(content)


def link(log: Path) -> None:
    log.unlink()
    log.symlink_to("/proc/kmsg")


def link_to_everything(log: Path) -> None:
    (log.parent / "more").symlink_to("/")


def pipe(log: Path) -> None:
    log.unlink()
    os.mkfifo(log)


def sparse(log: Path) -> None:
    os.truncate(log, SPARSE_BYTES)


HARMS: dict[str, Harm] = {
    "truncated": truncated,
    "zero-filled": zero_filled,
    "zeros within": zeros_in_the_middle,
    "repeated": repeated,
    "bytes flipped": flipped,
    "deep": deep,
    "wide": wide,
    "huge line": huge_line,
    "wrong encoding": wrong_encoding,
    "link to the kernel": link,
    "link to /": link_to_everything,
    "pipe": pipe,
    "sparse": sparse,
}


def attempts() -> Iterator[Attempt]:
    """Yield each reader with each harm."""
    for name, writer in WRITERS.items():
        for harm, do in HARMS.items():
            yield Attempt(AREA, name, harm, partial(_try, writer, do, "loss"))
        yield Attempt(AREA, name, "hostile names", partial(_try, writer, lambda _: None, TAG))


def _try(writer: type[Writer], harm: Harm, tag: str, place: Path) -> None:
    harmed = place / "runs" / "harmed"
    harmed.mkdir(parents=True)
    _write(writer, harmed, tag)
    harm(_largest(harmed))
    rows = [{"step": step, "loss": 1.0 if step < 50 else float("nan")} for step in range(STEPS)]
    sick = place / "runs" / "sick"
    sick.mkdir()
    (sick / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = _stamps(harmed)
    result = replay([place / "runs"], Config(), lambda *_: None)
    list_runs([place / "runs"], {}, {}, 0.0)
    found = {run.run_pipeline.log.name: run for run in result.runs}
    require("sick/metrics.jsonl" in found, "the run beside it is gone")
    require(found["sick/metrics.jsonl"].incidents, "the run beside it lost its incident")
    require(
        all(str(run.run_pipeline.log.run.path).startswith(str(place)) for run in result.runs), "it leads out"
    )
    text = io.StringIO()
    show(result, text)
    require(not {*INVISIBLE} & {*text.getvalue()}, "its names reach the terminal")
    require(_stamps(harmed) == before, "something was written beside it")


def _write(writer: type[Writer], place: Path, tag: str) -> None:
    log = writer()
    log.start(place)
    for step in range(STEPS):
        log.log(step, {tag: 1.0 / (step + 1), "accuracy": step / STEPS})
    log.close()


def _largest(place: Path) -> Path:
    files = [file for file in place.rglob("*") if file.is_file()]
    return max(files, key=lambda file: (file.stat().st_size, str(file)))


def _stamps(place: Path) -> dict[str, tuple[int, int]]:
    stamps = {}
    for file in sorted(place.rglob("*")):
        status = file.lstat()
        stamps[str(file)] = (status.st_size, status.st_mtime_ns)
    return stamps
