"""Logs what is wrong with some log, each problem once."""

import logging

from sentinel.common.text import clean_text

_MAX_WARNINGS = 10_000  # that are remembered; each may hold the name of a file, and a tree gets ever new ones
_MAX_WARNING_CHARACTERS = 500  # of a warning

_log = logging.getLogger(__name__)


class WarnOnce:
    """Remembers the last warnings. ``latest`` is for `sentinel status`; None where there is none."""

    def __init__(self, limit: int = _MAX_WARNINGS) -> None:
        self._limit = limit
        self._warnings: dict[str, None] = {}  # the most recent last
        self.latest: str | None = None

    def warn(self, problem: str) -> bool:
        """Log a problem, unless it is remembered. Return whether it was logged."""
        is_new = problem not in self._warnings
        if is_new:
            self.latest = clean_text(problem, _MAX_WARNING_CHARACTERS)
            _log.warning("%s", self.latest)
        self._warnings.pop(problem, None)
        self._warnings[problem] = None
        if len(self._warnings) > self._limit:
            del self._warnings[next(iter(self._warnings))]
        return is_new
