"""What a process does, in words for a person."""

from contextlib import suppress
from pathlib import Path

from sentinel.common.text import clean_text
from sentinel.detectors.run_checks import Writer
from sentinel.processes.finder import Host, LogWriter
from sentinel.processes.pid_files import find_named_process
from sentinel.processes.table import PROC, Process, arguments, process
from sentinel.processes.write_rate import PROBABLY_WRITES

_STATES = {"R": "runs", "S": "sleeps", "D": "waits for a device", "T": "is stopped", "Z": "is dead"}
_NOTEBOOK_KERNELS = ("ipykernel", "colab_kernel_launcher")


def describe_writer(log: Path, host: Host) -> Writer:
    """Return the process that writes a log, and what it does: "process 7 (python), which holds the log,
    sleeps".

    Else what a file beside the log says of it: "train.pid names process 7, which does not run on gpu-3".
    """
    writer = host.writer(log) or find_named_process(log)
    return describe(writer) if isinstance(writer, LogWriter) else writer


def describe(writer: LogWriter) -> Writer:
    """Return what a process that writes a log does at present."""
    now = process(writer.process.pid)
    if now is None or now.started != writer.process.started:
        return Writer()
    text = f"{title(now)}, which {writer.by}, {does(now)}"
    if now.state in "ZX":
        return Writer(text, lives=False)
    # The kernel of a notebook lives on when the training in it has ended.
    is_notebook = any(name in word for word in arguments(now.pid) for name in _NOTEBOOK_KERNELS)
    is_sure = writer.by != PROBABLY_WRITES and not is_notebook
    return Writer(text, lives=True if is_sure else None)


def title(target: Process) -> str:
    """Return the name of a process for a person: "process 7 (python)"."""
    return f"process {target.pid} ({clean_text(target.name, 40)})"


def does(target: Process) -> str:
    """Return what a process does, and where it waits in the kernel: "sleeps in pipe_read"."""
    wait = waits_in(target.pid)
    return _STATES.get(target.state, "lives") + (f" in {wait}" if wait else "")


def waits_in(pid: int) -> str:
    """Return the function of the kernel in which a process waits; empty if there is none or it is hidden."""
    with suppress(OSError):
        wait = (PROC / str(pid) / "wchan").read_text()
        return clean_text(wait, 60) if wait not in ("", "0") else ""
    return ""
