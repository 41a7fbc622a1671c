"""One watching process for each state directory: a lock on a file in it, and a name for its path."""

import errno
import fcntl
import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sentinel.common.errors import StateError
from sentinel.storage.database import LOCK, NO_LOCKS, is_shared_by_machines, make_file


@contextmanager
def sole_watcher(directory: Path) -> Iterator[None]:
    """Lock the state directory for one watching process. The kernel releases the lock when it dies.

    Raises StateError if another process holds the lock, also if that process's directory was moved or
    removed since, so that another one lies here.
    """
    lock = directory / LOCK
    make_file(directory, lock)
    with open(lock, "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StateError(f"{directory}: {error.strerror}: {NO_LOCKS}") from None
            holder = file.read().decode().strip() or "unknown"
            raise StateError(
                f"{directory}: another watch uses this state_dir (process {holder}); end it, or name another "
                "--state-dir"
            ) from None
        with suppress(OSError):  # only the lock counts; the number helps a person
            where = f" on {socket.gethostname()}" if is_shared_by_machines(directory) else ""
            file.truncate(0)
            file.write(f"{os.getpid()}{where}".encode())
        with _sole_user_of_path(directory):
            yield


@contextmanager
def _sole_user_of_path(directory: Path) -> Iterator[None]:
    """Hold the directory's path by the name of a socket, which exists nowhere in the file system.

    The same path is another directory for another user, or in a container with mounts of its own.
    """
    with ExitStack() as stack:
        try:
            user_and_path = (os.getuid(), Path("/proc/self/ns/mnt").readlink(), directory.resolve())
            name = hashlib.sha256(repr(user_and_path).encode("utf-8", "surrogateescape")).hexdigest()
            stack.enter_context(socket.socket(socket.AF_UNIX)).bind(f"\0sentinel {name}")
        except OSError as error:
            # Any other error comes from a machine without such sockets, where the file's lock must do.
            if error.errno == errno.EADDRINUSE:
                raise StateError(
                    f"{directory}: another watch that began with this state_dir goes on, though it was moved "
                    "or removed since; end that watch first"
                ) from None
        yield


def watching_process(directory: Path) -> str | None:
    """Return the id of the process that watches with this state directory, if one does."""
    try:
        with open(directory / LOCK) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "unknown"
    except OSError:
        pass
    return None
