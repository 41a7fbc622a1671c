"""Collects the metrics that one process prints, line by line: records, tables, blocks, progress bars."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sentinel.sources.console.bars import Bars, StepBar, counts_steps, part_of, shown_by
from sentinel.sources.console.columns import Columns
from sentinel.sources.console.counting import CountedRows, Laps
from sentinel.sources.console.lines import (
    begun_block,
    begun_epoch,
    in_block,
    is_rule,
    parse,
    row,
    uncounted,
    with_step,
)
from sentinel.sources.console.pairs import is_metric, is_of_training
from sentinel.sources.console.passages import seconds
from sentinel.sources.console.pending_rows import Waiting
from sentinel.sources.console.printed import Record, kept, number, restored
from sentinel.sources.console.results import TrialResults
from sentinel.sources.console.shapes import IN_EPOCH, KERAS, OF_ANY_PROGRAM
from sentinel.sources.console.splits import begun_part, begun_results, of_part, result_of, without_level
from sentinel.sources.readers.records import STEP_KEYS, Records, is_metrics, named

_MAX_ROWS = 500  # of a table


class _Shapes(Counter[str]):
    """How many lines have each shape. ``proof`` is the first shape that two lines have, other than those
    which DeepSpeed prints beside the metrics of any program.
    """

    proof = ""

    def __setitem__(self, shape: str, count: int) -> None:
        super().__setitem__(shape, count)
        if count > 1 and (not self.proof or self.proof in OF_ANY_PROGRAM):
            self.proof = shape


class PrintedMetrics:
    """The metrics that one process prints, given the memory of earlier lines (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self.records = Records(memory.get("records", {}))
        self.rows = CountedRows(memory.get("rows", {"restarted": memory.get("restarted", False)}))
        self.shapes = _Shapes()  # of the lines so far
        self.restarted: bool = memory.get("restarted", False)  # no point was read since then
        self._count: int = memory.get("count", 0)  # records
        self._table: Record | None = restored(memory["table"]) if memory.get("table") is not None else None
        self._heading: str = memory.get("heading", "")
        self._block: Record | None = memory.get("block")  # its time and, for its first metric, its count
        self._epoch: float | None = memory.get("epoch")  # that began, by Keras' word
        self._waiting = Waiting(memory.get("held", {}))
        self._part: str = memory.get("part", "")  # of the data, that the next line is about
        self._results_of: str = memory.get(
            "results_of", ""
        )  # a part of the data, of which the next lines are
        self._laps = Laps(memory.get("laps", {}))
        self.columns = Columns(memory.get("columns", {}))
        self._results = TrialResults(memory.get("results", {}))
        self._bars = Bars(memory.get("bars", {}))
        self._step_bar = StepBar(memory.get("step_bar", {}))

    def memory(self) -> dict[str, Any]:
        """Return what the next lines need to know of these; JSON-able."""
        return {
            "records": self.records.memory(),
            "part": self._part,
            "results_of": self._results_of,
            "rows": self.rows.memory(),
            "restarted": self.restarted and not self.records,
            "count": self._count,
            "table": None if self._table is None else kept(self._table),
            "heading": self._heading,
            "block": self._block,
            "epoch": self._epoch,
            "held": self._waiting.memory(),
            "laps": self._laps.memory(),
            "columns": self.columns.memory(),
            "results": self._results.memory(),
            "bars": self._bars.memory(),
            "step_bar": self._step_bar.memory(),
        }

    @property
    def begun(self) -> bool:
        """Whether a step was told."""
        return self._count > 0

    @property
    def in_table(self) -> bool:
        """Whether rows of a table of two columns may follow."""
        return self._table is not None

    @property
    def expects(self) -> bool:
        """Whether the meaning of the next line depends on those before, whatever it holds."""
        return (
            self._waiting.holds
            or self._block is not None
            or bool(self._part or self._results_of)
            or self._results.begun
        )

    @property
    def last_step(self) -> int | None:
        """The last step of the metrics so far."""
        return self.records.step_at(self._count) if self._count else self.rows.count or None

    def parse(self, text: str, with_rows: bool) -> bool:
        """Parse one line. True if it holds metrics or a part of a table or block.

        The order of the forms is the grammar: a line has the first form that it can have. ``with_rows`` says
        that metrics without a step count.
        """
        stripped = text.strip()
        if stripped and "{" not in text:
            self._add_all(self._waiting.due())
        if self._parse_evaluation(text):
            return True
        if (
            self._parse_result(text)
            or self._parse_table(stripped)
            or self._parse_columns(without_level(stripped))
            or self._parse_block(text)
            or self._parse_epoch_title(stripped)
        ):
            return True
        if (parsed := parse(text)) is not None:
            return self._parse_record(text, *parsed)
        return self._parse_part_title(stripped) or self._parse_without_step(text, with_rows)

    def _parse_result(self, text: str) -> bool:
        """Parse a line of the results of a trial."""
        if self._results.add(text):
            return True
        self._end_result()
        return self._results.begin(text.strip())

    def _parse_table(self, stripped: str) -> bool:
        """Parse a rule or a row of a table of two columns."""
        if is_rule(stripped):
            self._end_table()
            self._table = {}
            return True
        if self._table is None or (cells := row(stripped)) is None:
            return False
        self._parse_row(*cells)
        return True

    def _parse_columns(self, stripped: str) -> bool:
        """Parse the heading or a row of a table with a column for each metric."""
        if self.columns.begin(stripped):
            return True
        record = self.columns.row(stripped)
        if not record:
            return False
        self.shapes["columns"] += 1
        self._add_record(record)
        return True

    def _parse_block(self, text: str) -> bool:
        """Parse the first line of a block, or one below it. A line that stands at the margin ends a block."""
        stripped = text.strip()
        if (count := begun_block(stripped)) is not None:
            self._block = count | self._printed_time(text)
            return True
        if self._block is not None and (metrics := in_block(text)):
            self._parse_entries(self._block, metrics)
            return True
        if stripped and not text.startswith(
            (" ", "\t", "[")
        ):  # Composer's evaluation tells its progress in brackets
            self._block = None
        return False

    def _parse_epoch_title(self, stripped: str) -> bool:
        """Parse a line that only names the epoch of those below it."""
        epoch = begun_epoch(stripped)
        if epoch is None:
            return False
        self._epoch = epoch
        return True

    def _parse_record(self, text: str, shape: str, record: Record) -> bool:
        """Add the metrics of a line that says where it stands. False for an evaluation of Keras."""
        self._part = ""
        if shape in OF_ANY_PROGRAM and not record.get("step", 1):
            return True  # DeepSpeed tells of step 0 as it begins, and need not tell of another one
        if shape == KERAS:
            if self._epoch is None:  # an evaluation, which looks the same
                return False
            record["epoch"] = self._epoch
            self._epoch = None
        if shape in IN_EPOCH:
            batch = int(record.pop("batch"))
            batches = record.pop("batches", None)
            if self._laps.begun or not self._count:  # otherwise the lines count steps as well
                record["step"] = self._laps.step(batch, None if batches is None else int(batches))
        record = self._printed_time(text) | record
        self.shapes[shape] += 1
        has_step = named(record, STEP_KEYS) is not None
        if has_step:
            self._bars.leave(record.keys())
        if self._waiting.begun and shape == "dictionary" and not has_step:
            self._add_all(self._waiting.add(record))
        else:
            self._add_record(record)
        return True

    def _parse_evaluation(self, text: str) -> bool:
        """Parse the heading of the results of an evaluation, or one of the results below it."""
        if part := begun_results(text):
            self._results_of = part
            return True
        record = result_of(self._results_of, text) if self._results_of else None
        if record is None:
            self._results_of = ""
            return False
        return not record or self._parse_part(self._printed_time(text) | record)

    def _parse_part_title(self, stripped: str) -> bool:
        """Parse a line that only names the part of the data of the line below it."""
        part = begun_part(stripped)
        if part:
            self._part = part
        return bool(part)

    def _parse_without_step(self, text: str, with_rows: bool) -> bool:
        """Add the metrics of a line that does not say where it stands."""
        text = f"{self._part} {text}".lstrip() if self._part else text
        self._part = ""
        return self._parse_part(of_part(text)) or self._parse_below(text, with_rows)

    def end(self) -> None:
        """Add what waits for lines that will not come."""
        self._end_table()
        self._end_result()
        self._add_all(self._waiting.due())
        self._add_of_bar(filter(None, (self._bars.full(), self._step_bar.due())))

    def _parse_part(self, record: Record) -> bool:
        """Add metrics that belong to the epoch or the step above them. True if there is one."""
        if not record or (self._epoch is None and not self._count):
            return False
        if self._epoch is not None:
            record["epoch"] = self._epoch
            self.shapes["part"] += 1
        self._add_record(record)
        return True

    def _parse_below(self, text: str, with_rows: bool) -> bool:
        """Add the metrics of a line without a step.

        Such lines are counted if they began before any step was told. Otherwise those that are surely of a
        training belong to the epoch above them.
        """
        if (is_below := bool(self._count) and not self.rows.count) and self._epoch is None:
            return False
        if not is_below and not with_rows:
            return False
        record = uncounted(text)
        if is_below:
            return any(map(is_of_training, record)) and self._parse_part(record)
        return bool(record) and self.rows.add(self._printed_time(text) | record)

    def progress(self, count: int, total: int) -> bool:
        """Add a progress bar without a title. True if rows had waited for it.

        HF's Trainer redraws its bar after each line that it prints, and this bar shows the step of the line.
        The bar before the line may be late, or may belong to an evaluation.
        """
        self._add_all(rows := self._waiting.bar(count, total))
        return bool(rows)

    def parse_bar(self, bar: re.Match[str], ended: bool) -> bool:
        """Return whether a state of a progress bar shows metrics; ``ended`` if it ends its line."""
        if record := self.columns.row(bar["title"].strip(" :")):
            if ended and bar["count"] == bar["total"]:
                self._add_of_bar([record])
            return True
        if self.columns.begin(bar["title"].strip(" :")):
            return True
        if counts_steps(bar):
            _, metrics = parse(f"step {bar['count']} | {bar['rest']}") or ("", {})
            if len(metrics) > 1:
                self._add_of_bar(self._step_bar.parse(bar, metrics, ended))
            return len(metrics) > 1
        parsed = parse(f"{bar['title']} {bar['rest']}")
        epoch = parsed[1].pop("epoch", None) if parsed else None
        if parsed is None:
            return self._parse_bar_of_unknown(bar, ended)
        if not isinstance(epoch, float) or named(parsed[1], STEP_KEYS) is not None:
            return False
        self._add_of_bar(self._bars.parse(bar, epoch, parsed[1], ended))
        return True

    def _parse_bar_of_unknown(self, bar: re.Match[str], ended: bool) -> bool:
        """Return whether a bar shows metrics, of which it tells no step or epoch but its own count."""
        metrics = uncounted(shown_by(bar))
        if not metrics:
            return False
        if part := part_of(bar):
            metrics = {name if part in name.lower() else f"{part}/{name}": metrics[name] for name in metrics}
            self._add_of_bar(self._step_bar.held_out(metrics, ended))
        else:
            self._add_of_bar(self._step_bar.parse(bar, metrics, ended))
        return True

    def _add_of_bar(self, records: Iterable[Record]) -> None:
        for record in records:
            self.shapes["bar"] += 1
            self._add_record(record)

    def _parse_row(self, name: str, value: str) -> None:
        if not value and name.endswith("/"):
            self._heading = name.strip()
        elif (
            (parsed := number(value)) is not None and self._table is not None and len(self._table) < _MAX_ROWS
        ):
            indented = name.startswith("   ")
            self._table[f"{self._heading}{name.strip()}" if indented else name.strip()] = parsed

    @staticmethod
    def _printed_time(text: str) -> Record:
        return {"wall_time": when} if math.isfinite(when := seconds(text)) else {}

    def _parse_entries(self, block: Record, metrics: Mapping[str, float]) -> None:
        self.shapes["block"] += any(map(is_metric, metrics))
        self._add_record({**block, **metrics})
        self._block = {k: v for k, v in block.items() if k == "wall_time"}  # and the same step

    def _end_table(self) -> None:
        if self._table and is_metrics(record := with_step(self._table)):
            self.shapes["table"] += 1
            self._add_record(record)
        self._table = None
        self._heading = ""

    def _end_result(self) -> None:
        if self._results.begun and is_metrics(record := self._results.end()):
            self.shapes["result"] += 1
            self._add_record(record)

    def _add_record(self, record: Record) -> None:
        for each in (*self._waiting.due(), record):
            self._count += 1
            self.records.add(each, self._count)

    def _add_all(self, records: Iterable[Record]) -> None:
        for record in records:
            self._count += 1
            self.records.add(record, self._count)
