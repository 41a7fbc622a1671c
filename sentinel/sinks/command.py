"""Runs a command of the user's for each notification, with the notification as JSON on its standard input.

The command is a list of arguments and never passes a shell. Nothing from a run stands in an argument.

A command that runs for too long ends with all that it started, also with what began a session of its own. A
mark in the environment, which children inherit, tells which processes these are.
"""

import json
import os
import secrets
import signal
import subprocess
import threading
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from pydantic import Field

from sentinel.common.environment import user_environment
from sentinel.sinks.base import Digest, Notification, Permanent, SinkConfig, Transient
from sentinel.sinks.webhook import digest_body, webhook_body

_COMMAND_VARIABLE = "SENTINEL_COMMAND"  # name of the variable with the mark


class CommandSink(msgspec.Struct, frozen=True):
    """Runs ``command`` with the JSON that a webhook would get."""

    name: str
    command: tuple[str, ...]
    timeout_seconds: float

    def send(self, message: Notification | Digest, now: float) -> None:
        """Run the command once. Its exit status says whether a retry can help, as in sysexits.h.

        Raises Transient for 75 (EX_TEMPFAIL), for a command that cannot be started, that runs for too long or
        that a signal ended, and Permanent for every other status but 0.
        """
        body = digest_body(message, now) if isinstance(message, Digest) else webhook_body(message, now)
        mark = secrets.token_hex(16)
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**user_environment(), _COMMAND_VARIABLE: mark},
            )
        except OSError as error:
            raise Transient(f"the command cannot be started: {error.strerror}") from None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            _kill(process, mark)

        timer = threading.Timer(self.timeout_seconds, end)
        timer.daemon = True
        timer.start()
        try:
            with process:  # without a time it sleeps until the end; with one it asks again and again
                process.communicate(json.dumps(body, allow_nan=False).encode())
        finally:
            timer.cancel()
        if is_late.is_set():
            raise Transient(f"the command ran for more than {self.timeout_seconds:g} s")
        _check_status(process.returncode)


class CommandConfig(SinkConfig):
    """`type = "command"`."""

    type: Literal["command"] = Field(
        "command", description="run a command, with the notification as JSON on its standard input"
    )
    command: Annotated[list[str], Field(min_length=1)] = Field(
        description="the program and its arguments; it passes no shell"
    )
    timeout_seconds: float = Field(30.0, gt=0, le=600, description="how long the command may run")

    def open(self) -> CommandSink:
        """Return the sink."""
        return CommandSink(self.name or self.type, tuple(self.command), self.timeout_seconds)


def _kill(command: "subprocess.Popen[bytes]", mark: str) -> None:
    """End a command and all processes that have its mark, and those that they started meanwhile.

    The command itself has none to be read yet if it began just now.
    """
    command.kill()
    dead = set[int]()
    while True:
        processes = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        killed_now = {process for process in processes - dead if _kill_one(process, mark)}
        if not killed_now:
            return
        dead |= killed_now


def _kill_one(process: int, mark: str) -> bool:
    """Kill a process if it has the mark. Return whether it was killed.

    A handle is of one process for good, so what gets its number meanwhile is not killed. Linux before 5.3 has
    none.
    """
    with ExitStack() as stack:
        kill = partial(os.kill, process)
        with suppress(OSError, AttributeError):
            handle = os.pidfd_open(process)
            stack.callback(os.close, handle)
            kill = partial(signal.pidfd_send_signal, handle)
        try:
            environment = Path(f"/proc/{process}/environ").read_bytes()
            if f"{_COMMAND_VARIABLE}={mark}".encode() not in environment.split(b"\0"):
                return False
            kill(signal.SIGKILL)
        except OSError:  # it has ended, or is another user's
            return False
    return True


def _check_status(status: int) -> None:
    if status == os.EX_TEMPFAIL:
        raise Transient("the command asked to be run again (status 75)")
    if status < 0:
        raise Transient(f"signal {-status} ended the command")
    if status:
        raise Permanent(f"the command failed with status {status}; 75 would ask for another try")
