"""The templates of a console, and which of them are records.

A template becomes a record at its third line; its first lines wait until then. Lines of the same make, which
tell of the same thing with more values or fewer, are of one record and what it tells further.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from sentinel.common.conversion import converter
from sentinel.sources.readers.templates import Template
from sentinel.sources.readers.words import says_metric
from sentinel.sources.recurring.record import (
    CONFIRMED,
    FIXED,
    MIN_LINES,
    PENDING,
    REJECTED,
    Columns,
    PrintedLine,
    Record,
    certainty,
    has_counted_metric,
    is_beside,
    is_step,
    is_sure_alone,
    make_of,
    may_count,
    slots_of_values,
    unit_of,
)

MAX_WAITING = 512
"""Templates that wait for their third line; the one that waits longest is dropped."""

MAX_RECORDS = 2048
"""Records of a console; further ones are not read."""

_to_records = converter(dict[str, Record])

Entry = tuple[Record, PrintedLine]
"""A line that is a row of a record."""


class Records:
    """Decides of each template whether it is a record, given the state of those before (``{}`` for none).

    ``name`` names what stands on lines without words.
    """

    def __init__(self, name: str, state: Mapping[str, Any]) -> None:
        self._name = name
        self._records = _to_records(state.get("records", {}))
        self._waiting = sum(record.state == PENDING for record in self._records.values())
        self._number: int = state.get("number", 0)
        self._owners: dict[str, str] = dict(state.get("owners", {}))  # make of the lines of a series
        self._makes: dict[str, str] = dict(state.get("makes", {}))  # key of the first record of a make

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {
            "records": msgspec.to_builtins(self._records),
            "number": self._number,
            "owners": self._owners,
            "makes": self._makes,
        }

    def steps_of(self, record: Record) -> Record:
        """Return the record with whose steps the lines of a record go on: its own, if it is no other's."""
        return self._records.get(record.base, record)

    def entries(self, plan: Template, writer: str, line: PrintedLine) -> list[Entry]:
        """Return the lines that are sure to be rows with this one, in their order."""
        key = f"{writer}\n{plan.names}{[kind for _, kind, _ in plan.counters]}"
        record = self._records.get(key) or self._twin(key, plan, writer) or self._candidate(key, plan)
        if record is None or record.state == REJECTED:
            return []
        if record.state == CONFIRMED:
            return [(record, line)]
        if not record.first_lines:
            record.names = plan.names
            record.heading = plan.heading
            record.writer = writer
            record.make = make_of(plan)
            record.unit = certainty(plan)
        counters = {kind: list(value) for kind, value in line.counters.items()}  # as JSON gives them back
        record.first_lines.append(line._replace(counters=counters))
        is_enough = plan.is_named or len(record.first_lines) >= MIN_LINES or has_counted_metric(record)
        return self._confirmed(record) if is_enough else []

    def further_entries(self, record: Record, line: PrintedLine, step: int) -> list[Entry]:
        """Return what is sure to be rows with what a line of a record tells further, at its step."""
        further = self._records.get(record.further)
        if further is None or further.state == REJECTED:
            return []
        texts = [line.texts[at] for at in record.rest]
        line = line._replace(texts=texts, counters={FIXED: [step, None]})
        if further.state == CONFIRMED:
            return [(further, line)]
        further.first_lines.append(line)
        return self._confirmed(further) if len(further.first_lines) >= MIN_LINES else []

    def last_entries(self) -> Iterator[Entry]:
        """Yield the lines that came once or twice and are surely rows, now that no more come."""
        for record in [*self._records.values()]:
            if record.state == PENDING and record.first_lines and is_sure_alone(record):
                yield from self._confirmed(record)

    def _candidate(self, key: str, plan: Template) -> Record | None:
        """Return a new record for a template that may hold metrics."""
        may_hold = plan.sure or plan.weak or plan.bare or len(plan.values) > 1 or plan.counters
        return self._new(key) if may_hold else None

    def _new(self, key: str) -> Record | None:
        if self._waiting >= MAX_WAITING:
            oldest = next((k for k, record in self._records.items() if record.state != CONFIRMED), None)
            if oldest is None:
                return None
            self._waiting -= self._records[oldest].state == PENDING
            del self._records[oldest]
        if len(self._records) >= MAX_RECORDS + MAX_WAITING:
            return None
        record = Record(self._number)
        self._number += 1
        self._waiting += 1
        self._records[key] = record
        return record

    def _twin(self, key: str, plan: Template, writer: str) -> Record | None:
        """Return a record for lines that are those of another record but for some values."""
        if not plan.values or len(self._records) >= MAX_RECORDS:
            return None
        make = make_of(plan)
        other = self._makes.get(f"{writer}\n{make}")
        base = self._records.get(other) if other is not None else None
        if base is None:
            return None
        record = Record(base.number, names=plan.names, heading=plan.heading, make=make, writer=writer)
        if self._follows(record, base) or self._split(record, base, f"{key}\n+"):
            self._records[key] = record
            return record
        return None

    def _follows(self, record: Record, base: Record) -> bool:
        """Make a record go on with the series of another one, if its lines hold no further series."""
        return not self._further_slots(record) and self._go_on(record, base)

    def _go_on(self, record: Record, base: Record) -> bool:
        """Make a record go on with the series of another one, as far as it has them. False if it cannot."""
        if base.by >= 0:
            return False
        further = self._further_slots(record)
        names = self._names(record)
        record.base = self._makes[f"{record.writer}\n{record.make}"]
        record.number = base.number
        record.state = CONFIRMED
        record.unit = base.unit
        record.at = tuple(
            at for at, name in enumerate(names) if at not in further and not is_step(name, base.unit)
        )
        record.names = tuple(names[at] for at in record.at)
        return True

    def _split(self, record: Record, base: Record, key: str) -> bool:
        """Make a record go on with the series of another one, and one of a key for what it tells further."""
        rest = self._further_slots(record)
        names = self._names(record)
        has_common = any(at not in rest and not is_beside(name) for at, name in enumerate(names))
        if base.by >= 0 or not has_common:
            return False
        further = self._new(key)
        if further is None:
            return False
        further.names = tuple(names[at] for at in rest)
        further.heading = record.heading
        further.writer = record.writer
        further.number = base.number
        further.make = record.make
        further.base = self._makes[f"{record.writer}\n{record.make}"]
        further.unit = "sure" if any(map(says_metric, further.names)) else "weak"
        record.rest = rest
        record.further = key
        return self._go_on(record, base)

    def _names(self, record: Record) -> list[str]:
        return [name or self._name for name in record.names]

    def _further_slots(self, record: Record) -> tuple[int, ...]:
        """Return the slots of a record that are no series of other lines of its make."""
        return tuple(
            at
            for at, name in enumerate(self._names(record))
            if not is_beside(name) and self._owners.get(f"{record.writer}\n{name}") != record.make
        )

    def _confirmed(self, record: Record) -> list[Entry]:
        """Decide what a template holds, by its first lines, and return these if they are rows."""
        self._waiting -= 1
        lines = record.first_lines
        record.first_lines = []
        columns = Columns.of(lines, may_count=may_count(record))
        if not any(line.counters for line in lines):
            record.by = columns.counter
        slots = slots_of_values(record, lines, columns)
        if slots:
            base = self._records.get(record.base)
            record.unit = base.unit if base else unit_of(record, lines)
            slots = [at for at in slots if not is_step(record.names[at], record.unit)]
        if not slots:
            record.state = REJECTED
            return []
        self._name_series(record, slots)
        entries = [(record, line) for line in lines] + self._lines_of_kin(record)
        return sorted(entries, key=lambda entry: entry[1].number)

    def _name_series(self, record: Record, slots: list[int]) -> None:
        """Make a template a record whose series are the values in some slots."""
        names = [record.names[at] for at in slots]
        if len(names) == 1 and names[0].endswith(" 2") and record.by >= 0:
            names[0] = names[0][:-2]
        record.at = tuple(slots)
        record.state = CONFIRMED
        self._makes.setdefault(
            f"{record.writer}\n{record.make}",
            next(key for key, each in self._records.items() if each is record),
        )
        record.names = tuple(self._own(name or self._name, record) for name in names)

    def _lines_of_kin(self, record: Record) -> list[Entry]:
        """Take the waiting lines of templates that go on with the series of a record."""
        entries: list[Entry] = []
        for kin in self._records.values():
            if (
                kin.state == PENDING
                and kin.make == record.make
                and kin.writer == record.writer
                and kin.first_lines
                and self._follows(kin, record)
            ):
                entries += [(kin, line) for line in kin.first_lines]
                kin.first_lines = []
                self._waiting -= 1
        return entries

    def _own(self, name: str, record: Record) -> str:
        """Return the name of a series, such that lines of different makes are different series."""
        make = record.make
        writer = record.writer
        if is_beside(name):
            return name
        if not record.counts and len(self._owners) < MAX_RECORDS:
            for other in self._records.values():  # a line that counts has the plain name
                if other.counts and other.writer == writer and name in other.names:
                    self._owners.setdefault(f"{writer}\n{name}", other.make)
                    break
        for candidate in (name, f"{record.heading} {name}".strip(), f"{name} by {record.unit}"):
            if len(self._owners) >= MAX_RECORDS:
                return candidate
            if self._owners.setdefault(f"{writer}\n{candidate}", make) == make:
                return candidate
        return f"{name} {record.number}"
