"""Where the main thread of a process is, by `py-spy dump`, which only reads its memory and never stops it.

py-spy comes with the extra `stacks`. It runs as a process of its own with a deadline, because a process may
be built to keep its reader busy. Names of functions and files are the process's own, so they are untrusted.
"""

import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import NamedTuple

import msgspec

from sentinel.common.installation import install
from sentinel.common.paths import exists
from sentinel.common.text import clean_text

_MAX_DUMP_SECONDS = 5.0  # for one stack
_MAX_DUMP_TRIES = 3  # for one stack
_MAX_DUMP_BYTES = 1 << 20  # of what py-spy prints
_MAX_FRAMES = 64  # of a thread
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "<frozen", "<string>")
"""Parts of the paths of code that is not the training's own."""
_WORKER_STARTS = ("_bootstrap", "_worker_loop")  # functions of a worker; the outer calls are its parent's


class Frame(NamedTuple):
    """One call, for a person: "backward (train.py:34)"."""

    function: str
    file: str
    line: int
    ours: bool  # of the training itself, and of no library

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


class Stack(NamedTuple):
    """The calls of the main thread of a process, the innermost first."""

    frames: tuple[Frame, ...] = ()
    unknown: str = ""  # why there are none

    @property
    def location(self) -> Frame | None:
        """The innermost call in the training's own code, else the innermost of all."""
        return next((frame for frame in self.frames if frame.ours), self.frames[0] if self.frames else None)


class DumpedFrame(msgspec.Struct):
    """A call as py-spy names it, and PyTorch's flight recorder."""

    name: str
    filename: str
    line: int
    short_filename: str | None = None


class _DumpedThread(msgspec.Struct):
    frames: list[DumpedFrame]
    os_thread_id: int | None = None


_decoder = msgspec.json.Decoder(list[_DumpedThread])


def py_spy() -> str | None:
    """Return the program that dumps stacks; None if it is not installed."""
    script = Path(sysconfig.get_path("scripts")) / "py-spy"
    return str(script) if exists(script) else which("py-spy")


def stack_of(pid: int, now: Callable[[], float] = time.monotonic) -> Stack:
    """Return the stack of the main thread of a Python process. All tries together have one time limit."""
    program = py_spy()
    if program is None:
        return Stack(unknown=f"py-spy is not installed ({install('stacks')})")
    errors = ""
    until = now() + _MAX_DUMP_SECONDS
    for _ in range(_MAX_DUMP_TRIES):
        seconds = until - now()
        if seconds <= 0:
            break
        output, errors = _program_output(
            [program, "dump", "--json", "--nonblocking", "--pid", str(pid)], seconds
        )
        with suppress(msgspec.MsgspecError):
            if threads := _decoder.decode(output):
                main = next((thread for thread in threads if thread.os_thread_id == pid), threads[0])
                return Stack(frames_of(main.frames))
    return Stack(unknown=_reason(errors))


def _program_output(command: Sequence[str], seconds: float) -> tuple[bytes, str]:
    """Return the beginnings of the output and of the errors of a program, which is killed at its deadline."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1) as process:  # noqa: S603
        deadline = threading.Timer(seconds, process.kill)
        deadline.start()
        try:
            output = b""
            errors = b""
            if process.stdout is not None and process.stderr is not None:
                output = process.stdout.read(_MAX_DUMP_BYTES)
                process.stdout.close()  # so that a program that would print more ends
                errors = process.stderr.read(_MAX_DUMP_BYTES)
        finally:
            deadline.cancel()
            process.kill()
    return output, errors.decode(errors="replace")


def frames_of(dump: Sequence[DumpedFrame]) -> tuple[Frame, ...]:
    """Return the calls of a dump, the innermost first, with clean names and without those of a parent."""
    calls: list[Frame] = []
    for frame in dump[:_MAX_FRAMES]:
        if frame.name in _WORKER_STARTS and calls:
            break
        file = clean_text(Path(frame.short_filename or frame.filename).name, 60)
        ours = not any(part in frame.filename for part in _LIBRARIES)
        calls.append(Frame(clean_text(frame.name, 80), file, frame.line, ours))
    return tuple(calls)


def _reason(errors: str) -> str:
    """Return why a stack is unknown, from what py-spy printed."""
    if "ermission" in errors or "not permitted" in errors:
        with suppress(OSError):
            if (scope := Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()) != "0":
                return f"ptrace_scope is {scope}"
        return "the watch may not read its memory"
    return "it could not be read within 5 s and 1 MiB"
