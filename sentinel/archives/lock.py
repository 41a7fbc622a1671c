"""One writing process for each shard of the results of an archive."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sentinel.common.errors import SentinelError
from sentinel.common.shard import Shard


@contextmanager
def sole_writer(directory: Path, shard: Shard) -> Iterator[None]:
    """Lock a directory of results for one shard. The kernel releases the lock when the process dies.

    Shards of one archive may write at the same time; two numbers of shards may not. Raises SentinelError if
    another process writes.
    """
    lock = directory / f".lock-{shard.index}-of-{shard.count}"
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(lock, "a+b", buffering=0))
        except OSError as error:
            raise SentinelError(f"{directory}: results cannot be written: {error.strerror}") from None
        _take(file.fileno(), fcntl.LOCK_EX, directory, lock)
        with suppress(OSError):  # only the lock counts; the number helps a person
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        for lock_file in directory.glob(".lock-*"):
            if not lock_file.name.endswith(f"-of-{shard.count}"):
                with suppress(FileNotFoundError), open(lock_file, "rb") as handle:
                    _take(handle.fileno(), fcntl.LOCK_SH, directory, lock_file)
        yield


def _take(descriptor: int, how: int, directory: Path, lock: Path) -> None:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = lock.read_text(errors="replace").strip() or "a process"
        raise SentinelError(
            f"{directory}: {holder} writes its results here; wait for its end, or give this one another --out"
        ) from None
    except OSError:
        return  # a file system without locks
