"""What a watch says is wrong with some log, each thing once."""

import logging

from sentinel.common.text import clean_text

_REMEMBERED = 10_000
"""Things that are not said again. Each may hold the name of a file, of which a tree brings ever new ones."""

_log = logging.getLogger(__name__)


class WarnOnce:
    """Remembers what was said last. ``latest`` is for `sentinel status`, None where nothing was."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._reported: dict[str, None] = {}  # the most recent last
        self.latest: str | None = None

    def warn(self, trouble: str) -> bool:
        """Log it, unless that was done; whether it is new."""
        if new := trouble not in self._reported:
            self.latest = clean_text(trouble, 500)
            _log.warning("%s", self.latest)
        self._reported.pop(trouble, None)
        self._reported[trouble] = None
        if len(self._reported) > self._remembered:
            del self._reported[next(iter(self._reported))]
        return new
