"""One run in the pipeline: its log and its incidents."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentinel.alerts.incident import Change, Incident
from sentinel.alerts.lifecycle import Book
from sentinel.alerts.outcomes import Audience, News, Outcome, tell
from sentinel.frames.excerpt import Excerpt
from sentinel.runs.description import described
from sentinel.runs.excerpts import excerpts
from sentinel.runs.log import RunLog
from sentinel.runs.packing import packed, unpacked
from sentinel.sources.identity import RunIdentity


@dataclass
class Tracker:
    """The state of one run; `dump` and `restore` carry it over a restart.

    ``layout`` identifies the detectors and the names of tags. A state with another layout cannot be used.
    """

    log: RunLog
    book: Book
    layout: str

    @property
    def id(self) -> str:
        """The id of the run; see `sentinel.sources.base.Run`."""
        return self.log.run.id

    def described(self) -> RunIdentity:
        """The run as notifications name it; see `sentinel.runs.description`."""
        return described(self.log)

    def tell(
        self, changes: Sequence[Change], audience: Audience, now: float, may_return: Sequence[Incident] = ()
    ) -> list[Outcome]:
        """Decide which sinks hear of changes and of what is open, and why the others do not.

        ``may_return`` are incidents that are over; see `sentinel.alerts.outcomes.News`.
        """
        open_ = self.book.open()
        news = News(self.described(), changes, open_, may_return=may_return, excerpts=self.excerpts)
        return tell(news, audience, now)

    def excerpts(self, incident: Incident) -> list[Excerpt]:
        """The signals around an incident, the judged one first; none if its attempt is over."""
        return excerpts(self.log, incident.stream, incident.attempt, incident.tag, incident.detector)

    def dump(self) -> bytes:
        """Everything that `restore` needs. Raises TypeError for a value that cannot be stored."""
        state = {"layout": self.layout, **self.log.dump(), "book": self.book.dump()}
        return packed(state, lasting=self.book.before_end is not None)

    def restore(self, state: bytes) -> bool:
        """Restore what `dump` gave. False, without any change, if the layout differs.

        Raises msgspec.DecodeError for bytes that `dump` did not make, and other errors for wrong content. The
        tracker must not be used after an error.
        """
        kept = unpacked(state)
        if kept.get("layout") != self.layout:
            return False
        self.log.restore(kept)
        self.book.restore(kept["book"])
        return True
