"""A console is a stream of templates, and a template that recurs is a record.

Each line gets what stands above it: its step, the part of its data, the names of its columns. What is printed
over several lines comes as one. Nothing depends on how the text was cut into polls.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.console.passages import MAX_TEXT, Passages
from sentinel.sources.readers.measured_rows import ROW, Row
from sentinel.sources.readers.plain import Plain
from sentinel.sources.readers.printed_numbers import MAX_STEP, count, number
from sentinel.sources.readers.redrawn_lines import bar_free, printed_lines
from sentinel.sources.readers.slots import PART
from sentinel.sources.readers.templates import Template, mask, template
from sentinel.sources.readers.words import is_rounded_away
from sentinel.sources.recurring.above import CountersAbove, PartAbove
from sentinel.sources.recurring.arrays import Arrays
from sentinel.sources.recurring.blocks import Blocks
from sentinel.sources.recurring.column_names import ColumnNames
from sentinel.sources.recurring.drawn_bars import DrawnBars
from sentinel.sources.recurring.meters import Meters
from sentinel.sources.recurring.part_tables import PartTables
from sentinel.sources.recurring.plans import planned_epochs, settings_in
from sentinel.sources.recurring.record import COUNTER_ORDER, FIXED, PrintedLine, Record, leads, step_of
from sentinel.sources.recurring.records import Entry, Records
from sentinel.sources.recurring.reports import Reports
from sentinel.sources.recurring.summaries import Summaries
from sentinel.sources.recurring.wrapped import Wrapped

_AFTER_TRAINING = ("eval_", "train_runtime")
"""Beginnings of names that Hugging Face's Trainer prints between or after the training steps."""

_WRITER = lazy_pattern(r"\[((?:rank|default)\d{1,5})\]:? ?")
"""What torchrun puts before the lines of a process."""

_BEHIND_BAR = lazy_pattern(r"\](?=\[(?:rank|default)\d{1,5}\]:)")
"""Where another process prints behind a bar, which ends no line."""


class RecurringLines:
    """Reads a console while it grows: `read` its bytes, and `end` when nothing more comes.

    ``name`` names what stands on lines without words, and is that of the file. ``forms`` are forms of lines
    that a person named.
    """

    def __init__(
        self, name: str = "value", state: Mapping[str, Any] | None = None, forms: Sequence[LineForm] = ()
    ) -> None:
        state = state or {}
        self._forms = forms
        self._records = Records(name, state)
        self._counters = CountersAbove(state)
        self._part = PartAbove(state)
        self._bars = DrawnBars(state)
        self._blocks = Blocks(state)
        self._wrapped = Wrapped(state)
        self._columns = ColumnNames(state)
        self._meters = Meters(state.get("evaluated", ""))
        self._summaries = Summaries(state.get("summaries", {}))
        self._tables = PartTables(list(state.get("parts", [])))
        self._reports = Reports(state.get("report", {}))
        self._arrays = Arrays(state.get("in_array", False))
        self._line: int = state.get("line", 0)
        self._last_step: int | None = state.get("last_step")
        self._counted: bool = state.get("counted", False)  # whether a line told that step
        self._rows: list[Row] = []
        self.printed = Passages()  # lines that tell no metrics
        self.settings: dict[str, Plain] = {}  # that lines before the first row state

    def dump(self) -> dict[str, Any]:
        """Return all that the next bytes need to know, JSON-able."""
        return {
            **self._records.dump(),
            **self._counters.dump(),
            **self._part.dump(),
            **self._bars.dump(),
            **self._blocks.dump(),
            **self._wrapped.dump(),
            **self._columns.dump(),
            "evaluated": self._meters.part,
            "summaries": self._summaries.dump(),
            "parts": self._tables.parts,
            "report": self._reports.memory(),
            "in_array": self._arrays.is_open,
            "line": self._line,
            "last_step": self._last_step,
            "counted": self._counted,
        }

    def read(self, data: bytes) -> list[Row]:
        """Read whole lines, however they were cut. Return the rows that they complete."""
        for line, is_redrawn in printed_lines(data):
            self._read_line(line, is_redrawn)
        return self._taken()

    def end(self, torn: bytes = b"") -> list[Row]:
        """Return what only the end makes sure: a torn last line, and lines that came once or twice."""
        for line, is_redrawn in printed_lines(torn + b"\n"):
            self._read_line(line, is_redrawn)
        for line in self._wrapped.end():
            self._read_text(line, False)
        self._end_block()
        self._rows += self._bars.last_rows()
        self._add(self._records.last_entries())
        return self._taken()

    def _taken(self) -> list[Row]:
        rows = self._rows
        self._rows = []
        return rows

    def _read_line(self, line: str, is_redrawn: bool) -> None:
        self._line += 1
        if "][" in line and (end := _BEHIND_BAR.search(line)):
            self._read_line(line[: end.end()], True)
            line = line[end.end() :]
        if self._has_form(line, is_redrawn):
            return
        beside = self._arrays.read(line)
        if beside is None:
            return
        reported = self._reports.read(self._summaries.read(beside))
        if reported is None:
            return
        for text in self._wrapped.read(reported):
            self._read_text(text, is_redrawn)

    def _has_form(self, line: str, is_redrawn: bool) -> bool:
        """Take the numbers of a line that has a form which a person named. True if it has one."""
        for form in self._forms:
            if printed := form.numbers(line):
                self._take_numbers(form.template, printed, is_redrawn)
                return True
        return False

    def _read_text(self, text: str, is_redrawn: bool) -> None:
        """Take the numbers of a line that is no part of a larger whole, or pass the line on."""
        before = len(self._rows)
        if self._last_step is None:
            self.settings |= settings_in(text)
        prose = self._outside_tables(text)
        prose = self._meters.read(prose) if prose else prose
        if not prose:
            return
        self._read_numbers(prose, is_redrawn)
        if len(self._rows) == before and not is_redrawn:
            self.printed.add([text[:MAX_TEXT]], self._last_step)

    def _outside_tables(self, line: str) -> str | None:
        """Return a line with the names of its columns; None for the row of a block and for a header."""
        if "|" in line or self._tables.parts:
            named = self._tables.read(line)
            if named is None or named is not line:
                return named
        if "|" in line:
            if self._blocks.takes(line):
                return None
            line = bar_free(line)
        self._end_block()
        return self._columns.before(line)

    def _end_block(self) -> None:
        masked, numbers = self._blocks.end()
        if numbers:
            self._take_numbers(template(masked), numbers, False)

    def _read_numbers(self, line: str, is_redrawn: bool) -> None:
        """Take the numbers behind the name of the writer, below a part that stands alone above the line."""
        name = ""
        if line[0] == "[" and (prefix := _WRITER.match(line)):
            name = prefix[1]
            line = line[prefix.end() :]
        line = self._part.before(line)
        masked, numbers = mask(line)
        self._part.read(line, bool(numbers))
        if numbers:
            self._take_numbers(template(masked), numbers, is_redrawn, name)

    def _take_numbers(self, plan: Template, numbers: list[str], is_redrawn: bool, writer: str = "") -> None:
        """Move what the line counts, and add its values to the record of its template."""
        if not plan.values and not plan.counters:
            return
        if plan.rank >= 0:
            writer = self._counters.writer(numbers[plan.rank])
        is_bar = plan.elapsed >= 0
        if plan.is_nameless_bar and is_bar:
            self._rows += self._bars.draw(plan, numbers, writer)
            if self._bars.repeats(plan, numbers, writer, is_redrawn):
                return
        counters: dict[str, tuple[int, int | None]] = {}
        for at, kind, total in plan.counters:
            value = count(numbers[at])
            if value is not None and kind not in counters:
                counters[kind] = (value, count(numbers[total]) if total >= 0 else None)
        if self._last_step is None:
            self.settings |= planned_epochs(counters)
        if counters and counters.keys() != {PART} and not is_bar:
            self._counters.move(writer, counters)
        if not plan.values:
            return
        above = self._counters.of(writer)
        if not is_bar and (drawn := self._bars.count(writer)) is not None:
            above = [*(above or [0, "", 0]), drawn]
        line = PrintedLine(
            texts=[numbers[at] for at, _ in plan.values],
            counters=counters,
            above=above,
            stamp=numbers[plan.stamp] if plan.stamp >= 0 else "",
            is_final=is_bar and not is_redrawn,
            number=self._line,
        )
        self._add(self._records.entries(plan, writer, line))

    def _add(self, entries: Iterable[Entry]) -> None:
        """Add the rows of lines, and of what they tell further."""
        for record, line in entries:
            step = self._add_row(record, line)
            if record.rest:
                self._add(self._records.further_entries(record, line, step))

    def _add_row(self, record: Record, line: PrintedLine) -> int:
        """Add the row of a line, or let it wait for the bar that shows its step. Return its step."""
        writer = record.writer
        unit = record.unit
        steps = self._records.steps_of(record)
        steps.rows += FIXED not in line.counters
        steps.lap.stand_below(self._counters.epoch(writer))
        step = step_of(record, steps, line)
        if step is None or not -MAX_STEP < step < MAX_STEP:
            step = steps.rows
        if unit in ("row", "bar") and "epoch" in record.names and (drawn := self._bars.count(writer)):
            if not any(name.startswith(_AFTER_TRAINING) for name in record.names):
                self._rows += self._bars.wait(_row(record, line, step))
                return step
            step = drawn
        if unit != ROW or not self._counted:  # rows are counted each by themselves: those of a table, too
            self._last_step = step
            self._counted = unit != ROW
        if unit in COUNTER_ORDER and unit != "epoch" and leads(record.heading, record.names):
            self._counters.lead(writer, step)
        row = _row(record, line, step)
        texts = [line.texts[at] for at in record.at]
        if any(map(is_rounded_away, row.names, texts)):
            row = _without_rounded(row, texts)
        if unit == "epoch above" and "epoch" not in row.names:
            row = row._replace(names=(*row.names, "epoch"), values=(*row.values, float(step)))
        self._rows.append(row)
        self.printed.row(step)
        return step


def _row(record: Record, line: PrintedLine, step: int) -> Row:
    """Return all values of a line at its step."""
    values = tuple([_number_printed(line.texts[at]) for at in record.at])
    return Row(record.number, record.writer, record.names, values, step, record.unit, line.stamp, line.number)


def _without_rounded(row: Row, texts: Sequence[str]) -> Row:
    """Return a row without values that were rounded to nothing, given what was printed."""
    told = [at for at, name in enumerate(row.names) if not is_rounded_away(name, texts[at])]
    return row._replace(
        names=tuple(row.names[at] for at in told), values=tuple(row.values[at] for at in told)
    )


def _number_printed(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        value = number(text)
        return float("nan") if value is None else value
