"""Whether a process does anything while its log is silent: the processor time that it uses, and its I/O."""

from collections.abc import Iterator
from contextlib import suppress

from sentinel.common.text import duration_text
from sentinel.processes.table import PROC, Process, bytes_moved, cpu_seconds, lives, process

_MIN_BUSY_FRACTION = 0.05  # of a core; a process that uses less does not compute
_MIN_BYTES_PER_SECOND = 1024.0  # a process that reads and writes less than that loads and saves nothing
_MIN_ACTIVITY_SECONDS = 5.0  # over which activity is measured
_MAX_PROCESSES = 64  # of one training
_MIB = 1 << 20  # bytes


class Activity:
    """What a process and those that it started do from now on. Times are times awake."""

    def __init__(self, target: Process, awake: float) -> None:
        self._started_at = awake
        self._before = {
            member: (cpu_seconds(member.pid), bytes_moved(member.pid) or 0) for member in _family(target)
        }

    def words(self, awake: float) -> str:
        """Return it in words: "in the last 9 min it computed (97% of a core)"; empty if that is too short."""
        seconds = awake - self._started_at
        if seconds < _MIN_ACTIVITY_SECONDS:
            return ""
        living = [
            (member.pid, cpu, bytes_) for member, (cpu, bytes_) in self._before.items() if lives(member)
        ]
        cores = sum(max(0.0, cpu_seconds(pid) - cpu) for pid, cpu, _ in living) / seconds
        bytes_ = sum(max(0, (bytes_moved(pid) or 0) - before) for pid, _, before in living)
        does = [f"computed ({100 * cores:.0f}% of a core)"] if cores >= _MIN_BUSY_FRACTION else []
        does += (
            [f"read and wrote {bytes_ / _MIB:,.1f} MiB"] if bytes_ >= _MIN_BYTES_PER_SECOND * seconds else []
        )
        return f"in the last {duration_text(seconds)} it {' and '.join(does) or 'did nothing'}"


def _family(target: Process) -> Iterator[Process]:
    """Yield a process and those below it, as far as its main thread started them."""
    numbers = [target.pid]
    for number in numbers:
        if len(numbers) >= _MAX_PROCESSES:
            break
        with suppress(OSError, ValueError):
            children = (PROC / str(number) / "task" / str(number) / "children").read_text()
            numbers += map(int, children.split())
    yield target
    for number in numbers[1:_MAX_PROCESSES]:
        child = process(number)
        if child is not None:
            yield child
