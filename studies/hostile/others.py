"""What another user closed, and processes that have the number of a training which is over."""

import json
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sentinel.processes.description import describe, describe_writer
from sentinel.processes.exits import open_handle
from sentinel.processes.finder import HOLDS_LOG, Host, LogWriter
from sentinel.processes.ranks import Roster
from sentinel.processes.table import process, processes
from studies.hostile.attempt import Attempt, require
from tests.permissions import commanded
from tests.processes.running import holding, running, running_as

USERS = "Other users"
NUMBERS = "Process numbers"
NOBODY = 65534
IDLES = "import sys; print('ready', flush=True); sys.stdin.read()"
OLD_SECONDS = 1800.0
"""Age of a file that names the process of a training which is over."""

STATE_COMMANDS = (
    "status",
    "silence list",
    "silence add x --reason x",
    "ack 0",
    "show none",
    "silence remove 0",
)
LOG_COMMANDS = ("", "runs", "replay", "watch --once", "archive judge")

Harm = Callable[[Path], object]


def closed(path: Path) -> None:
    path.chmod(0)


def half_closed(path: Path) -> None:
    """Take away the right to search a directory, or to read a file."""
    path.chmod(0o400 if path.is_dir() else 0o200)


def anothers(path: Path) -> None:
    """Give a path to another user who lets nobody else in."""
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o700)


def to_be_read(path: Path) -> None:
    """Give a path to another user who lets all others read."""
    for each in (path, *path.rglob("*")):
        os.chown(each, NOBODY, NOBODY)
        each.chmod(0o755 if each.is_dir() else 0o644)


LOG_HARMS: dict[str, Harm] = {"closed": closed, "half closed": half_closed, "another user's": anothers}
STATE_HARMS: dict[str, Harm] = {**LOG_HARMS, "to be read alone": to_be_read}


def attempts() -> Iterator[Attempt]:
    """Yield what is closed, and how, and each way to name or to hold a log with each number."""
    for subject, part in (("log", "metrics.jsonl"), ("directory", ""), ("tree", "..")):
        for harm, do in LOG_HARMS.items():
            yield Attempt(USERS, subject, harm, partial(_logs, part, do))
    for subject in ("state", "state at rest"):
        for harm, do in STATE_HARMS.items():
            yield Attempt(USERS, subject, harm, partial(_state, subject == "state at rest", do))
    for harm, do in LOG_HARMS.items():
        yield Attempt(USERS, "archive", harm, partial(_archive, do))
    for kind in NAMES:
        yield Attempt(NUMBERS, kind, "given again", partial(_given_again, kind))
        yield Attempt(NUMBERS, kind, "of another user", partial(_of_another_user, kind))
        yield Attempt(NUMBERS, kind, "of the kernel", partial(_of_the_kernel, kind))
    yield Attempt(NUMBERS, "holder", "given again", _holder)
    yield Attempt(NUMBERS, "holder", "of another user", _holder_of_another_user)
    yield Attempt(NUMBERS, "rank", "given again", _rank)


def _sick(place: Path) -> Path:
    place.mkdir(parents=True)
    rows = [{"step": step, "loss": 1.0 if step < 50 else float("nan")} for step in range(60)]
    (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def _answer(command: str, *words: object) -> tuple[int, str]:
    status, text = commanded(*command.split(), *words)
    require(status in (0, 2), f"{command}: status {status}")
    return status, text


def _logs(part: str, harm: Harm, place: Path) -> None:
    """A log that may not be read is named, and costs no other its incident."""
    log = _sick(place / "runs" / "group" / "harmed")
    _sick(place / "runs" / "sick")
    path = (log / part).resolve() if part else log
    try:
        harm(path)
        for command in LOG_COMMANDS:
            more = ["--state-dir", place / "state"] if command.startswith("watch") else []
            more += ["--out", place / "out"] if command.startswith("archive") else []
            status, text = _answer(command, place / "runs", *more)
            require(status == 0, f"{command}: {text.strip()[-100:]}")
            if "archive" not in command:
                require("sick/metrics.jsonl" in text, f"{command}: the run beside it is gone")
                require("Permission denied" in text or "not be read: 1" in text, f"{command}: not named")
        status, text = _answer("replay", path)
        require((status, len(text.splitlines())) == (2, 1), "what is named alone is no line")
    finally:
        _open_again(place)


def _state(is_at_rest: bool, harm: Harm, place: Path) -> None:
    """A state that may not be read or written is one line."""
    runs = _sick(place / "runs")
    state = place / "state"
    _answer("watch --once", runs, "--state-dir", state)
    if is_at_rest:
        database = sqlite3.connect(state / "sentinel.sqlite")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        for end in ("-wal", "-shm"):
            (state / f"sentinel.sqlite{end}").unlink(missing_ok=True)
    try:
        harm(state)
        for command in STATE_COMMANDS:
            status, text = _answer(command, "--state-dir", state)
            may_read = harm is to_be_read and command in ("status", "silence list")
            require(status == (0 if may_read else 2), f"{command}: status {status}")
            require(may_read or len(text.splitlines()) == 1, f"{command}: {len(text.splitlines())} lines")
        status, _ = _answer("watch --once", runs, "--state-dir", state)
        require(status == 2, "it is written all the same")
    finally:
        _open_again(place)


def _archive(harm: Harm, place: Path) -> None:
    """A directory of results that may not be written is one line, and reads as before once it may."""
    runs = _sick(place / "runs")
    out = place / "out"
    judge = ("archive judge", runs, "--out", out, "--workers", 1)
    _answer(*judge)
    try:
        harm(out)
        for words in (judge, ("archive report", out)):
            status, text = _answer(*words)
            require((status, len(text.splitlines())) == (2, 1), f"{words[0]}: no line")
    finally:
        _open_again(place)
    require(_answer("archive report", out, "--format", "json")[0] == 0, "it is damaged")


def _open_again(place: Path) -> None:
    """Let the rest of the study, which may do all, remove what was closed."""
    for root, directories, files in os.walk(place):
        for name in (*directories, *files):
            os.chown(f"{root}/{name}", os.getuid(), os.getgid())
            (Path(root) / name).chmod(0o700)


def _pid_file(log: Path, pid: int, at: float) -> None:
    file = log.with_name("train.pid")
    file.write_text(f"{pid}\n")
    os.utime(file, (at, at))


def _event_file(log: Path, pid: int, at: float) -> None:
    log.with_name(f"events.out.tfevents.{int(at)}.{socket.gethostname()}.{pid}.0").touch()


def _wandb(log: Path, pid: int, at: float) -> None:
    (log.parent / "logs").mkdir()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    line = (
        f"{stamp},704 INFO    MainThread:{pid} [wandb_setup.py:_flush():81] Current SDK version is 0.31.0\n"
    )
    (log.parent / "logs" / "debug.log").write_text(line)


NAMES: dict[str, Callable[[Path, int, float], None]] = {
    "pid file": _pid_file,
    "event file": _event_file,
    "log of W&B's client": _wandb,
}


def _log(place: Path) -> Path:
    log = place / "run" / "metrics.jsonl"
    log.parent.mkdir()
    log.write_text('{"step": 1, "loss": 1.0}\n')
    return log


def _is_not_the_training(log: Path) -> None:
    writer = describe_writer(log.parent, Host())
    require(writer.lives is not True, f"it is taken for the training: {writer.text}")


def _ended_number() -> int:
    with running(IDLES) as one:
        return int(one.pid)


def _given_again(kind: str, place: Path) -> None:
    log = _log(place)
    number = _ended_number()
    NAMES[kind](log, number, time.time() - OLD_SECONDS)
    with running_as(number, IDLES):
        _is_not_the_training(log)


def _of_another_user(kind: str, place: Path) -> None:
    log = _log(place)
    with running(IDLES) as one:
        NAMES[kind](log, one.pid, time.time())
        for file in log.parent.rglob("*"):
            os.chown(file, NOBODY, NOBODY)
        _is_not_the_training(log)


def _of_the_kernel(kind: str, place: Path) -> None:
    log = _log(place)
    thread = next((one for one in processes().values() if one.parent == 2), None)
    require(thread is not None, "no thread of the kernel is to be seen here")
    if thread is not None:
        NAMES[kind](log, thread.pid, time.time())
        _is_not_the_training(log)


def _holder(place: Path) -> None:
    """A log was held by a process whose number another one has now."""
    log = _log(place)
    with holding(log) as one:
        before = process(one.pid)
    require(before is not None, "it was not seen")
    if before is not None:
        with running_as(before.pid, IDLES):
            require(open_handle(before) is None, "it is followed as the training")
            require(not describe(LogWriter(before, HOLDS_LOG)).text, "it is described as the training")


def _holder_of_another_user(place: Path) -> None:
    log = _log(place)
    os.chown(log, NOBODY, NOBODY)
    with holding(log):
        _is_not_the_training(log)


def _rank(place: Path) -> None:
    """A rank ended, and a rank of another launch has its number."""
    plain = {key: value for key, value in os.environ.items() if "RANK" not in key}
    launch = {**plain, "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}
    with running(IDLES, env=launch) as one:
        before = process(one.pid)
        one.send_signal(signal.SIGKILL)
    if before is not None:
        with running_as(before.pid, IDLES, env={**launch, "MASTER_PORT": "2"}):
            require(not Roster(processes()).ranks_of(before), "it has the ranks of another training")
