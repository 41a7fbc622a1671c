"""How a process that is no child of this one ended, without a signal to it and safe against reused numbers.

A pidfd names one process for good, and says when it ended. Linux 6.15 and newer tell the exit status through
it once the process was reaped, also without privileges; before that, a zombie's status stands in its `stat`.
Where neither tells, as on an older kernel, the status is unknown.
"""

import fcntl
import os
import select
import signal
import struct
import weakref
from contextlib import suppress

import msgspec

from sentinel.detectors.runtime.endings import SPARED
from sentinel.processes.kernel_log import faulted_in, killed_by_oom
from sentinel.processes.memory import GroupMemory, memory_of
from sentinel.processes.table import Process, process, stat_fields

_PIDFD_INFO = struct.Struct("=QQ11Ii")  # struct pidfd_info in its first form
_PIDFD_INFO_EXIT = 1 << 3  # PIDFD_INFO_EXIT
_GET_INFO = (3 << 30) | (_PIDFD_INFO.size << 16) | (0xFF << 8) | 11  # PIDFD_GET_INFO
_MAX_EXIT_TRIES = 20  # to learn how a process of somebody else ended that nobody reaps


class Exit(msgspec.Struct, frozen=True):
    """How a process ended: with a status, or by a signal; both are None if that is unknown.

    ``killer`` says who killed it, where that is known: "the OOM killer (cgroup limit 64 GiB)"; it was
    ``spared`` if it is known that the kernel's OOM killer did not. ``library`` says where it had a
    segmentation fault.
    """

    status: int | None = None
    signal: int | None = None
    killer: str = ""
    library: str = ""
    spared: bool = False

    @property
    def cause(self) -> str:
        """The end as a cause: "exit status 1", "SIGKILL by the OOM killer"; empty if it is unknown."""
        if self.signal is None:
            return "" if self.status is None else f"exit status {self.status}"
        return f"{self._signal} by {self.killer}" if self.killer else self._signal

    @property
    def words(self) -> str:
        """The end in words: "exited with status 1", "was killed by SIGKILL of the OOM killer"."""
        if self.signal is not None:
            whose = f"; {SPARED}" if self.spared else f" of {self.killer}" if self.killer else ""
            return f"was killed by {self._signal}{whose}"
        return "ended" if self.status is None else f"exited with status {self.status}"

    @property
    def _signal(self) -> str:
        location = f" in {self.library}" if self.library else ""
        with suppress(ValueError):
            return signal.Signals(self.signal or 0).name + location
        return f"signal {self.signal}"


class Handle:
    """One process from now to its end."""

    def __init__(self, target: Process, descriptor: int) -> None:
        self.process = target
        self.descriptor = descriptor
        self._memory: GroupMemory = memory_of(target)
        self._tries = 0
        self._exit: Exit | None = None
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        weakref.finalize(self, os.close, descriptor)

    def count_kills(self) -> None:
        """Note that what the OOM killer has ended so far is not this process; call it now and then."""
        self._memory = self._memory.count_kills()

    def exit(self) -> Exit | None:
        """Return how the process ended; None while it lives, and for some calls until that is known."""
        if self._exit is None and self._poll.poll(0):
            self._tries += 1
            self._exit = self._learn_exit()
        return self._exit

    def _learn_exit(self) -> Exit | None:
        now = process(self.process.pid)  # before the code is read, which the kernel gives of who is gone
        is_gone = now is None or now.started != self.process.started
        code = self._code()
        if code is None:
            if is_gone and (killer := self._memory.killer()):
                return Exit(signal=signal.SIGKILL, killer=killer)
            return Exit() if is_gone or self._tries >= _MAX_EXIT_TRIES else None
        number = code & 0x7F
        if not number:
            return Exit(status=code >> 8 & 0xFF)
        if number == signal.SIGKILL:
            killer = self._memory.killer()
            return Exit(signal=number, killer=killer, spared=killed_by_oom(self.process) is False)
        return Exit(signal=number, library=faulted_in(self.process) if number == signal.SIGSEGV else "")

    def _code(self) -> int | None:
        """Return what `wait` would return of the process; None if it is not known yet, or never will be."""
        buffer = bytearray(_PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13))
        with suppress(OSError):
            fcntl.ioctl(self.descriptor, _GET_INFO, buffer)
            mask, *_, code = _PIDFD_INFO.unpack(bytes(buffer))
            if mask & _PIDFD_INFO_EXIT:
                return int(code)
        with suppress(OSError, ValueError, IndexError):
            fields = stat_fields(self.process.pid)
            if fields[1] == "Z" and int(fields[20]) == self.process.started:
                code = int(fields[50])
                may_know = os.geteuid() in (0, self.process.user)  # for others the kernel says 0
                return code if code or may_know else None
        return None


def open_handle(target: Process) -> Handle | None:
    """Return a handle of a process; None if it is gone, its pid was reused, or the system has no pidfd."""
    try:
        descriptor = os.pidfd_open(target.pid)
    except (OSError, AttributeError):
        return None
    now = process(target.pid)  # after the descriptor was made, so that it is of this process or of none
    if now is None or now.started != target.started:
        os.close(descriptor)
        return None
    return Handle(now, descriptor)
