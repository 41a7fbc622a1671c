"""What one poll brought to the log of a run."""

from collections.abc import Sequence
from typing import NamedTuple

from sentinel.detectors.run_checks import Absence, Inventory, Printed, Stopped
from sentinel.series.stream import SeriesRows
from sentinel.sources.base import Chunk, ReadIssue


class Ingested(NamedTuple):
    """The rows to judge, and all else that is new. ``more`` says that the log or its console goes on."""

    rows: Sequence[SeriesRows] = ()
    chunks: Sequence[Chunk] = ()
    more: bool = False
    printed: Sequence[Printed] = ()
    stopped: Sequence[Stopped] = ()  # what is no longer judged
    inventories: Sequence[Inventory] = ()  # of streams that went on long enough
    absences: Sequence[Absence] = ()  # expected tags that were missed or came back
    read_issues: Sequence[ReadIssue] = ()
    readability_changed: bool = False
    flushed: Sequence[Chunk] = ()  # points that only the end of the log makes sure

    @property
    def points(self) -> int:
        """How many points were read."""
        return sum(chunk.value.size for chunk in self.chunks)

    @property
    def tells_of_run(self) -> bool:
        """Whether the run checks have something new to judge, beside the number of points."""
        news = self.printed or self.stopped or self.inventories or self.absences
        return bool(news) or self.readability_changed


NOTHING = Ingested()
