"""Verdicts of many keys in one order, without the rows that change nothing but counts.

A signal near its threshold gives a verdict for every row, and nearly none of them begins or ends anything.
Such rows are counted as a stretch. What comes out is the same as if each row had its turn.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sentinel.catalogue.rules import Known


@dataclass(frozen=True)
class Key:
    """Whose verdict it is. Keys that differ only in the attempt are equal: a finding outlives a restart."""

    run: str
    stream: str
    attempt: int = field(compare=False)
    tag: str
    detector: str


class Verdict(msgspec.Struct, frozen=True):
    """A detector's word on one row of one series. ``severity`` 0 is a clean row."""

    key: Key
    signal: str
    index: int  # position of the row in its series
    step: int
    time: float | None
    position: int  # ordinal, within the stream, of the point that completed the row
    severity: int
    variant: str | None = None
    onset_step: int | None = None
    onset_time: float | None = None
    evidence: Mapping[str, Any] = {}
    known: Known | None = None  # what the log had told by then
    catalogue: tuple[str, ...] = ()  # in place of the variant's, where not empty
    final: bool = False  # the last word on a run that is over, which need not hold


Stretch = Sequence[Verdict]
"""Verdicts of one key, one attempt and one severity in their order, at least one. May be made on demand."""

Place = tuple[str, int, int, str, str, int]
"""Where a verdict stands among all others."""


def place(verdict: Verdict) -> Place:
    """Verdicts of one position have an order too, so that the outcome does not depend on how they come."""
    key = verdict.key
    return key.stream, verdict.position, key.attempt, key.detector, key.tag, verdict.index


@dataclass(slots=True)
class _Cursor:
    """How far one key's stretches are read. The rows from ``done`` to ``turn`` are yet to be counted."""

    stretches: list[Stretch]  # the present one last
    next: Verdict  # whose turn it is
    done: int = 0
    turn: int = 0

    @property
    def rows(self) -> Stretch:
        return self.stretches[-1]


class Turns:
    """Iterates over the verdicts that have to be judged one by one, in the order of their places.

    These are the first and the last row of each stretch, and those between them that come after as many
    rows as ``uneventful`` says of the row before. ``count`` is given the last and the number of the rows left
    out, before their key's next turn.
    """

    def __init__(
        self,
        stretches: Iterable[Stretch],
        uneventful: Callable[[Verdict], int],
        count: Callable[[Verdict, int], None],
    ) -> None:
        self._uneventful = uneventful
        self._count = count
        self._cursors: dict[Key, _Cursor] = {}
        self._heap: list[tuple[Place, _Cursor]] = []
        begins = [(rows[0], rows) for rows in stretches]
        for first, rows in sorted(begins, key=lambda begin: place(begin[0]), reverse=True):
            cursor = self._cursors.setdefault(first.key, _Cursor([], first))
            cursor.stretches.append(rows)
            cursor.next = first
        for cursor in self._cursors.values():
            self._wait(cursor, 0)

    def __iter__(self) -> Iterator[Verdict]:
        while self._heap:
            at, cursor = heapq.heappop(self._heap)
            if not cursor.stretches or at != place(cursor.next):
                continue  # it had its turn earlier than was thought
            self._pass(cursor, cursor.turn)
            verdict = cursor.next
            cursor.done += 1
            yield verdict
            if cursor.done == len(cursor.rows):
                cursor.stretches.pop()
                cursor.done = cursor.turn = 0
            if cursor.stretches:
                skipped = self._uneventful(verdict) if cursor.done else 0
                self._wait(cursor, min(cursor.done + skipped, len(cursor.rows) - 1))

    def catch_up(self, key: Key, before: Place) -> None:
        """Count the key's rows before a place and give the next one a turn, as its track has changed."""
        cursor = self._cursors.get(key)
        if cursor is not None and cursor.turn > cursor.done:
            self._pass(cursor, bisect_left(cursor.rows, before, cursor.done, cursor.turn, key=place))
            self._wait(cursor, cursor.done)

    def _pass(self, cursor: _Cursor, end: int) -> None:
        if end > cursor.done:
            self._count(cursor.rows[end - 1], end - cursor.done)
            cursor.done = end

    def _wait(self, cursor: _Cursor, turn: int) -> None:
        cursor.turn, cursor.next = turn, cursor.rows[turn]
        heapq.heappush(self._heap, (place(cursor.next), cursor))
