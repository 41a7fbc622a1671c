"""How a process that is no child of this one ended, without a signal to it and safe against reused numbers.

A pidfd names one process for good, and says when it ended. Linux 6.15 and newer tell the exit status through
it once the process was reaped, also without privileges; before that, a zombie's status stands in its `stat`.
"""

import fcntl
import os
import select
import signal
import struct
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

_INFO = struct.Struct("=QQ11Ii")  # struct pidfd_info in its first form
_EXIT = 1 << 3  # PIDFD_INFO_EXIT
_GET_INFO = (3 << 30) | (_INFO.size << 16) | (0xFF << 8) | 11  # PIDFD_GET_INFO
_UNKNOWN_AFTER = 20  # looks at a process that ended and does not say how


@dataclass(frozen=True)
class Exit:
    """How a process ended: with a status, or by a signal; both are None if that is unknown."""

    status: int | None = None
    signal: int | None = None

    @property
    def words(self) -> str:
        """It in words: "exited with status 1", "was killed by SIGKILL"."""
        if self.signal is not None:
            with suppress(ValueError):
                return f"was killed by {signal.Signals(self.signal).name}"
            return f"was killed by signal {self.signal}"
        return "ended" if self.status is None else f"exited with status {self.status}"


class Handle:
    """One process from now to its end. ``name`` is the one that it has now."""

    def __init__(self, pid: int, descriptor: int, name: str) -> None:
        self.pid, self.name = pid, name
        self._descriptor = descriptor
        self._looks = 0
        weakref.finalize(self, os.close, descriptor)

    def exit(self) -> Exit | None:
        """How the process ended; None while it lives, and for some looks after that until it is known."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(0):
            return None
        self._looks += 1
        code = self._code()
        if code is None:
            return Exit() if self._looks >= _UNKNOWN_AFTER else None
        ended_by = code & 0x7F
        return Exit(signal=ended_by) if ended_by else Exit(status=code >> 8 & 0xFF)

    def _code(self) -> int | None:
        """What `wait` would give of the process; None if it is not known yet, or never will be."""
        buffer = bytearray(_INFO.pack(_EXIT, *[0] * 13))
        with suppress(OSError):
            fcntl.ioctl(self._descriptor, _GET_INFO, buffer)
            mask, *_, code = _INFO.unpack(bytes(buffer))
            if mask & _EXIT:
                return int(code)
        with suppress(OSError, ValueError, IndexError):
            fields = (PROC / str(self.pid) / "stat").read_text().rpartition(")")[2].split()
            if fields[0] == "Z" and (code := int(fields[49])):  # 0 also means: you may not know
                return code
        return None


def opened(pid: int) -> Handle | None:
    """A handle of a process; None if there is none, or the system knows no pidfd."""
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None
    try:
        name = (PROC / str(pid) / "comm").read_text().strip()
    except (OSError, ValueError):
        name = ""
    return Handle(pid, descriptor, name)
