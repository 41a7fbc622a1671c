"""The log lines of a command, on stderr."""

import logging
import math
import sys
import time

_LOG_LINE_FORMAT = "%(asctime)sZ %(levelname)s %(name)s: %(message)s"
_QUIET_SECONDS = 60.0  # after a line of a place in the code that may log seldom


class _Seldom(logging.Filter):
    """Lets a place in the code log once a minute, because clients can make it log at will."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        code_line = record.pathname, record.lineno
        if 0 <= record.created - self._last.get(code_line, -math.inf) < _QUIET_SECONDS:
            return False
        self._last[code_line] = record.created
        return True


def log_to_stderr(level: int = logging.INFO, *, seldom: bool = False) -> None:
    """Log to stderr, with times in UTC. Other libraries log only warnings and errors.

    With ``seldom``, no place in the code logs more than once a minute.
    """
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(_LOG_LINE_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    if seldom:
        handler.addFilter(_Seldom())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("sentinel").setLevel(level)
