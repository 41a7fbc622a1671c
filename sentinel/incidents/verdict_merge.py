"""Orders the verdicts of many keys, and skips the rows that cannot change an incident's state.

A signal near its threshold has a verdict for every row, but almost none of them begins or ends an incident.
Such rows are counted together. The result is the same as if each row were judged alone.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sentinel.catalogue.rules import Known
from sentinel.detectors.reading.looks import Look


@dataclass(frozen=True, slots=True)
class Key:
    """What a verdict is about. The attempt does not count in comparisons: a finding outlives a restart."""

    run: str
    stream: str
    attempt: int = field(compare=False)
    tag: str
    detector: str


Onset = tuple[int, float | None]
"""The step at which a problem began, and its time, if that is known."""


Limits = tuple[float | None, float | None]
"""Values above the first or below the second belong to a trouble; None where there is no such limit."""


Opinion = Callable[[], float | None]
"""Works out the share of healthy runs that look better to the forest; None where it says nothing."""


def _unknown() -> Onset | None:
    return None


def _no_value(_: int) -> float | None:
    return None


class Verdict(msgspec.Struct, frozen=True):
    """What a detector says about one row of one series. ``severity`` 0 means clean.

    Most verdicts only count, so ``onset`` is computed when an incident needs it.
    """

    key: Key
    signal: str
    index: int  # position of the row in its series
    step: int
    time: float | None
    position: int  # ordinal, within the stream, of the point that completed the row
    severity: int
    variant: str | None = None
    onset: Callable[[], Onset | None] = _unknown
    limits: Limits = (None, None)  # of a finding
    level: Callable[[int], float | None] = _no_value  # median of so many values up to the row
    evidence: Mapping[str, Any] = {}
    known: Known | None = None  # what the log showed up to the row
    catalogue: tuple[str, ...] = ()  # in place of the variant's, where not empty
    final: bool = False  # about a run that is over; fires at once, whatever `hold` says
    look: Look | None = None  # what score cards say of it, where they were read
    interim: float | None = None  # how far the log has to have grown while the whole shows it; see INTERIM
    is_of_card: bool = False  # a finding of a card, which fires at once, too
    opinion: Opinion | None = None  # in place of a finding: what the forest says of the series


Segment = Sequence[Verdict]
"""One or more consecutive verdicts of one key, attempt and severity. They may be made on demand."""

SortKey = tuple[str, bool, int, int, str, str, int]
"""The sort key of a verdict among all others."""


def sort_key(verdict: Verdict) -> SortKey:
    """Return the sort key of a verdict. It also orders verdicts of one position, whatever order they come in.

    Verdicts on the end of a stream follow all others of that stream.
    """
    key = verdict.key
    return (key.stream, verdict.final, verdict.position, key.attempt, key.detector, key.tag, verdict.index)


class _Cursor(msgspec.Struct):
    """How far the segments of one key are read. The rows from ``counted`` to ``turn`` are not counted yet."""

    segments: list[tuple[Verdict, Segment]]  # each after its first verdict; the present one last
    next: Verdict  # the one to judge next, at ``turn``
    counted: int = 0
    turn: int = 0

    @property
    def rows(self) -> Segment:
        return self.segments[-1][1]


class VerdictMerge:
    """Iterates over the verdicts that must be judged one by one, in the order of their sort keys.

    These are the first and the last row of each segment, and each row in between that follows as many rows as
    ``skippable_rows`` allows to skip. Before the next verdict of a key, ``count`` gets the last skipped
    verdict and the number of skipped rows.
    """

    def __init__(
        self,
        segments: Iterable[Segment],
        skippable_rows: Callable[[Verdict], int],
        count: Callable[[Verdict, int], None],
    ) -> None:
        self._skippable_rows = skippable_rows
        self._count = count
        self._cursors: dict[Key, _Cursor] = {}
        self._heap: list[tuple[SortKey, _Cursor]] = []
        with_first = [(rows[0], rows) for rows in segments]
        for first, rows in sorted(with_first, key=lambda pair: sort_key(pair[0]), reverse=True):
            self._cursors.setdefault(first.key, _Cursor([], first)).segments.append((first, rows))
        for cursor in self._cursors.values():
            self._push(cursor, 0)

    def __iter__(self) -> Iterator[Verdict]:
        while self._heap:
            key, cursor = heapq.heappop(self._heap)
            if not cursor.segments or key != sort_key(cursor.next):
                continue  # `advance_to` made its turn earlier
            self._skip_to(cursor, cursor.turn)
            verdict = cursor.next
            cursor.counted += 1
            yield verdict
            if cursor.counted == len(cursor.rows):
                cursor.segments.pop()
                cursor.counted = 0
                cursor.turn = 0
            if cursor.segments:
                skipped = self._skippable_rows(verdict) if cursor.counted else 0
                self._push(cursor, min(cursor.counted + skipped, len(cursor.rows) - 1))

    def advance_to(self, key: Key, limit: SortKey) -> None:
        """Count the rows of a key before a sort key and judge the next one, because its track has changed."""
        cursor = self._cursors.get(key)
        if cursor is not None and cursor.turn > cursor.counted:
            end = bisect_left(cursor.rows, limit, cursor.counted, cursor.turn, key=sort_key)
            self._skip_to(cursor, end)
            self._push(cursor, cursor.counted)

    def _skip_to(self, cursor: _Cursor, end: int) -> None:
        if end > cursor.counted:
            self._count(cursor.rows[end - 1], end - cursor.counted)
            cursor.counted = end

    def _push(self, cursor: _Cursor, turn: int) -> None:
        first, rows = cursor.segments[-1]
        cursor.turn = turn
        cursor.next = rows[turn] if turn else first
        heapq.heappush(self._heap, (sort_key(cursor.next), cursor))
