"""States and archives that are damaged, locked, full, of another version, or written by two at once."""

import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch

from typer.testing import CliRunner

from sentinel.archives.lock import sole_writer
from sentinel.cli.app import program
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError
from sentinel.common.shard import WHOLE
from sentinel.storage.lock import sole_watcher
from studies.hostile.attempt import Attempt, require

STATES = "States"
ARCHIVES = "Archives"
COMMANDS = ("watch --once", "status", "silence list", "silence add * --reason x", "ack 0", "runs")

Harm = Callable[[Path], "AbstractContextManager[object] | None"]


def truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def gone(file: Path) -> None:
    file.unlink()


def a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/proc/kmsg")


def read_only(file: Path) -> None:
    file.chmod(0o400)
    file.parent.chmod(0o500)


DAMAGE: dict[str, Harm] = {
    "truncated": truncated,
    "empty": empty,
    "zeros": zeros,
    "bit flipped": flipped,
    "gone": gone,
    "a directory": a_directory,
    "link to the kernel": a_link,
    "read-only": read_only,
}


def a_file(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_bytes(b"")


FOLDERS: dict[str, Harm] = {
    "a file": a_file,
    "gone": shutil.rmtree,
    "read-only": lambda directory: directory.chmod(0o500),
}


def older(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("DROP TABLE silences")


def newer(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 99")


def odd_rows(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("INSERT INTO silences VALUES ('x', '[[[[', '*', 1e308, 'y', 0, '')")
        database.execute("UPDATE incidents SET incident = '{'")
        database.execute("UPDATE runs SET state = x'00ff'")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.close()


@contextmanager
def two_watches(file: Path) -> Iterator[None]:
    with sole_watcher(file.parent):
        yield


@contextmanager
def full(place: Path) -> Iterator[None]:
    """Fill a disk of eight megabytes that is mounted at the directory."""
    moved = place.with_name("moved")
    place.rename(moved)
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    subprocess.run(mounted, check=True)
    try:
        shutil.copytree(moved, place, dirs_exist_ok=True)
        free = os.statvfs(place)
        (place / "ballast").write_bytes(bytes(free.f_bavail * free.f_bsize))
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


STATE_HARMS: dict[str, Harm] = {
    **DAMAGE,
    "older": older,
    "newer": newer,
    "odd rows": odd_rows,
    "locked": locked,
    "two watches": two_watches,
    "full disk": lambda file: full(file.parent),
}


def other_writer(out: Path) -> AbstractContextManager[object]:
    return sole_writer(out, WHOLE)


def locked_table(out: Path) -> AbstractContextManager[object]:
    file = next((out / "runs").iterdir()).open("rb")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def other_form(out: Path) -> None:
    shutil.rmtree(out / "parts")


def newer_form(out: Path) -> None:
    for file in (out / "parts").iterdir():
        file.write_text(json.dumps({"shard": 7, "more": []}))


def other_paths(out: Path) -> None:
    """Judge what lies elsewhere; the results stay those of the paths from before."""
    elsewhere = out.parent / "elsewhere"
    elsewhere.mkdir()
    before = {*out.rglob("*.parquet")}
    status, text = _run("archive", "judge", elsewhere, "--out", out, "--workers", 1)
    require(status == 2 and "which would be removed" in text, "other paths are judged over the results")
    require({*out.rglob("*.parquet")} == before, "results of other paths were removed")


def archive_harms() -> Iterator[tuple[str, str, Harm]]:
    """Yield what is harmed of an archive, how, and what does it."""
    for kind in ("runs", "incidents", "parts"):
        for name, harm in DAMAGE.items():
            yield f"{kind}", name, lambda out, kind=kind, harm=harm: harm(_of_part(out, kind))
    for kind, pattern in (
        ("manifest", "manifest-*"),
        ("siblings", "incidents/siblings.parquet"),
        ("lock", ".lock-*"),
    ):
        for name, harm in DAMAGE.items():
            yield kind, name, lambda out, pattern=pattern, harm=harm: harm(next(out.glob(pattern)))
    for kind in ("runs", "incidents", "parts"):
        for name in ("a file", "gone", "read-only"):
            yield f"directory {kind}", name, lambda out, kind=kind, name=name: FOLDERS[name](out / kind)
    yield "directory", "other paths", other_paths
    yield "directory", "two writers", other_writer
    yield "directory", "locked", locked_table
    yield "directory", "full disk", full
    yield "directory", "older", other_form
    yield "directory", "newer", newer_form


def attempts() -> Iterator[Attempt]:
    """Yield each state and each archive with each harm."""
    for days in (-1, 1):
        harm = f"a clock set {'back' if days < 0 else 'forth'} a day"
        yield Attempt(STATES, "state", harm, partial(_clock_set, days * 86400.0))
    for harm, do in STATE_HARMS.items():
        yield Attempt(STATES, "state", harm, partial(_state, do))
    for subject, harm, do in archive_harms():
        yield Attempt(ARCHIVES, subject, harm, partial(_archive, do))


def _of_part(out: Path, kind: str) -> Path:
    return next(file for file in (out / kind).iterdir() if file.stem != "siblings")


def _run(*words: object) -> tuple[int, str]:
    """Run a command. It ends with a status and no traceback."""
    result = CliRunner().invoke(program(), [str(word) for word in words])
    error = result.exception
    if isinstance(error, SentinelError):
        return 2, str(error)
    if error is not None and not isinstance(error, SystemExit):
        raise error
    require("Traceback" not in result.output, f"{' '.join(map(str, words[:2]))}: a traceback")
    return result.exit_code, result.output


def _sick(place: Path) -> Path:
    runs = place / "runs"
    runs.mkdir()
    rows = [{"step": step, "loss": 1.0 if step < 50 else float("nan")} for step in range(60)]
    (runs / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return runs


def _state(harm: Harm, place: Path) -> None:
    runs = _sick(place)
    state = place / "state"
    _run("watch", runs, "--once", "--state-dir", state)
    file = state / "sentinel.sqlite"
    with harm(file) or nullcontext():
        for command in COMMANDS:
            words = command.split()
            more = [runs] if words[0] in ("watch", "runs") else []
            _run(*words, *more, *([] if words[0] == "runs" else ["--state-dir", state]))


def _clock_set(seconds: float, place: Path) -> None:
    """A command that gets notifications gets that of an incident after the clock was set, once."""
    runs = _sick(place)
    log = runs / "metrics.jsonl"
    sick_rows = log.read_text()
    log.write_text("".join(sick_rows.splitlines(keepends=True)[:50]))
    mail = place / "mail"
    config = place / "sentinel.toml"
    command = ["sh", "-c", f"cat >> {mail}; echo >> {mail}"]
    config.write_text(
        f'paths = ["{runs}"]\nstate_dir = "{place / "state"}"\n'
        f'[[sinks]]\ntype = "command"\ncommand = {json.dumps(command)}\n'
    )
    _run("watch", "--config", config, "--once")
    log.write_text(sick_rows)
    now = SystemClock.now
    with patch.object(SystemClock, "now", lambda clock: now(clock) + seconds):
        _run("watch", "--config", config, "--once")
        _run("watch", "--config", config, "--once")
        status, _ = _run("status", "--config", config)
    require(status == 0, "the state cannot be shown")
    sent = [json.loads(line)["incident"]["detector"] for line in mail.read_text().splitlines()]
    require(sent.count("non-finite-metric") == 1, f"the command got {sent}")


def _archive(harm: Harm, place: Path) -> None:
    runs = _sick(place)
    out = place / "out"
    judge = ("archive", "judge", runs, "--out", out, "--workers", 1)
    report = ("archive", "report", out, "--format", "json")
    _run(*judge)
    status, before = _run(*report)
    require(status == 0, "the sound archive cannot be read")
    with harm(out) or nullcontext():
        _run(*report)
        _run(*judge)
    _run(*judge)
    status, after = _run(*report)
    if status == 0:
        sound = [json.loads(text)["runs"][0]["incidents"] for text in (before, after)]
        require(sound[0] == sound[1], "the report is another one")
