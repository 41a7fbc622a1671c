"""A console is a stream of templates, and a template that recurs is a record.

A template becomes a record at its third line; its first lines wait until then. Counters in a line, or in
a line above it, give the step. Nothing depends on how the text was cut into polls.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from sentinel.common.conversion import converter
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.arrays import Arrays
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.console.meters import Meters
from sentinel.sources.console.part_tables import PartTables
from sentinel.sources.console.reports import Reports
from sentinel.sources.console.summaries import Summaries
from sentinel.sources.readers.measured_rows import ROW, Laps, Row
from sentinel.sources.readers.printed_numbers import MAX_STEP, count, number, without_deviation
from sentinel.sources.readers.redrawn_lines import bar_free, printed_lines
from sentinel.sources.readers.slots import PART
from sentinel.sources.readers.templates import MAX_LINE, Template, comma_header, header, mask, template
from sentinel.sources.readers.words import counter, is_rounded_away, phase, says_metric, says_other

MIN_LINES = 3
"""Lines of a template before it is a record."""

MIN_SURE_LINES = 2
"""Lines of a template that counts and surely names a metric."""

MAX_WAITING = 512
"""Templates that wait for their third line; the one that waits longest is dropped."""

MAX_RECORDS = 2048
"""Records of a console; further ones are not read."""

MAX_WRITERS = 64
"""Processes that print; what further ones print is read as that of one."""

MAX_EPOCHS_OF_STEP = 2
"""Epochs that may begin before a step that stands above no longer counts."""

MAX_KEY = 400
"""Characters of what is remembered of a bar."""

MAX_LATE = 128
"""Rows that wait for the bar that shows their step."""

MIN_COLUMNS = 3
"""Numbers of a row below a header."""

MAX_BLOCK = 512
"""Rows of a block."""

MAX_WRAPPED = 64
"""Lines of a wrapped dictionary."""

_COUNTER_ORDER = ("step", "batch", PART, "episode", "count", "epoch", "frame")
"""Which counter gives the step of a line that holds several."""

_AFTER_TRAINING = ("eval_", "train_runtime")
"""Beginnings of names that Hugging Face's Trainer prints between or after the training steps."""

_VARIES = lazy_pattern(r"loss|acc|reward|score|error|return|precision|recall|f1", re.IGNORECASE)
"""Names of what is logged even where it stands still."""

_LEARNING_RATE = lazy_pattern(r"(?<![a-z])lr(?![a-z])|learning.?rate", re.IGNORECASE)
"""Names of what is logged where it stands still, if something above counts."""

_WRITER = lazy_pattern(r"\[((?:rank|default)\d{1,5})\]:? ?")
"""What torchrun puts before the lines of a process."""

_BEHIND_BAR = lazy_pattern(r"\](?=\[(?:rank|default)\d{1,5}\]:)")
"""Where another process prints behind a bar, which ends no line."""

_PART_ALONE = lazy_pattern(
    r"(train(?:ing)?|valid(?:ation)?|val|test)(?: (?:set|error|results?|metrics|performance))?:",
    re.IGNORECASE,
)
"""A line that only says which part of the data the next one is about."""

_EVALUATION_BEGINS = lazy_pattern(
    r"(?:eval(?:uation)?|validation|testing) (?:begins?|starts?)\W*", re.IGNORECASE
)
"""A line that only says that the next ones are of held-out data, as PaddlePaddle prints it."""

_EVALUATION_ENDS = lazy_pattern(
    r"(?:eval(?:uation)?|validation|testing) (?:samples|ends?|done|finished)\b|epoch \d", re.IGNORECASE
)
"""How the first line behind these begins."""

PENDING = 0
"""State of a template whose first lines wait."""

CONFIRMED = 1
"""State of a template that is a record."""

REJECTED = -1
"""State of a template without metrics."""

_SAMPLE = lazy_pattern(
    r"(?:test |val )?(?:samples?|images?|img|files?|cases?|videos?|questions?|examples?|quer(?:y|ies)"
    r"|class(?:es)?|cls|categor(?:y|ies)|labels?)(?: (?:no|id|number|index|idx))?",
    re.IGNORECASE,
)
"""Names of what lines tell of one by one in an evaluation."""

_NAMED = "named"
"""Marks a record whose slots a person named."""

_FIXED = "="
"""Marks a line whose step another record gave."""

_OF_EPOCH = ("step", "batch", PART, "count")
"""Counters that may begin anew with each epoch."""


class PrintedLine(NamedTuple):
    """A line of a template: its values as printed, the counters in it, and what stood above it.

    ``above`` is step and unit of the counter above, how many counters came before, and perhaps the step that
    a bar shows.
    """

    texts: Sequence[str]
    counters: Mapping[str, Sequence[int | None]]
    above: Sequence[Any] | None
    stamp: str
    is_final: bool
    number: int


class Columns(NamedTuple):
    """The values of the first lines of a template, a column for each slot.

    ``are_whole`` and ``rise`` say of each whether it has whole numbers only, and whether these count.
    """

    texts: Sequence[tuple[str, ...]]
    are_whole: Sequence[bool]
    rise: Sequence[bool]

    @classmethod
    def of(cls, lines: Sequence[PrintedLine], may_count: bool) -> "Columns":
        """Return the columns of some lines. ``may_count`` is false where a person said what counts."""
        texts = list(zip(*[line.texts for line in lines], strict=True))
        are_whole = [
            all(count(text) is not None and "." not in text[:-1] for text in column) for column in texts
        ]
        rise = [
            may_count and is_whole and len(lines) >= MIN_LINES and _is_counter(column)
            for column, is_whole in zip(texts, are_whole, strict=True)
        ]
        return cls(texts, are_whole, rise)

    @property
    def counter(self) -> int:
        """The first slot that counts; -1 for none."""
        return next((at for at, rises in enumerate(self.rise) if rises), -1)

    @property
    def are_constant(self) -> bool:
        """Whether no value changes."""
        return all(len(set(column)) == 1 for column in self.texts)


class Record(msgspec.Struct, array_like=True):
    """One template that recurs, of one process."""

    number: int
    state: int = PENDING
    first_lines: list[PrintedLine] = []
    names: tuple[str, ...] = ()
    at: tuple[int, ...] = ()
    by: int = -1  # slot of the counter that only its values show
    unit: str = ""
    rows: int = 0
    lap: Laps = msgspec.field(default_factory=Laps)
    heading: str = ""
    make: str = ""
    base: str = ""  # key of the record whose steps these lines go on with
    writer: str = ""
    rest: tuple[int, ...] = ()  # values of a line that are a record of their own

    @property
    def counts(self) -> bool:
        """Whether its lines hold a counter."""
        return not self.make.endswith("\n")


_to_records = converter(dict[str, Record])


class RecurringLines:
    """Reads a console while it grows: `feed` it bytes, and `end` it when nothing more comes.

    ``name`` names what stands on lines without words, and is that of the file. ``forms`` are forms of lines
    that a person named.
    """

    def __init__(
        self, name: str = "value", state: Mapping[str, Any] | None = None, forms: Sequence[LineForm] = ()
    ) -> None:
        state = state or {}
        self.name = name
        self._forms = forms
        self._records = _to_records(state.get("records", {}))
        self._waiting = sum(record.state == PENDING for record in self._records.values())
        self._number: int = state.get("number", 0)
        self._line: int = state.get("line", 0)
        self._context: dict[str, list[Any]] = {k: list(v) for k, v in state.get("context", {}).items()}
        self._block: list[list[Any]] = [list(row) for row in state.get("block", [])]
        self._wrapped: list[str] = list(state.get("wrapped", []))
        self._depth: int = state.get("depth", 0)
        self._elapsed: dict[str, list[Any]] = {k: list(v) for k, v in state.get("elapsed", {}).items()}
        self._owners: dict[str, str] = dict(state.get("owners", {}))  # make of the lines of a series
        self._makes: dict[str, str] = dict(state.get("makes", {}))  # key of the first record of a make
        self._bars: dict[str, list[int]] = {k: list(v) for k, v in state.get("bars", {}).items()}
        self._late: dict[str, list[list[Any]]] = {k: list(v) for k, v in state.get("late", {}).items()}
        self._header: list[str] = list(state.get("header", []))  # names of columns
        self._columns: list[str] = list(state.get("columns", []))  # names of those of a table with commas
        self._part: str = state.get("part", "")  # of the data, that the next line is about
        self._evaluates: bool = state.get("evaluates", False)  # whether the next lines are of held-out data
        self._meters = Meters(state.get("evaluated", ""))
        self._summaries = Summaries(state.get("summaries", {}))
        self._tables = PartTables(list(state.get("parts", [])))
        self._reports = Reports(state.get("report", {}))
        self._arrays = Arrays(state.get("in_array", False))
        self._last_step: int | None = state.get("last_step")
        self._counted: bool = state.get("counted", False)  # whether a line told that step
        self._rows: list[Row] = []
        self.texts: list[tuple[str, int | None]] = []  # lines that tell no metrics, and the step before

    def dump(self) -> dict[str, Any]:
        """Return all that the next bytes need to know, JSON-able."""
        return {
            "records": msgspec.to_builtins(self._records),
            "number": self._number,
            "line": self._line,
            "context": self._context,
            "block": self._block,
            "wrapped": self._wrapped,
            "depth": self._depth,
            "elapsed": self._elapsed,
            "owners": self._owners,
            "makes": self._makes,
            "bars": self._bars,
            "header": self._header,
            "columns": self._columns,
            "part": self._part,
            "evaluates": self._evaluates,
            "evaluated": self._meters.part,
            "summaries": self._summaries.dump(),
            "parts": self._tables.parts,
            "report": self._reports.memory(),
            "in_array": self._arrays.is_open,
            "late": self._late,
            "last_step": self._last_step,
            "counted": self._counted,
        }

    def read(self, data: bytes) -> list[Row]:
        """Read whole lines, however they were cut. Return the rows that they complete."""
        for line, is_redrawn in printed_lines(data):
            self._read_console_line(line, is_redrawn)
        rows = self._rows
        self._rows = []
        return rows

    def end(self, torn: bytes = b"") -> list[Row]:
        """Return what only the end makes sure: a torn last line, and lines that came once or twice."""
        for line, is_redrawn in printed_lines(torn + b"\n"):
            self._read_console_line(line, is_redrawn)
        self._flush_joined()
        self._flush_block()
        for writer in [*self._late]:
            self._release(writer, self._bars[writer][0])
        for record in [*self._records.values()]:
            if record.state == PENDING and record.first_lines and self._is_sure_alone(record):
                self._confirm(record)
        rows = self._rows
        self._rows = []
        return rows

    def _read_console_line(self, line: str, is_redrawn: bool) -> None:
        self._line += 1
        if "][" in line and (end := _BEHIND_BAR.search(line)):
            self._read_console_line(line[: end.end()], True)
            line = line[end.end() :]
        before = len(self._rows)
        if self._has_form(line, is_redrawn):
            return
        beside = self._arrays.read(line)
        if beside is None:
            return
        reported = self._reports.read(self._summaries.read(beside))
        if reported is None:
            return
        text = self._join(reported) if self._wrapped or "{" in reported else reported
        if text is None:
            return
        prose = self._outside_tables(text)
        prose = self._meters.read(prose) if prose else prose
        if not prose:
            return
        self._read_numbers(prose, is_redrawn)
        if len(self._rows) == before and not is_redrawn:
            self.texts.append((text, self._last_step))

    def _outside_tables(self, line: str) -> str | None:
        """Return a line with the names of its columns; None for the row of a block and for a header."""
        if "|" in line or self._tables.parts:
            named = self._tables.read(line)
            if named is None or named is not line:
                return named
        if "|" in line:
            if self._is_row(line):
                return None
            line = bar_free(line)
        if self._block:
            self._flush_block()
        if "   " in line:
            return self._with_names(line)
        return self._with_columns(line) if line.count(",") > 1 else line

    def _has_form(self, line: str, is_redrawn: bool) -> bool:
        """Take the numbers of a line that has a form which a person named. True if it has one."""
        for form in self._forms:
            if printed := form.numbers(line):
                self._take_numbers(form.template, printed, is_redrawn)
                return True
        return False

    def _read_numbers(self, line: str, is_redrawn: bool) -> None:
        """Take the numbers behind the name of the writer, below a part that stands alone above the line."""
        name = ""
        if line[0] == "[" and (prefix := _WRITER.match(line)):
            name = prefix[1]
            line = line[prefix.end() :]
        if self._evaluates and _EVALUATION_ENDS.match(line.lstrip()):
            self._evaluates = False
        if part := self._part or ("eval" if self._evaluates else ""):
            line = f"{part} {line.lstrip()}"
        masked, numbers = mask(line)
        heading = None if numbers else _PART_ALONE.fullmatch(line.strip())
        self._part = heading[1] if heading else ""
        if not numbers and _EVALUATION_BEGINS.fullmatch(line.strip()):
            self._evaluates = True
        if numbers:
            self._take_numbers(template(masked), numbers, is_redrawn, name)

    def _with_names(self, line: str) -> str | None:
        """Return a row below a header with the names of its columns; None for the header itself."""
        names = header(line)
        if names:
            self._header = names
            return None
        if not self._header:
            return line
        cells = line.split(maxsplit=len(self._header))
        if len(cells) < len(self._header):
            return line
        row = [text.rstrip(":") for text in cells[: len(self._header)]]
        numeric = sum(number(text.partition("/")[0]) is not None for text in row)
        if numeric < MIN_COLUMNS or numeric < len(row) - 1:
            return line
        return " | ".join([f"{name}: {text}" for name, text in zip(self._header, row, strict=True)])

    def _with_columns(self, line: str) -> str | None:
        """Return a row of a table with commas with the names of its columns; None for its header."""
        names = comma_header(line)
        if names:
            self._columns = names
            return None
        cells = line.split(",")
        if len(cells) != len(self._columns) or any(cell.strip() and number(cell) is None for cell in cells):
            return line
        named = zip(self._columns, cells, strict=True)
        return " | ".join([f"{name}: {text.strip()}" for name, text in named if text.strip()])

    def _join(self, line: str) -> str | None:
        self._depth += line.count("{") - line.count("}")
        if self._depth <= 0 and not self._wrapped:
            self._depth = 0
            return line
        if (
            self._depth > 0
            and len(self._wrapped) < MAX_WRAPPED
            and sum(map(len, self._wrapped)) + len(line) < MAX_LINE
        ):
            self._wrapped.append(line.strip())
            return None
        self._wrapped.append(line.strip())
        if self._depth > 0:
            self._flush_joined()
            return None
        line = " ".join(self._wrapped)
        self._wrapped = []
        self._depth = 0
        return line

    def _flush_joined(self) -> None:
        lines = self._wrapped
        self._wrapped = []
        self._depth = 0
        for line in lines:
            before = len(self._rows)
            masked, numbers = mask(line)
            if numbers:
                self._take_numbers(template(masked), numbers, False)
            if len(self._rows) == before:
                self.texts.append((line, self._last_step))

    def _is_row(self, line: str) -> bool:
        """Take the row of a block with two columns: ``| name | value |``."""
        stripped = line.strip()
        if stripped[0] not in "|\u2502\u2503" or stripped[-1] not in "|\u2502\u2503" or len(stripped) > 200:
            return False
        cells = stripped.strip("|\u2502\u2503").replace("\u2502", "|").replace("\u2503", "|").split("|")
        if len(cells) != 2 or len(self._block) >= MAX_BLOCK:
            return False
        name = cells[0].rstrip()
        self._block.append([name, without_deviation(cells[1].strip())])
        return True

    def _flush_block(self) -> None:
        """Read the rows of a block as one line."""
        block = self._block
        self._block = []
        group = ""
        words: list[str] = []
        numbers: list[str] = []
        for name, value in block:
            plain = name.strip()
            if not value:
                group = plain.rstrip("/")
                continue
            if number(value) is None:
                continue
            is_below = bool(group) and name.startswith("   ")
            words.append(f"{group}/{plain}" if is_below else plain)
            numbers.append(value)
        if not numbers:
            return
        masked = "\0".join([f"| {word}: " for word in words] + [""])
        self._take_numbers(template(masked), numbers, False)

    def _take_numbers(self, plan: Template, numbers: list[str], is_redrawn: bool, writer: str = "") -> None:
        if not plan.values and not plan.counters:
            return
        if plan.rank >= 0:
            writer = numbers[plan.rank]
            if len(self._context) >= MAX_WRITERS and writer not in self._context:
                writer = "more"
        if plan.is_nameless_bar and plan.elapsed >= 0:
            self._draw(plan, numbers, writer)
            if self._repeats(plan, numbers, writer, is_redrawn):
                return
        counters: dict[str, tuple[int, int | None]] = {}
        for at, kind, total in plan.counters:
            value = count(numbers[at])
            if value is not None and kind not in counters:
                counters[kind] = (value, count(numbers[total]) if total >= 0 else None)
        context = self._context.get(writer)
        if counters and counters.keys() != {PART} and plan.elapsed < 0:
            context = self._moved_context(writer, counters)
        if plan.values:
            is_final = plan.elapsed >= 0 and not is_redrawn
            self._add_row(plan, numbers, writer, counters, context, is_final)

    def _moved_context(self, writer: str, counters: Mapping[str, tuple[int, int | None]]) -> list[Any]:
        """Move the step under which the next lines of a writer stand, and return it as it is kept.

        A step stays through the epochs that begin after it, but for many of them.
        """
        step, unit = self._context_step(counters)
        context = self._context.setdefault(writer, [0, "", 0, 0, 0])
        if not unit:
            return context
        if "epoch" in counters and counters["epoch"][0] != context[3]:
            context[3] = counters["epoch"][0]
            context[4] += 1
        if unit != "epoch" or context[1] != "step" or context[4] > MAX_EPOCHS_OF_STEP:
            context[2] += [step, unit] != context[:2]
            context[0] = step
            context[1] = unit
            context[4] = 0 if unit == "step" else context[4]
        return context

    def _repeats(self, plan: Template, numbers: list[str], writer: str, is_redrawn: bool) -> bool:
        """Return whether a bar that was drawn in the same second goes on, or only says the same again."""
        key = f"{writer} {plan.names}"[:MAX_KEY]
        value = -1
        is_full = False
        for at, kind, total in plan.counters:
            if kind == PART:
                value = count(numbers[at]) or 0
                is_full = total >= 0 and value == count(numbers[total])
        state_of_bar = [numbers[plan.elapsed], value, " ".join(numbers)[:MAX_KEY]]
        last = self._elapsed.get(key)
        if len(self._elapsed) > MAX_WAITING:
            self._elapsed.clear()
        is_same_second = last is not None and last[0] == state_of_bar[0] and not is_full and value > last[1]
        if is_redrawn and last is not None and (last[2] == state_of_bar[2] or is_same_second):
            return True
        self._elapsed[key] = state_of_bar
        return False

    def _release(self, writer: str, value: int) -> None:
        """Add the rows that waited for a bar, with the step that it shows or that their epochs tell."""
        late = self._late.pop(writer, [])
        epochs = [float(row[-1]) for row in late]
        for row, epoch in zip(late, epochs, strict=True):
            step = value
            if len(late) > 1 and 0 <= epoch <= epochs[-1] < MAX_STEP and epochs[-1] > 0:
                step = round(epoch / epochs[-1] * value)
            self._rows.append(
                Row(
                    row[0],
                    writer,
                    tuple(row[1]),
                    tuple(map(float, row[2])),
                    step if value else row[3],
                    row[4],
                    row[5],
                    row[6],
                )
            )

    def _draw(self, plan: Template, numbers: list[str], writer: str) -> None:
        """Remember how far the longest bar came, for lines that tell no step."""
        for at, kind, total in plan.counters:
            value = count(numbers[at])
            total_count = count(numbers[total]) if total >= 0 else None
            if kind == PART and value is not None and total_count is not None:
                bar = self._bars.get(writer, [0, 0])
                if total_count >= bar[1] and (writer in self._bars or len(self._bars) < MAX_WRITERS):
                    self._release(writer, value or bar[0])
                    self._bars[writer] = [value or bar[0], total_count]

    def _lead(self, writer: str, step: int) -> None:
        """Remember the step of a line of the training, for lines below that tell none."""
        context = self._context.setdefault(writer, [0, "", 0, 0, 0])
        context[2] += [step, "step"] != context[:2]
        context[0] = step
        context[1] = "step"
        context[4] = 0

    @staticmethod
    def _context_step(counters: Mapping[str, tuple[int, int | None]]) -> tuple[int, str]:
        for kind in ("step", "episode", "epoch"):
            if kind in counters:
                return counters[kind][0], kind
        return 0, ""

    def _add_row(
        self,
        plan: Template,
        numbers: list[str],
        writer: str,
        counters: Mapping[str, tuple[int, int | None]],
        context: list[Any] | None,
        is_final: bool,
    ) -> None:
        key = f"{writer}\n{plan.names}{[kind for _, kind, _ in plan.counters]}"
        record = self._records.get(key) or self._twin(key, plan, writer) or self._candidate(key, plan)
        if record is None or record.state == REJECTED:
            return
        above: list[Any] | None = context[:3] if context else None
        if plan.elapsed < 0 and writer in self._bars:
            above = [*(above or [0, "", 0]), self._bars[writer][0]]
        line = PrintedLine(
            [numbers[at] for at, _ in plan.values],
            counters,
            above,
            numbers[plan.stamp] if plan.stamp >= 0 else "",
            is_final,
            self._line,
        )
        if record.state == PENDING:
            self._collect(record, plan, writer, line)
            return
        step = self._emit(record, writer, line)
        if record.rest:
            texts = [line.texts[at] for at in record.rest]
            self._add_rest(key, writer, line._replace(texts=texts, counters={_FIXED: [step, None]}))

    def _candidate(self, key: str, plan: Template) -> Record | None:
        """Return a new record for a template that may hold metrics."""
        may_hold = plan.sure or plan.weak or plan.bare or len(plan.values) > 1 or plan.counters
        return self._new(key) if may_hold else None

    def _collect(self, record: Record, plan: Template, writer: str, line: PrintedLine) -> None:
        """Let a line wait for the decision on its template; decide once enough lines wait."""
        if not record.first_lines:
            record.names = plan.names
            record.heading = plan.heading
            record.writer = writer
            record.make = _make(plan.heading, [kind for _, kind, _ in plan.counters])
            record.unit = _certainty(plan)
        counters = {kind: list(value) for kind, value in line.counters.items()}  # as JSON gives them back
        record.first_lines.append(line._replace(counters=counters))
        if plan.is_named or len(record.first_lines) >= MIN_LINES or self._has_counted_metric(record):
            self._confirm(record)

    def _add_rest(self, key: str, writer: str, line: PrintedLine) -> None:
        """Add the values of a line that are a record of their own."""
        rest = self._records.get(f"{key}\n+")
        if rest is None or rest.state == REJECTED:
            return
        if rest.state == CONFIRMED:
            self._emit(rest, writer, line)
            return
        rest.first_lines.append(line)
        if len(rest.first_lines) >= MIN_LINES:
            self._confirm(rest)

    def _twin(self, key: str, plan: Template, writer: str) -> Record | None:
        """Return a record for lines that are those of another record but for some values."""
        if not plan.values or len(self._records) >= MAX_RECORDS:
            return None
        make = _make(plan.heading, [kind for _, kind, _ in plan.counters])
        other = self._makes.get(f"{writer}\n{make}")
        base = self._records.get(other) if other is not None else None
        if base is None:
            return None
        record = Record(base.number)
        record.make = make
        record.names = plan.names
        if self._follows(record, base, writer):
            self._records[key] = record
            return record
        return self._split(key, plan, record, base, writer)

    def _split(self, key: str, plan: Template, record: Record, base: Record, writer: str) -> Record | None:
        """Make a record go on with the series of another one. Its further series are their own record."""
        names = [name or self.name for name in plan.names]
        make = record.make
        rest = [
            at
            for at, name in enumerate(names)
            if not _is_beside(name) and self._owners.get(f"{writer}\n{name}") != make
        ]
        of_base = [at for at, name in enumerate(names) if at not in rest]
        if base.by >= 0 or all(_is_beside(names[at]) for at in of_base):
            return None
        further = self._new(f"{key}\n+")
        if further is None:
            return None
        further.names = tuple(names[at] for at in rest)
        further.heading = plan.heading
        further.writer = writer
        further.number = base.number
        further.make = make
        further.base = self._makes[f"{writer}\n{make}"]
        further.unit = "sure" if any(says_metric(name) for name in further.names) else "weak"
        record.base = further.base
        record.state = CONFIRMED
        record.unit = base.unit
        record.at = tuple(at for at in of_base if not _is_step(names[at], base.unit))
        record.names = tuple(names[at] for at in record.at)
        record.rest = tuple(rest)
        self._records[key] = record
        return record

    def _follows(self, record: Record, base: Record, writer: str) -> bool:
        """Make a record go on with the series of another one, if its lines hold no further series."""
        names = [name or self.name for name in record.names]
        if base.by >= 0 or any(
            not _is_beside(name) and self._owners.get(f"{writer}\n{name}") != record.make for name in names
        ):
            return False
        record.base = self._makes[f"{writer}\n{record.make}"]
        record.number = base.number
        record.state = CONFIRMED
        record.unit = base.unit
        record.at = tuple(at for at, name in enumerate(names) if not _is_step(name, base.unit))
        record.names = tuple(names[at] for at in record.at)
        return True

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

    @staticmethod
    def _is_sure_alone(record: Record) -> bool:
        """Return whether one line alone is surely a training's: a metric, and a counter in or above it."""
        return record.unit == "sure" and all(
            any(k in _COUNTER_ORDER for k in line.counters) or (line.above and line.above[1])
            for line in record.first_lines
        )

    @staticmethod
    def _has_counted_metric(record: Record) -> bool:
        """Return whether the first lines surely hold a metric, and count."""
        counts = [{kind: value[0] for kind, value in line.counters.items()} for line in record.first_lines]
        return (
            record.unit == "sure" and len(counts) >= MIN_SURE_LINES and all(counts) and counts[0] != counts[1]
        )

    @staticmethod
    def _varies_by_a_counter(record: Record, lines: Sequence[PrintedLine], columns: Columns) -> bool:
        """Return whether numbers that no name makes sure of change while something counts, or in a column."""
        counts = any(line.counters for line in lines) or record.by >= 0 or _stand_below(lines)
        varies = any(
            not is_whole and len(set(column)) > 1 and not _is_beside(name)
            for name, column, is_whole in zip(record.names, columns.texts, columns.are_whole, strict=True)
        )
        is_block = lines[-1].number - lines[0].number == len(lines) - 1
        is_column = record.unit == "bare" and varies and (len(columns.texts) == 1 or is_block)
        return (counts and varies) or is_column

    @staticmethod
    def _holds_settings(record: Record, lines: Sequence[PrintedLine], columns: Columns) -> bool:
        """Return whether numbers that stand still are settings, and no rate that may be constant."""
        has_counter = any(line.counters for line in lines) or record.by >= 0
        if has_counter or not columns.are_constant:
            return False
        if len(lines) < 2 or any(map(_VARIES.search, record.names)):
            return False
        return not (any(map(_LEARNING_RATE.search, record.names)) and _stand_below(lines))

    @staticmethod
    def _tells_of_samples(record: Record, columns: Columns) -> bool:
        """Return whether each line is about one sample or class of an evaluation, so that its numbers are no
        curve.
        """
        if record.by < 0 or not _SAMPLE.fullmatch(record.names[record.by]):
            return False
        numbers = [count(text) or 0 for text in columns.texts[record.by]]
        return all(later - earlier == 1 for earlier, later in pairwise(numbers))

    def _slots_of_values(self, record: Record, lines: Sequence[PrintedLine], columns: Columns) -> list[int]:
        """Return the slots that hold metrics or what is read beside them; none if there are no metrics."""
        is_named = record.unit == _NAMED
        is_sure = record.unit == "sure"
        if not (is_named or is_sure or self._varies_by_a_counter(record, lines, columns)):
            return []
        if not is_named and (
            self._holds_settings(record, lines, columns) or self._tells_of_samples(record, columns)
        ):
            return []
        beside = {at for at, name in enumerate(record.names) if not is_named and _is_beside(name)}
        if record.by in beside:
            record.by = -1
        slots = [
            at
            for at, (rises, is_whole) in enumerate(zip(columns.rise, columns.are_whole, strict=True))
            if at != record.by and (at in beside or is_sure or not (rises and is_whole))
        ]
        return slots if set(slots) - beside else []

    def _confirm(self, record: Record) -> None:
        """Decide what a template holds, by its first lines, and add the rows of these."""
        self._waiting -= 1
        lines = record.first_lines
        record.first_lines = []
        columns = Columns.of(lines, may_count=record.unit != _NAMED)
        if not any(line.counters for line in lines):
            record.by = columns.counter
        slots = self._slots_of_values(record, lines, columns)
        if slots:
            base = self._records.get(record.base) if record.base else None
            record.unit = base.unit if base else self._unit(record, lines)
            slots = [at for at in slots if not _is_step(record.names[at], record.unit)]
        if not slots:
            record.state = REJECTED
            return
        self._name_series(record, slots)
        entries = [(line.number, record, line) for line in lines] + self._lines_of_kin(record)
        for _, each, line in sorted(entries, key=lambda entry: entry[0]):
            self._emit(each, record.writer, line)

    def _name_series(self, record: Record, slots: Sequence[int]) -> None:
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
        record.names = tuple(self._own(name or self.name, record, record.writer) for name in names)

    def _lines_of_kin(self, record: Record) -> list[tuple[int, Record, PrintedLine]]:
        """Take the waiting lines of templates that go on with the series of a record."""
        entries: list[tuple[int, Record, PrintedLine]] = []
        for kin in self._records.values():
            if (
                kin.state == PENDING
                and kin.make == record.make
                and kin.writer == record.writer
                and kin.first_lines
                and self._follows(kin, record, record.writer)
            ):
                entries += [(line.number, kin, line) for line in kin.first_lines]
                kin.first_lines = []
                self._waiting -= 1
        return entries

    def _own(self, name: str, record: Record, writer: str) -> str:
        """Return the name of a series, such that lines of different makes are different series."""
        make = record.make
        if _is_beside(name):
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

    @staticmethod
    def _unit(record: Record, lines: Sequence[PrintedLine]) -> str:
        """Decide what counts the steps of a record: its own counter, one above it, or its rows."""
        if record.by >= 0:
            return "number"
        counters = set.intersection(*[set(line.counters) for line in lines])
        for kind in _COUNTER_ORDER:
            if (
                kind == "epoch"
                and kind in counters
                and len({line.counters[kind][0] for line in lines}) == 1
                and len(lines) >= MIN_LINES
            ):
                return "row"
            if kind == "step" and {"step", "episode"} <= counters and _goes_back(lines):
                continue
            if kind in counters and not (kind == PART and _is_full([line.counters for line in lines])):
                return kind
        aboves = [line.above for line in lines]
        bars = [above[3] if above and len(above) > 3 else -1 for above in aboves]
        if min(bars) >= 0 and all(later > earlier for earlier, later in pairwise(bars)):
            return "bar"
        steps = [above[0] for above in aboves if above]
        last = aboves[-1]
        if last and _stand_below(lines) and steps == sorted(steps):
            return f"{last[1]} above"
        return "row"

    def _emit(self, record: Record, writer: str, line: PrintedLine) -> int:
        """Add the row of a line, or let it wait for the bar that shows its step. Return its step."""
        texts, counters, above, stamp, is_final, line_number = line
        values = [_number_printed(texts[at]) for at in record.at]
        steps = self._records.get(record.base, record) if record.base else record
        steps.rows += _FIXED not in counters
        unit = record.unit
        step = _step(record, steps, texts, counters, above, is_final)
        if step is None or not -MAX_STEP < step < MAX_STEP:
            step = steps.rows
        if unit in ("row", "bar") and "epoch" in record.names and self._bars.get(writer, [0])[0]:
            if not any(name.startswith(_AFTER_TRAINING) for name in record.names):
                self._wait_for_bar(record, writer, values, [step, unit, stamp, line_number])
                return step
            step = self._bars[writer][0]
        if unit != ROW or not self._counted:  # rows are counted each by themselves: those of a table, too
            self._last_step = step
            self._counted = unit != ROW
        if unit in _COUNTER_ORDER and unit != "epoch" and _leads(record.heading, record.names):
            self._lead(writer, step)
        names = record.names
        if any(map(is_rounded_away, names, map(texts.__getitem__, record.at))):
            told = [at for at, name in enumerate(names) if not is_rounded_away(name, texts[record.at[at]])]
            names = tuple(names[at] for at in told)
            values = [values[at] for at in told]
        if unit == "epoch above" and "epoch" not in names:
            names = (*names, "epoch")
            values.append(float(step))
        self._rows.append(Row(record.number, writer, names, tuple(values), step, unit, stamp, line_number))
        return step

    def _wait_for_bar(self, record: Record, writer: str, values: list[float], rest: list[Any]) -> None:
        """Let a row wait for the bar that shows its step."""
        late = self._late.setdefault(writer, [])
        epoch = repr(values[record.names.index("epoch")])
        late.append([record.number, record.names, [*map(repr, values)], *rest, epoch])  # JSON has no NaN
        if len(late) >= MAX_LATE:
            self._release(writer, 0)
            self._bars[writer] = [0, 0]


def _stand_below(lines: Sequence[PrintedLine]) -> bool:
    """Return whether each of the lines stands below a counter of its own."""
    aboves = [line.above for line in lines]
    return all(above and above[1] for above in aboves) and len(
        {above[2] for above in aboves if above}
    ) == len(aboves)


def _goes_back(lines: Sequence[PrintedLine]) -> bool:
    """Return whether the steps of some lines go back, as where each tells how long an episode was."""
    steps, totals = zip(*[line.counters["step"] for line in lines], strict=True)
    return not any(totals) and any(later < earlier for earlier, later in pairwise(steps))


def _number_printed(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        value = number(text)
        return float("nan") if value is None else value


def _step(
    record: Record,
    steps: Record,
    texts: Sequence[str],
    counters: Mapping[str, Sequence[int | None]],
    above: Sequence[Any] | None,
    is_final: bool,
) -> int | None:
    """Return the step that a line or the lines above it tell; ``steps`` holds those of the lines before."""
    unit = record.unit
    if _FIXED in counters:
        return counters[_FIXED][0]
    if unit == "number":
        return count(texts[record.by])
    if unit in counters:
        value, total = counters[unit]
        of = "episode" if total is None and "epoch" not in counters else "epoch"
        epoch = counters[of][0] if of in counters else None
        is_whole = epoch is None and unit in ("step", "count") and total is None
        if value is None or unit not in _OF_EPOCH or is_whole:
            return value
        return steps.lap.step(value, total, epoch, is_final)
    if unit == "bar" and above and len(above) > 3:
        return int(above[3])
    return int(above[0]) if unit.endswith(" above") and above else None


@lru_cache(2048)
def _leads(heading: str, names: tuple[str, ...]) -> bool:
    """Return whether what stands below lines belongs to their step: they are of the training."""
    parts = {part.lower() for text in (heading, *names) for part in phase(text).split()}
    return parts <= {"train", "training", "trn"}


def _is_beside(name: str) -> bool:
    """Return whether a value is no metric by itself but is read beside metrics: an epoch, a speed."""
    return name in ("epoch", "max_steps") or says_other(name) or counter(name) is not None


def _is_step(name: str, unit: str) -> bool:
    """Return whether a name is that of the counter that gives the step."""
    return name != "epoch" and counter(name) == unit


def _is_full(counters: Sequence[Mapping[str, Sequence[int | None]]]) -> bool:
    """Return whether all lines come at the end of an epoch whose number they do not tell."""
    return all("epoch" not in each and each[PART][0] == each[PART][1] for each in counters)


def _certainty(plan: Template) -> str:
    """Return how sure it is that a template holds metrics."""
    if plan.is_named:
        return _NAMED
    return "sure" if plan.sure else "weak" if plan.weak else "bare" if plan.bare else ""


def _make(heading: str, kinds: list[str]) -> str:
    return f"{heading}\n{' '.join(kinds)}"


def _is_counter(column: tuple[str, ...]) -> bool:
    """Return whether a column counts: it grows by the same amount with each line, as if from 0 or 1."""
    values = [count(text) or 0 for text in column]
    steps = {later - earlier for earlier, later in pairwise(values)}
    step = steps.pop()
    return not steps and step > 0 and values[0] % step <= 1
