"""Any delimited text: with and without header, banners between, ragged rows, text columns, percent signs.

The first lines decide what separates the cells, what the columns are called and which one counts.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from sentinel.common.conversion import converter
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.measured_rows import Laps, Row
from sentinel.sources.readers.printed_numbers import MAX_STEP, cell, count
from sentinel.sources.readers.redrawn_lines import printed_lines
from sentinel.sources.readers.splits import ONLY_A_PART, held_out, of_file, part_of_file
from sentinel.sources.readers.words import counter, phase, says_metric

MIN_LINES = 4
"""Lines that decide about the columns."""

MAX_BANNERS = 24
"""Lines before the header."""

MAX_UNNAMED = 2
"""Columns behind those that the header names."""

MIN_NAMES = 3
"""Names in a header that is shorter than its rows."""

MIN_EPOCH_SECONDS = 1e9
"""Seconds since 1970 from which on a number may be a time."""

MAX_EPOCH_SECONDS = 1e10
"""Seconds since 1970 up to which a number may be a time."""

MAX_COLUMNS = 512
"""Columns that are read."""

MAX_LABEL = 40
"""Characters of a text cell that names a series."""

MAX_LABELS = 64
"""Texts of a column that name series; of one with more none does."""

_GAP = lazy_pattern(r"\s{2,}")
"""What stands between names of several words in a header."""

_RULE_CHARACTERS = "-=+|: \u2500\u2501\u2502\u253c"
"""What a rule below the header of a table is made of."""

_DELIMITERS = (",", "\t", ";", "|", "_", " ")
_WALL = lazy_pattern(
    r"(?:wall[ _]?)?time(?:stamp)?|date(?:time)?|elapsed.*|.*[_ ]time(?:[_ (].*)?|run ?time.*|duration",
    re.IGNORECASE,
)
_NAMING = lazy_pattern(
    r"metric(?:_name)?|tag|key|name|phase|split|stage|mode|series|variable|agent|algorithm|algo|model|method|env|run",
    re.IGNORECASE,
)
_LONG_FORM = lazy_pattern(r"metric(?:_name)?|tag|key|series|variable|phase|split|stage", re.IGNORECASE)
_OF_METRICS = lazy_pattern(r"metric(?:_name)?|tag|key|name", re.IGNORECASE)
_ENDING = lazy_pattern(
    r"(?:.*[^a-z])?(?:reasons?|outcomes?|results?|status|causes?|winner|verdict|done|end(?:ed|ing)?|terminat(?:ion|ed))"
    r"(?:[^a-z].*)?",
    re.IGNORECASE,
)
"""Names of columns that say how an episode or a trial ended, which differs from row to row."""

_REWARD = lazy_pattern(r"(?:.*[^a-z])?(?:rewards?|returns?)(?:[^a-z].*)?", re.IGNORECASE)
_VALUE_COLUMN = lazy_pattern(r"value|mean|0|y|metric_value", re.IGNORECASE)
_OF_ROWS = lazy_pattern(
    r"(?:sample|image|img|file|case|patient|subject|item)(?:[ _]?(?:id|name|path))?|uu?id|path|filename",
    re.IGNORECASE,
)
"""Names of columns that name the rows."""

_PLAIN_STEP = lazy_pattern(r"x\d?|n|num|unnamed: ?0", re.IGNORECASE)
_STATISTIC = lazy_pattern(
    r"(?:running_?)?(?:avg|average|mean|median|min|max|std|sum|last|best)", re.IGNORECASE
)
"""Names of columns that only the name of the file says something about."""

_HEADING = lazy_pattern(r"\W{0,9}(\w{1,20})\W{0,3}\d{1,12}\W{0,9}")
"""What stands above the numbers of an epoch in one column: "Epoch 0"."""

MAX_QUOTED = 1 << 14
"""Characters of a row with a line break in a cell."""

_SUMS = "loss_train", "loss_test"
"""What DeepXDE calls the losses of which it writes the parts."""

_PART = " part "

_SWITCHES = frozenset({"true", "false", "yes", "no", "on", "off", "none"})
"""Texts that say whether something was on."""

_MISSING_CELLS = frozenset({"", "_", "-", "--", "None", "null", "n/a", "N/A", "NA"})
"""Texts of a cell that holds nothing."""

_COMMENT = lazy_pattern(r"\s{0,9}#\s{0,9}[A-Za-z_]")

_BRACKETS = lazy_pattern(r"[\[(]([^\[\]()]*)[\])],?\s*")
"""A row that is printed as a list or a tuple of numbers."""

_DATE_AND_TIME = lazy_pattern(r"\d{4}-\d\d?-\d\d?[T ]\d\d?:\d\d")
_DATE = lazy_pattern(r"\d[-/:.]\d")
_DECIMAL_COMMA = lazy_pattern(r"[-+]?\d{1,20},\d{1,20}")
_UNCOUNTED = lazy_pattern(r"(?<!\s)\s*+(?:\([^)]{0,40}\)|\[[^\]]{0,40}\])\s*$")

_to_laps = converter(dict[str, Laps])


class Table:
    """Reads a table while it grows: `feed` it bytes, and `end` it when nothing more comes."""

    def __init__(self, name: str = "value", state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self.name = name
        self._part = part_of_file(name)
        self._head: list[str] = list(state.get("head", []))
        self.delimiter: str = state.get("delimiter", "")
        self._is_open: bool = state.get("open", False)
        self.header: list[str] = list(state.get("header", []))
        self.values: list[int] = list(state.get("values", []))
        self.labels: list[int] = list(state.get("labels", []))
        self._trainings: list[int] = list(state.get("trainings", []))
        self.step: int = state.get("step", -1)
        self._blank: list[int] = list(state.get("blank", []))  # columns that the header leaves out
        self.has_row_names: bool = state.get("row_names", False)
        self.has_clock: bool = state.get("clock", False)
        self._epoch: int = state.get("epoch", -1)
        self._unit: str = state.get("unit", "row")
        self._wall: int = state.get("wall", -1)
        self._measured: int = state.get("measured", -1)  # of columns without names, the first of fractions
        self._laps = _to_laps(state.get("laps", {}))
        self._counts: dict[str, int] = dict(state.get("counts", {}))
        self._line: int = state.get("line", 0)
        self._quoted: str = state.get("quoted", "")  # the lines of a row that ends within a cell
        self._width: int = state.get("width", 0)
        self.is_plain: bool = state.get("plain", True)
        self.rows = state.get("rows", 0)
        self.others = state.get("others", 0)
        self._out: list[Row] = []

    def dump(self) -> dict[str, Any]:
        """Return all that the next bytes need to know, JSON-able."""
        return {
            "head": self._head,
            "delimiter": self.delimiter,
            "open": self._is_open,
            "header": self.header,
            "values": self.values,
            "labels": self.labels,
            "trainings": self._trainings,
            "step": self.step,
            "blank": self._blank,
            "row_names": self.has_row_names,
            "clock": self.has_clock,
            "epoch": self._epoch,
            "unit": self._unit,
            "wall": self._wall,
            "measured": self._measured,
            "laps": msgspec.to_builtins(self._laps),
            "counts": self._counts,
            "line": self._line,
            "quoted": self._quoted,
            "width": self._width,
            "plain": self.is_plain,
            "rows": self.rows,
            "others": self.others,
        }

    def read(self, data: bytes) -> list[Row]:
        """Read whole lines, however they were cut. Return the rows that they complete."""
        for line, _ in printed_lines(data):
            self._read_cells(line)
        rows = self._out
        self._out = []
        return rows

    def end(self, torn: bytes = b"") -> list[Row]:
        """Return the rows that are left when nothing more comes."""
        for line, _ in printed_lines(torn + b"\n"):
            self._read_cells(line)
        if self._quoted:
            self._read_row(self._quoted)
            self._quoted = ""
        if not self._is_open and self._head:
            self._decide_columns()
        rows = self._out
        self._out = []
        return rows

    def _read_cells(self, line: str) -> None:
        self._line += 1
        line = f"{self._quoted} {line}" if self._quoted else line
        self._quoted = line if _ends_within_a_cell(line) and len(line) < MAX_QUOTED else ""
        if not self._quoted:
            self._read_row(line)

    def _read_row(self, line: str) -> None:
        if self._is_open:
            self._add_row(line)
            return
        if self._head and _COMMENT.match(line) and _COMMENT.match(self._head[-1]):
            self._head.pop()  # only the last of several comments may name columns
        self._head.append(line)
        if len(self._head) >= MAX_BANNERS or _are_rows_of_a_table(self._head[-MIN_LINES:]):
            self._decide_columns()

    def _decide_columns(self) -> None:
        """Decide about the columns by the first lines."""
        head = [line for line in self._head if line.strip(_RULE_CHARACTERS)]
        self._head = []
        if not head:
            return
        self._is_open = True
        start = max(0, len(head) - MIN_LINES)
        self.delimiter = _delimiter(head[start:])
        rows = [_cells(line, self.delimiter) for line in head]
        self._width = len(rows[-1])
        numeric = [[cell(text) is not None for text in row] for row in rows]
        first = next(
            (at for at, row in enumerate(rows) if len(row) == self._width and any(numeric[at])), len(rows)
        )
        while first and len(rows[first - 1]) == self._width and any(numeric[first - 1]) and first - 1 > 0:
            first -= 1
        above = first - 1 if first > 0 else -1
        if first < len(rows) and _is_header(rows[first], rows[first + 1 :]):
            above = first
            first += 1
        if 0 <= above < len(rows):
            names = rows[above]
            if self.delimiter == " " and len(of_words := _GAP.split(head[above].strip())) == self._width:
                names = of_words
            self._name_columns(names, rows[first:])
            rows = [without(row, self._blank) for row in rows]
        self._choose(rows[first:])
        for line in head[first:]:
            self._add_row(line)

    def _name_columns(self, above: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Take the names of the columns from what stands above the rows, if it names them."""
        names = [text.strip().strip("\"'").lstrip("#").strip(" ,") for text in above]
        if len(names) > 1 and above[0].strip() == "#":
            names = names[1:]
        if all(map(cell, above)):
            return
        if len(names) == 1:
            heading = _HEADING.fullmatch(names[0])
            if self._width == 1 and not (heading and counter(heading[1])):
                self.header = names
            return
        blank = [at for at in range(self._width) if not any(row[at].strip() for row in rows if at < len(row))]
        if 0 < len(blank) == self._width - len(names):
            self._blank = blank
            self._width = len(names)
        self.header = _fitted(names, self._width)

    def _choose(self, rows: Sequence[Sequence[str]]) -> None:
        """Decide which column counts, which ones name and which ones are values."""
        width = min(self._width, MAX_COLUMNS)
        rows = [row for row in rows if len(row) >= width]
        numeric: list[int] = []
        texts: list[int] = []
        for at in range(width):
            column = [row[at] for row in rows]
            of_numbers = sum(_number_in_cell(text, self.delimiter) is not None for text in column)
            with_text = sum(text.strip() not in _MISSING_CELLS for text in column)
            is_text = of_numbers * 2 < with_text
            (texts if is_text else numeric).append(at)
        names = self.header or [""] * self._width
        kinds = {at: counter(_UNCOUNTED.sub("", names[at])) for at in numeric}
        whole = {at: [_whole_number(row[at]) for row in rows] for at in numeric if kinds[at]}
        may_step = [
            at for at, column in whole.items() if _orders(column) and not _is_total(names[at], column)
        ]
        may_step = [at for at in may_step if any(whole[at])] or may_step  # what stays 0 counts nothing
        rising = [at for at in may_step if _counts_up(whole[at])]
        for kind in ("step", "batch", "episode", "count", "epoch", "frame"):
            counters = [at for at in may_step if kinds[at] == kind]
            is_length = kind == "step" and rising and not set(counters) & set(rising)
            if counters and not (is_length and _falls(whole[counters[0]])):
                self.step = counters[0]
                self._unit = kind
                break
        if self._unit in ("step", "batch"):
            self._epoch = next((at for at in numeric if kinds[at] == "epoch"), -1)
        may_count = not self.header or not names[0] or bool(_PLAIN_STEP.fullmatch(names[0]))
        if (
            self.step < 0
            and may_count
            and len(numeric) > 1
            and numeric[0] == 0
            and _counts_up([_count_in_cell(row[0]) for row in rows])
        ):
            self.step = 0
            self._unit = "number"
        if not self.header and self.step < 0 and len(numeric) > 2 and _are_laps(rows):
            self._epoch = 0
            self.step = 1
            self._unit = "batch"
        walls = [at for at in numeric if _WALL.fullmatch(names[at])]
        self._wall = next((at for at in walls if re.match(r"wall|time", names[at], re.IGNORECASE)), -1)
        clocks = [at for at in numeric[1:] if _is_clock([row[at] for row in rows])]
        if clocks and not self.header:
            self.has_clock = True
            self._wall = clocks[0]
            walls = clocks
        self.values = [
            at for at in numeric if at != self.step and at not in walls and (not kinds[at] or not self.header)
        ]
        self.values = self.values or [at for at in numeric if at != self.step and at not in walls]
        if self.header and len(self.values) > 1 and not names[self.values[0]]:
            del self.values[0]  # what pandas numbers the rows by
        self.values = [at for at in self.values if at != self._epoch or self.header]
        fractions = [at for at in self.values if not all(_is_whole(row[at]) for row in rows)]
        if not self.header and fractions and says_metric(self.name):
            self._measured = fractions[0]
        dated = {at for at in texts if all(_DATE_AND_TIME.match(row[at].strip()) for row in rows)}
        is_plain = all(len({row[at] for row in rows}) == 1 for at in texts if at not in dated)
        self.is_plain = bool(self.header) or is_plain or bool(dated and len(numeric) > 2 * len(texts))
        self.labels = [
            at
            for at in texts
            if at not in dated and self._names_series(names[at], [row[at].strip() for row in rows])
        ]
        self.labels = [at for at in self.labels if any(row[at].strip() not in _MISSING_CELLS for row in rows)]
        self.has_row_names = any(
            _are_names([row[at] for row in rows]) for at in texts if at == 0 or _OF_ROWS.fullmatch(names[at])
        )
        if self.header and any(_OF_METRICS.fullmatch(names[at]) for at in self.labels):
            metrics = [at for at in self.labels if _OF_METRICS.fullmatch(names[at])]
            parts = [at for at in texts if at not in metrics and _are_parts([row[at] for row in rows])]
            self.labels = [*parts, *metrics]
            if only := [at for at in self.values if _VALUE_COLUMN.fullmatch(names[at])][:1]:
                others = {*texts, *self.values} - {*parts, *metrics, *only, *dated}
                sparse = [at for at in others if any(row[at].strip() in _MISSING_CELLS for row in rows)]
                self.labels += sorted(sparse)  # what only some metrics are of, as a layer is
                self.values = only
        self._trainings = [at for at in self.labels if self._tells_training(at, rows)]

    def _tells_training(self, at: int, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether a column of labels says which training a row is of, and not what was measured.

        Where nothing counts the rows, each may be the result of a training. Who earns a reward beside others
        may be a baseline that learns nothing, such as a random policy, or play against them.
        """
        if not self.header or self.step < 0 or _LONG_FORM.fullmatch(self.header[at]):
            return False
        names = [self.header[value] for value in self.values]
        is_only = len(names) == 1 and bool(_VALUE_COLUMN.fullmatch(names[0]))
        earns = any(_REWARD.fullmatch(name) for name in names)
        return not is_only and not earns and not any(phase(row[at]) for row in rows)

    def _names_series(self, name: str, column: Sequence[str]) -> bool:
        """Return whether a column of texts names the series: its texts come again, or its name says so.

        Whether something was on is a setting, and no name, and neither is how an episode ended.
        """
        texts = set(column)
        if any(len(text) > MAX_LABEL for text in texts) or "id" in name.lower().split():
            return False
        if _SWITCHES.issuperset(text.lower() for text in texts) or _ENDING.fullmatch(name):
            return False
        if len(texts) == 1:
            return True
        comes_again = len(texts) * 2 <= len(column)
        return bool(_LONG_FORM.fullmatch(name)) or (
            comes_again and (not self.header or bool(_NAMING.fullmatch(name)))
        )

    def _add_row(self, line: str) -> None:
        cells = without(_cells(line, self.delimiter), self._blank)
        if len(cells) < 2 and self._width > 1:
            self.others += 1
            return
        if self.header and [text.strip().strip("\"'").lstrip("# ") for text in cells] == self.header:
            return
        values: list[float] = []
        names: list[str] = []
        training = _label(cells, self._trainings)
        names_of_series = [at for at in self.labels if at not in self._trainings]
        label = " ".join(filter(None, (training, _label(cells, names_of_series))))
        for at in self.values:
            value = _number_in_cell(cells[at], self.delimiter) if at < len(cells) else None
            if value is not None:
                values.append(value)
                names.append(self._name(at, label))
        if not values:
            self.others += 1
            return
        _add_sums(names, values)
        lap = label if len(self._counts) < MAX_LABELS or label in self._counts else ""
        self._counts[lap] = self._counts.get(lap, 0) + 1
        self.rows += 1
        step = self._step(cells, lap)
        stamp = cells[self._wall].strip() if 0 <= self._wall < len(cells) else ""
        self._out.append(
            Row(
                [*self._counts].index(lap),
                "",
                tuple(names),
                tuple(values),
                step,
                self._unit,
                stamp,
                self._line,
                training,
            )
        )

    def _step(self, cells: Sequence[str], lap: str) -> int:
        if 0 <= self.step < len(cells):
            value = _whole_number(cells[self.step])
            if value is not None and abs(value) < MAX_STEP:
                if self._epoch < 0 or self._epoch >= len(cells):
                    return value
                epoch = _whole_number(cells[self._epoch])
                step = self._laps.setdefault(lap, Laps()).step(value, None, epoch)
                return step if abs(step) < MAX_STEP else self._counts[lap]
        return self._counts[lap]

    def _name(self, at: int, label: str) -> str:
        name = self.header[at] if self.header else ""
        is_only = len(self.values) == 1 or at == self._measured
        if is_only and (not name or _VALUE_COLUMN.fullmatch(name)):
            return label or self.name
        name = name.rstrip(":").rstrip() or str(at)
        is_of_file = _STATISTIC.fullmatch(name) or ONLY_A_PART.fullmatch(name)
        if is_of_file and says_metric(self.name):
            name = f"{self.name} {name}"
        name = of_file(name, self._part)
        return f"{label} {name}" if label else name


def _add_sums(names: list[str], values: list[float]) -> None:
    """Put the losses of which the parts are written before them, in place.

    The loss of a condition is exactly zero in the test if none of the test's points lies there. The rest of
    the parts does not tell whether the solution is right, so there is no sum then.
    """
    if not any(f"{total}{_PART}1" in names for total in _SUMS):
        return
    train, test = (
        [v for name, v in zip(names, values, strict=True) if name.startswith(total + _PART)]
        for total in _SUMS
    )
    if any(in_test == 0 != in_train for in_train, in_test in zip(train, test, strict=False)):
        test = []
    sums = {total: sum(parts) for total, parts in zip(_SUMS, (train, test), strict=True) if parts}
    names[:0] = sums
    values[:0] = sums.values()


def _ends_within_a_cell(line: str) -> bool:
    """Return whether the next line goes on in the last cell, which is in quotes, as a printed array does."""
    opening = line.rfind('"')
    return line.count('"') % 2 == 1 and (opening == 0 or line[opening - 1] in ",;\t")


def _are_parts(column: Sequence[str]) -> bool:
    """Return whether the cells of a column name parts of the data, some of them held-out ones."""
    return all(map(phase, column)) and any(map(held_out, column))


def _label(cells: Sequence[str], columns: Sequence[int]) -> str:
    """Return what the cells of some columns name."""
    return " ".join(
        [cells[at].strip().strip("\"'")[:MAX_LABEL] for at in columns if at < len(cells)]
    ).rstrip()


def without(cells: list[str], blank: Sequence[int]) -> list[str]:
    """Return the cells without those that the header leaves out."""
    return [text for at, text in enumerate(cells) if at not in blank] if blank else cells


def _fitted(names: list[str], width: int) -> list[str]:
    """Return a name for each column; none if there are too few or too many names.

    A header is short where the last cells of a row have no name, and in a log of DeepXDE, which writes a
    loss for each equation: the step, those of the training, those of the test, and a metric.
    """
    if len(names) == width:
        return names
    if tuple(names[1:3]) == _SUMS and width > len(names):
        losses = (width - 1) // 2
        of_parts = [f"{name}{_PART}{number}" for name in _SUMS for number in range(1, losses + 1)]
        return [names[0], *of_parts, *names[3:4] * (width - 1 - 2 * losses)]
    if 0 < width - len(names) <= MAX_UNNAMED and len(names) >= MIN_NAMES:
        return [*names, *(f"{names[-1]} {number + 2}" for number in range(width - len(names)))]
    return []


def _are_laps(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first two columns are an epoch and the place in it: ``0 0``, ``0 1``, ``0 2``."""
    epochs = {_count_in_cell(row[0]) for row in rows}
    return (
        len(rows) > 1
        and len(epochs) == 1
        and None not in epochs
        and _counts_up([_count_in_cell(row[1]) for row in rows])
    )


def _is_clock(column: Sequence[str]) -> bool:
    """Return whether a column without a name holds the time, which grows, in seconds since 1970."""
    values = [cell(text) for text in column]
    times = [
        value for value in values if value is not None and MIN_EPOCH_SECONDS <= value < MAX_EPOCH_SECONDS
    ]
    return len(times) == len(values) >= MIN_LINES - 1 and times == sorted(times)


def _are_names(column: Sequence[str]) -> bool:
    """Return whether each row has a name of its own, which is no date."""
    texts = {text.strip() for text in column}
    return len(texts) == len(column) >= MIN_LINES - 1 and not any(_DATE.search(text) for text in texts)


def _cells(line: str, delimiter: str) -> list[str]:
    if line[:1] in "[(" and (inner := _BRACKETS.fullmatch(line)):
        line = inner[1]
    if delimiter == " ":
        return line.split()
    if not delimiter:
        return [line]
    if delimiter == "|":
        line = line.strip().strip("|")
    if '"' not in line:
        return line.split(delimiter)
    cells: list[str] = []
    parts = line.split('"')
    last = ""
    for at, part in enumerate(parts):
        if at % 2:
            last += part
            continue
        pieces = part.split(delimiter)
        last += pieces[0]
        for piece in pieces[1:]:
            cells.append(last)
            last = piece
    cells.append(last)
    return cells


def _number_in_cell(text: str, delimiter: str) -> float | None:
    text = text.strip().strip("\"'")
    value = cell(text)
    if delimiter == ";" and "," in text and _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    return value


def _delimiter(lines: Sequence[str]) -> str:
    """Return what separates the cells of the lines; nothing for a single column."""
    best = ""
    most = 0
    if all(line.startswith("tensor(") for line in lines[1:] or lines):
        return ""
    for delimiter in _DELIMITERS:
        rows = [_cells(line, delimiter) for line in lines]
        widths = {len(row) for row in rows[1:] or rows}
        if len(widths) != 1 or widths == {1}:
            continue
        numeric = sum(
            _number_in_cell(text, delimiter) is not None for row in rows[1:] or rows for text in row
        )
        if numeric > most:
            best = delimiter
            most = numeric
    return best


def _are_rows_of_a_table(lines: Sequence[str]) -> bool:
    """Return whether the lines after the first are rows of one table."""
    if len(lines) < MIN_LINES:
        return False
    delimiter = _delimiter(lines)
    rows = [_cells(line, delimiter) for line in lines[1:]]
    numeric = [sum(_number_in_cell(text, delimiter) is not None for text in row) for row in rows]
    return min(numeric) > 0 and len({len(row) for row in rows}) == 1


def _is_header(row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a row holds names, some of which are numbers: ``,0``."""
    if not below or cell(row[0]) is not None:
        return False
    return not row[0].strip() and all(cell(each[0]) is not None for each in below if each)


def _count_in_cell(text: str) -> int | None:
    return count(text.strip().strip("\"'"))


def _whole_number(text: str) -> int | None:
    """Return the number in a cell of a column whose name says that it counts, such as 2 for ``2.0000``."""
    value = cell(text.strip().strip("\"'")) if "." in text else None
    return (
        int(value)
        if value is not None and value.is_integer() and abs(value) < MAX_STEP
        else _count_in_cell(text)
    )


def _is_whole(text: str) -> bool:
    """Return whether a cell may count something; ``-9900.0`` is written as what may be a fraction."""
    return "." not in text and _whole_number(text) is not None


def _counts_up(column: Sequence[int | None]) -> bool:
    whole = [value for value in column if value is not None]
    if len(whole) < len(column) or len(column) < 2:
        return False
    return all(later > earlier for earlier, later in pairwise(whole))


def _falls(column: Sequence[int | None]) -> bool:
    whole = [value for value in column if value is not None]
    return any(later < earlier for earlier, later in pairwise(whole))


def _is_total(name: str, column: Sequence[int | None]) -> bool:
    """Return whether a column says the same of each row: how many rounds there were."""
    return name.lower().endswith("s") and len(column) >= MIN_LINES - 1 and len(set(column)) == 1


def _orders(column: Sequence[int | None]) -> bool:
    return bool(column) and sum(value is None for value in column) * 2 <= len(column)
