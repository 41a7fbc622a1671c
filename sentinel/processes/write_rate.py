"""Who writes a log that nobody keeps open: the process that writes as much as the log grows.

A training that opens its log, appends to it and closes it has it open for some microseconds. Candidates are
processes of the log's owner that work in its directory or above, or whose arguments or environment name it.
One that wrote less than the log grew is out, for good. Of the others, the one that wrote about as much each
time is the writer. Readers write as much, too: `tail -f` prints what it reads. They have the log open.
"""

from collections.abc import Iterator
from pathlib import Path

from sentinel.processes.finder import COPY_FILES, SHELLS, Found, Host, files_of, size_of
from sentinel.processes.table import Process, arguments, lives, written

WRITES = "writes as much as the log grows"
PROBABLY = "probably writes the log"

_ENOUGH = 3  # times that a log grew by what the process wrote
_MAX_BESIDE = 1 << 16  # bytes that a process writes beside a log, to its console for example
_WATCHERS = ("sentinel", "tensorboard")  # programs that name a log and read it


class WriteRate:
    """Compares what some processes write with what a log grows by."""

    def __init__(self, log: Path, host: Host) -> None:
        self._log = log
        self._wrote = {candidate: written(candidate.pid) or 0 for candidate in _candidates(log, host)}
        self._agreed = dict.fromkeys(self._wrote, 0)
        self._size = size_of(log)

    def refresh(self) -> Found | None:
        """Return the writer, once it is certain; call it when the log may have grown."""
        before = {candidate: written(candidate.pid) for candidate in self._wrote}
        grown = size_of(self._log) - self._size
        if not before or not grown:
            return None
        self._size += grown
        for candidate, earlier in [*self._wrote.items()]:
            wrote = (written(candidate.pid) or 0) - earlier
            if wrote < grown or not lives(candidate):
                del self._wrote[candidate]
                continue
            # from before the size was read, so that none is missed
            self._wrote[candidate] = before[candidate] or 0
            self._agreed[candidate] += grown > 0 and wrote <= grown + _MAX_BESIDE
        writer = self._only()
        return Found(writer, WRITES) if writer and self._agreed[writer] >= _ENOUGH else None

    @property
    def over(self) -> bool:
        """Whether no process is left that may write the log."""
        return not self._wrote

    def probable(self) -> Found | None:
        """Return the only process that may write the log; None if there are none or several."""
        writer = self._only()
        return Found(writer, PROBABLY) if writer and lives(writer) else None

    def _only(self) -> Process | None:
        return next(iter(self._wrote)) if len(self._wrote) == 1 else None


def _candidates(log: Path, host: Host) -> Iterator[Process]:
    """Yield the processes that may write a log that none of them has open."""
    files = files_of(log)
    owners = {*files.values()}
    for process in host.about(log):
        watches = any(Path(word).name in _WATCHERS for word in arguments(process.pid)[:3])
        reads = host.open(process.pid).reads & files.keys()
        if process.user in owners and process.name not in COPY_FILES | SHELLS and not watches and not reads:
            yield process
