"""What the names of event files tell: ``events.out.tfevents.TIME.HOST.PROCESS.COUNT``."""

import re
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern

_EVENT_FILE_NAME = lazy_pattern(
    r"(?!\.)(?:.*\.)?tfevents(?:\.(?P<time>\d+)(?P<rest>.*))?", re.DOTALL | re.ASCII
)
_WRITER = lazy_pattern(r"\.(?P<process>.+\.\d+)\.(?P<count>\d+)(?P<suffix>\D.*)?", re.DOTALL | re.ASCII)
_BESIDE = (".meta", ".lock", ".tmp", ".part", ".bak", ".json", ".txt", ".csv", ".gz", ".tar", ".zip")
"""Endings of what other programs put beside event files; ``.meta`` is Unity's."""


def is_event_file(name: str) -> bool:
    """Return whether a file of this name holds events."""
    return bool(_EVENT_FILE_NAME.fullmatch(name)) and not name.endswith(_BESIDE)


def writer_in(name: str) -> re.Match[str] | None:
    """Return ``process``, host, ``count`` of files and ``suffix`` of an event file's name, if it has them."""
    parts: Any = _EVENT_FILE_NAME.fullmatch(name)
    return _WRITER.fullmatch(parts["rest"] or "")


def order(name: str) -> tuple[int, int, str]:
    """Return where the file stands among those of its process: by the time and the count in its name."""
    parts: Any = _EVENT_FILE_NAME.fullmatch(name)
    writer = writer_in(name)
    return int(parts["time"] or 0), int(writer["count"]) if writer else 0, name
