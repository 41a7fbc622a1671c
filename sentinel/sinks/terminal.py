"""Notifications on the standard error stream, a few lines each."""

import sys
from io import StringIO
from typing import Any, Literal, TextIO

import msgspec
from pydantic import Field

from sentinel.detectors.api import Severity
from sentinel.incidents.incident import Event
from sentinel.notifications.decide import FirstLook
from sentinel.sinks.base import FIRST_LOOK, Digest, Notification, SinkConfig, Transient
from sentinel.sinks.message import MAX_IN_FULL, summary, text

_SEVERITY_COLOURS = {Severity.CRITICAL: "bold red", Severity.WARNING: "bold yellow"}


class TerminalSink(msgspec.Struct, frozen=True):
    """Prints to ``stream``; its default is standard error as it is at the time of printing."""

    name: str
    stream: TextIO | None = None

    def send(self, message: Notification | Digest, now: float) -> None:  # noqa: ARG002 - the contract
        """Print once. Raises Transient if the stream cannot be written."""
        from rich.console import Console

        stream = self.stream or sys.stderr
        rendered = StringIO()  # not the stream itself: rich ends the process where that is a broken pipe
        console = Console(file=rendered, force_terminal=stream.isatty())
        lines = _digest_lines(message) if isinstance(message, Digest) else _terminal_lines(message)
        console.print(lines, highlight=False, soft_wrap=True)
        try:
            stream.write(rendered.getvalue())
            stream.flush()
        except OSError as error:
            raise Transient(f"the terminal cannot be written: {error.strerror}") from None


class TerminalConfig(SinkConfig):
    """`type = "terminal"`."""

    type: Literal["terminal"] = Field("terminal", description="print to standard error")
    first_look: FirstLook = Field(FirstLook.ALL, description=FIRST_LOOK)

    def open(self) -> TerminalSink:
        """Return the sink."""
        return TerminalSink(self.name or self.type)


def _terminal_lines(notification: Notification) -> Any:
    # Text rather than markup: brackets in a run's name are just brackets.
    from rich.text import Text

    headline, *detail_lines = filter(None, text(notification).split("\n"))
    return Text("\n  ").join([Text(headline, _colour(notification)), *map(Text, detail_lines)])


def _digest_lines(digest: Digest) -> Any:
    from rich.text import Text

    content = summary(digest)
    lines = [Text.assemble((content.title, "bold"), ": ", ", ".join(content.counts))]
    lines.extend(_terminal_lines(notification) for notification in digest.notifications[:MAX_IN_FULL])
    short_messages = zip(digest.notifications[MAX_IN_FULL:], content.messages[MAX_IN_FULL:], strict=True)
    lines.extend(
        Text.assemble(
            (message.title, _colour(notification)), "  ", (message.run, "bold"), "  ", message.headline
        )
        for notification, message in short_messages
    )
    return Text("\n").join(lines)


def _colour(notification: Notification) -> str:
    over = notification.event is Event.RESOLVED
    return "bold green" if over else _SEVERITY_COLOURS.get(notification.incident.severity, "bold")
