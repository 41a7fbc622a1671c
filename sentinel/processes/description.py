"""What a process does, in words for a person."""

from contextlib import suppress
from pathlib import Path

from sentinel.common.text import clean_text
from sentinel.detectors.run_checks import Writer
from sentinel.processes.finder import Found, Host
from sentinel.processes.pid_files import named
from sentinel.processes.table import PROC, Process, arguments, process
from sentinel.processes.write_rate import PROBABLY

_STATES = {"R": "runs", "S": "sleeps", "D": "waits for a device", "T": "is stopped", "Z": "is dead"}
_KERNELS = ("ipykernel", "colab_kernel_launcher")


def process_of(log: Path, host: Host) -> Writer:
    """Return the process that writes a log, and what it does: "process 7 (python), which holds the log,
    sleeps".

    Else what a file beside the log says of it: "train.pid names process 7, which does not run on gpu-3".
    """
    writer = host.writer(log) or named(log)
    return described(writer) if isinstance(writer, Found) else writer


def described(writer: Found) -> Writer:
    """Return what a process that writes a log does at present."""
    now = process(writer.process.pid)
    if now is None or now.started != writer.process.started:
        return Writer()
    text = f"{title(now)}, which {writer.by}, {does(now)}"
    if now.state in "ZX":
        return Writer(text, lives=False)
    sure = writer.by != PROBABLY and not _outlives_a_training(now.pid)
    return Writer(text, lives=True if sure else None)


def title(target: Process) -> str:
    """Return a process for a person: "process 7 (python)"."""
    return f"process {target.pid} ({clean_text(target.name, 40)})"


def does(target: Process) -> str:
    """Return what a process does, and where it waits in the kernel: "sleeps in pipe_read"."""
    wait = waits_in(target.pid)
    return _STATES.get(target.state, "lives") + (f" in {wait}" if wait else "")


def waits_in(pid: int) -> str:
    """Return the function of the kernel in which a process waits; empty if it does not, or it may not be
    seen.
    """
    with suppress(OSError):
        wait = (PROC / str(pid) / "wchan").read_text()
        return clean_text(wait, 60) if wait not in ("", "0") else ""
    return ""


def _outlives_a_training(pid: int) -> bool:
    """Return whether it is the kernel of a notebook, which goes on when the training in it has ended."""
    return any(name in word for word in arguments(pid) for name in _KERNELS)
