"""Who writes a log that nobody keeps open: the process that writes as much as the log grows.

A training that opens its log, appends to it and closes it has it open for some microseconds. Candidates are
processes of the log's owner that work in its directory or above, or whose arguments or environment name it.
One that wrote less than the log grew is out, for good. Of the others, the one that wrote about as much each
time is the writer. Readers write as much, too: `tail -f` prints what it reads. They have the log open.
"""

from collections.abc import Iterator
from pathlib import Path

from sentinel.processes.finder import COPY_FILES, SHELLS, Host, LogWriter, files_of, size_of
from sentinel.processes.table import Process, arguments, bytes_written, lives

# how a writer was found, in words that follow "which"
WRITES_AS_MUCH = "writes as much as the log grows"
PROBABLY_WRITES = "probably writes the log"

_MIN_AGREEMENTS = 3  # times that a log grew by what the process wrote
_MAX_OTHER_BYTES = 1 << 16  # that a process writes beside a log, to its console for example
_WATCHER_COMMANDS = ("sentinel", "tensorboard")  # programs that name a log and read it


class WriteRate:
    """Compares what some processes write with what a log grows by."""

    def __init__(self, log: Path, host: Host) -> None:
        self._log = log
        self._wrote = {candidate: bytes_written(candidate.pid) or 0 for candidate in _candidates(log, host)}
        self._agreements = dict.fromkeys(self._wrote, 0)
        self._size = size_of(log)

    def refresh(self) -> LogWriter | None:
        """Return the writer, once it is certain; call it when the log may have grown."""
        before = {candidate: bytes_written(candidate.pid) for candidate in self._wrote}
        growth = size_of(self._log) - self._size
        if not before or not growth:
            return None
        self._size += growth
        for candidate, earlier in [*self._wrote.items()]:
            wrote = (bytes_written(candidate.pid) or 0) - earlier
            if wrote < growth or not lives(candidate):
                del self._wrote[candidate]
                continue
            # from before the size was read, so that no byte is left out
            self._wrote[candidate] = before[candidate] or 0
            self._agreements[candidate] += growth > 0 and wrote <= growth + _MAX_OTHER_BYTES
        writer = self._only()
        is_sure = writer is not None and self._agreements[writer] >= _MIN_AGREEMENTS
        return LogWriter(writer, WRITES_AS_MUCH) if writer and is_sure else None

    @property
    def over(self) -> bool:
        """Whether no process is left that may write the log."""
        return not self._wrote

    def probable(self) -> LogWriter | None:
        """Return the only process that may write the log; None if there are none or several."""
        writer = self._only()
        return LogWriter(writer, PROBABLY_WRITES) if writer and lives(writer) else None

    def _only(self) -> Process | None:
        return next(iter(self._wrote)) if len(self._wrote) == 1 else None


def _candidates(log: Path, host: Host) -> Iterator[Process]:
    """Yield the processes that may write a log that none of them has open."""
    files = files_of(log)
    owners = {*files.values()}
    for process in host.about(log):
        is_reader = bool(host.open(process.pid).reads & files.keys()) or any(
            Path(word).name in _WATCHER_COMMANDS for word in arguments(process.pid)[:3]
        )
        if process.user in owners and process.name not in COPY_FILES | SHELLS and not is_reader:
            yield process
