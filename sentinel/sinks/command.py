"""Runs a command of the user's for each notification, with the notification as JSON on its standard input.

The command is a list of arguments and never passes a shell. Nothing from a run stands in an argument.
"""

import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from sentinel.sinks.base import Digest, Notification, Permanent, SinkConfig, Transient
from sentinel.sinks.webhook import digest_body, webhook_body


@dataclass(frozen=True)
class CommandSink:
    """Runs ``command`` with the JSON that a webhook would get."""

    name: str
    command: tuple[str, ...]
    timeout_seconds: float

    def send(self, message: Notification | Digest, now: float) -> None:
        """Run it once. Its exit status says whether a retry can help, as in sysexits.h.

        Raises Transient for 75 (EX_TEMPFAIL), for a command that cannot be started, that runs for too long or
        that a signal ended, and Permanent for every other status but 0.
        """
        told = digest_body(message, now) if isinstance(message, Digest) else webhook_body(message, now)
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that what it started ends with it
            )
        except OSError as error:
            raise Transient(f"the command cannot be started: {error.strerror}") from None
        with process:
            try:
                process.communicate(json.dumps(told, allow_nan=False).encode(), self.timeout_seconds)
            except subprocess.TimeoutExpired:
                _kill(process)
                raise Transient(f"the command ran for more than {self.timeout_seconds:g} s") from None
        _check(process.returncode)


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
        """The sink."""
        return CommandSink(self.name or self.type, tuple(self.command), self.timeout_seconds)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _check(status: int) -> None:
    if status == os.EX_TEMPFAIL:
        raise Transient("the command asked to be run again (status 75)")
    if status < 0:
        raise Transient(f"signal {-status} ended the command")
    if status:
        raise Permanent(f"the command failed with status {status}; 75 would ask for another try")
