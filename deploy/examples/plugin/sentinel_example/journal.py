"""Notifications as lines of a file, for a program that follows it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from sentinel.common.config_table import LocalPath
from sentinel.sinks.base import Digest, Notification, SinkConfig, Transient
from sentinel.sinks.message import text


@dataclass(frozen=True)
class JournalSink:
    """Appends to ``file``."""

    name: str
    file: Path

    def send(self, message: Notification | Digest, now: float) -> None:
        """Append a line for each incident. Raises Transient if the file cannot be written."""
        notifications = message.notifications if isinstance(message, Digest) else [message]
        lines = [f"{now:.0f}\t{each.key}\t{' '.join(text(each).split())}\n" for each in notifications]
        try:
            with self.file.open("a", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            raise Transient(f"the journal cannot be written: {error.strerror}") from None


class JournalConfig(SinkConfig):
    """`type = "journal"`."""

    type: Literal["journal"] = Field("journal", description="append lines to a file")
    file: LocalPath = Field(description="the file; its directory must exist")

    def open(self) -> JournalSink:
        """Return the sink."""
        return JournalSink(self.name or self.type, self.file)
