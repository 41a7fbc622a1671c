"""What a watch says is wrong with some log, each thing once."""

import logging

from sentinel.text import clean_text

_REMEMBERED = 10_000
"""Things that are not said again. Each may hold the name of a file, of which a tree brings ever new ones."""

_log = logging.getLogger(__name__)


class Troubles:
    """Remembers what was said last. ``latest`` is for `sentinel status`, None where nothing was."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._said: dict[str, None] = {}  # what was met last, last
        self.latest: str | None = None

    def say(self, trouble: str) -> bool:
        """Log it, unless that was done; whether it is new."""
        if new := trouble not in self._said:
            self.latest = clean_text(trouble, 500)
            _log.warning("%s", self.latest)
        self._said.pop(trouble, None)
        self._said[trouble] = None
        if len(self._said) > self._remembered:
            del self._said[next(iter(self._said))]
        return new
