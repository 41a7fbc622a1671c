"""What one poll brought to the log of a run."""

from collections.abc import Sequence
from typing import NamedTuple

from sentinel.detectors.run_checks import Absence, Inventory, Printed, Stopped
from sentinel.series.stream import SeriesRows
from sentinel.sources.base import Chunk, ReadIssue


class Ingested(NamedTuple):
    """The rows to judge, and all else that is new. ``more`` says that there is more to read."""

    rows: Sequence[SeriesRows] = ()
    chunks: Sequence[Chunk] = ()
    more: bool = False
    printed: Sequence[Printed] = ()
    stopped: Sequence[Stopped] = ()  # what is no longer judged
    inventories: Sequence[Inventory] = ()  # of streams that are long enough now
    absences: Sequence[Absence] = ()  # of expected tags that are missing or came back
    read_issues: Sequence[ReadIssue] = ()
    readability_changed: bool = False
    flushed: Sequence[Chunk] = ()  # points that only the end of the log makes sure

    @property
    def points(self) -> int:
        """The number of points that were read."""
        return sum(chunk.value.size for chunk in self.chunks)

    @property
    def tells_of_run(self) -> bool:
        """Whether the run checks have something new to judge, beside the number of points."""
        return self.readability_changed or any((self.printed, self.stopped, self.inventories, self.absences))

    def followed_by(self, end: "Ingested") -> "Ingested":
        """Return this with what the end of the log brought, see `RunLog.flush`."""
        return self._replace(rows=[*self.rows, *end.rows], flushed=end.flushed)


NOTHING = Ingested()
