"""Whether a process does anything while its log is silent: the processor time that it uses, and its I/O."""

from collections.abc import Iterator
from contextlib import suppress

from sentinel.common.text import duration_text
from sentinel.processes.table import PROC, Process, cpu_seconds, moved

_BUSY = 0.05  # of a core; a process that uses less does not compute
_MOVES = 1024.0  # bytes a second; a process that reads and writes less than that loads and saves nothing
_MIN_SECONDS = 5.0  # for which something can be said
_MOST = 64  # processes
_MIB = 1 << 20


class Activity:
    """What a process and those that it started do from now on. Times are times awake."""

    def __init__(self, target: Process, awake: float) -> None:
        self._begun = awake
        self._before = {pid: (cpu_seconds(pid), moved(pid) or 0) for pid in _family(target.pid)}

    def words(self, awake: float) -> str:
        """It in words: "it computed in the last 9 min (97% of a core)"; empty if too little time passed."""
        if (seconds := awake - self._begun) < _MIN_SECONDS:
            return ""
        used = sum(max(0.0, cpu_seconds(pid) - cpu) for pid, (cpu, _) in self._before.items()) / seconds
        bytes_ = sum(max(0, (moved(pid) or 0) - before) for pid, (_, before) in self._before.items())
        does = [f"computed ({100 * used:.0f}% of a core)"] if used >= _BUSY else []
        does += [f"read and wrote {bytes_ / _MIB:,.1f} MiB"] if bytes_ >= _MOVES * seconds else []
        return f"in the last {duration_text(seconds)} it {' and '.join(does) or 'did nothing'}"


def _family(pid: int) -> list[int]:
    """Return a process and those below it, as far as its main thread started them."""
    family = [pid]
    for member in family:
        family += [child for child in _children(member) if len(family) < _MOST]
    return family[:_MOST]


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError, ValueError):
        yield from map(int, (PROC / str(pid) / "task" / str(pid) / "children").read_text().split())
