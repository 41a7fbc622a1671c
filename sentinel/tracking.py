"""One run on its way through the pipeline: its log, and what is judged of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentinel.alerts.incident import Change
from sentinel.alerts.lifecycle import Book
from sentinel.alerts.tell import News
from sentinel.runs.log import RunLog, packed, unpacked


@dataclass
class Tracker:
    """State of one run that survives a restart through `dump`.

    ``layout`` identifies detectors and names: histories kept for others are of no use.
    """

    log: RunLog
    book: Book
    layout: str

    @property
    def id(self) -> str:
        """The run's; see `sentinel.sources.base.Run`."""
        return self.log.run.id

    def news(self, changes: Sequence[Change]) -> News:
        """What there is to tell of the run when these incidents have changed."""
        return News(self.log.described(), changes, self.book.open(), self.log.live)

    def dump(self) -> bytes:
        """Everything that `restore` needs. Raises TypeError for what cannot be kept."""
        return packed({"layout": self.layout, **self.log.dump(), "book": self.book.dump()})

    def restore(self, state: bytes) -> bool:
        """Go on where `dump` was called; false, and nothing done, if it was laid out for other detectors.

        Raises msgspec.DecodeError for bytes that `dump` did not make, and others for what they hold: the
        tracker is then of no use.
        """
        kept = unpacked(state)
        if kept.get("layout") != self.layout:
            return False
        self.log.restore(kept)
        self.book.restore(kept["book"])
        return True
