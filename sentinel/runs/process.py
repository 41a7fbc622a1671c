"""Finds the process that writes a log on this machine, without guessing: the one that has it open."""

import os
from pathlib import Path

_PROC = Path("/proc")
_STATES = {"R": "runs", "S": "sleeps", "D": "waits for a device", "T": "is stopped", "Z": "is dead"}


def writer(log: Path) -> str:
    """What the process that has the log open for writing does: "process 7 (python) sleeps in pipe_read".

    Empty if there is none, if it belongs to somebody else, or if the system does not say. A program that
    closes its log between two writes is not found.
    """
    target = str(log.resolve())
    found = (process for process in _processes() if _writes(process, target))
    return next((_described(process) for process in found), "")


def _processes() -> list[Path]:
    try:
        return [
            process
            for process in _PROC.iterdir()
            if process.name.isdigit() and process.name != str(os.getpid())
        ]
    except OSError:
        return []


def _writes(process: Path, target: str) -> bool:
    try:
        for descriptor in (process / "fd").iterdir():
            path = str(descriptor.readlink())
            of_log = path == target or path.startswith(f"{target}/")
            if of_log and _is_for_writing(process, descriptor.name):
                return True
    except OSError:  # it is somebody else's, or has just ended
        pass
    return False


def _is_for_writing(process: Path, descriptor: str) -> bool:
    for line in (process / "fdinfo" / descriptor).read_text().splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _described(process: Path) -> str:
    try:
        name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
        wait = (process / "wchan").read_text()
    except OSError:
        return ""
    state = _STATES.get(rest.split()[0] if rest else name, "lives")
    return f"process {process.name} ({name}) {state}" + (f" in {wait}" if wait not in ("", "0") else "")
