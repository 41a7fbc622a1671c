"""What the lines of one template hold, as the first of them tell: metrics or none, and what counts them."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.measured_rows import Laps
from sentinel.sources.readers.printed_numbers import count
from sentinel.sources.readers.slots import PART
from sentinel.sources.readers.templates import Template
from sentinel.sources.readers.words import counter, phase, says_other

MIN_LINES = 3
"""Lines of a template before it is a record."""

MIN_SURE_LINES = 2
"""Lines of a template that counts and surely names a metric."""

COUNTER_ORDER = ("step", "batch", PART, "episode", "count", "epoch", "frame")
"""Which counter gives the step of a line that holds several."""

FIXED = "="
"""Marks a line whose step another record gave."""

PENDING = 0
"""State of a template whose first lines wait."""

CONFIRMED = 1
"""State of a template that is a record."""

REJECTED = -1
"""State of a template without metrics."""

_NAMED = "named"
"""Marks a record whose slots a person named."""

_OF_EPOCH = ("step", "batch", PART, "count")
"""Counters that may begin anew with each epoch."""

_VARIES = lazy_pattern(r"loss|acc|reward|score|error|return|precision|recall|f1", re.IGNORECASE)
"""Names of what is logged even where it stands still."""

_LEARNING_RATE = lazy_pattern(r"(?<![a-z])lr(?![a-z])|learning.?rate", re.IGNORECASE)
"""Names of what is logged where it stands still, if something above counts."""

_SAMPLE = lazy_pattern(
    r"(?:test |val )?(?:samples?|images?|img|files?|cases?|videos?|questions?|examples?|quer(?:y|ies)"
    r"|class(?:es)?|cls|categor(?:y|ies)|labels?)(?: (?:no|id|number|index|idx))?",
    re.IGNORECASE,
)
"""Names of what lines tell of one by one in an evaluation."""


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
    further: str = ""  # key of that record

    @property
    def counts(self) -> bool:
        """Whether its lines hold a counter."""
        return not self.make.endswith("\n")


def is_sure_alone(record: Record) -> bool:
    """Return whether one line alone is surely a training's: a metric, and a counter in or above it."""
    return record.unit == "sure" and all(
        any(k in COUNTER_ORDER for k in line.counters) or (line.above and line.above[1])
        for line in record.first_lines
    )


def has_counted_metric(record: Record) -> bool:
    """Return whether the first lines surely hold a metric, and count."""
    counts = [{kind: value[0] for kind, value in line.counters.items()} for line in record.first_lines]
    return record.unit == "sure" and len(counts) >= MIN_SURE_LINES and all(counts) and counts[0] != counts[1]


def _varies_by_a_counter(record: Record, lines: Sequence[PrintedLine], columns: Columns) -> bool:
    """Return whether numbers that no name makes sure of change while something counts, or in a column."""
    counts = any(line.counters for line in lines) or record.by >= 0 or _stand_below(lines)
    varies = any(
        not is_whole and len(set(column)) > 1 and not is_beside(name)
        for name, column, is_whole in zip(record.names, columns.texts, columns.are_whole, strict=True)
    )
    is_block = lines[-1].number - lines[0].number == len(lines) - 1
    is_column = record.unit == "bare" and varies and (len(columns.texts) == 1 or is_block)
    return (counts and varies) or is_column


def _holds_settings(record: Record, lines: Sequence[PrintedLine], columns: Columns) -> bool:
    """Return whether numbers that stand still are settings, and no rate that may be constant."""
    has_counter = any(line.counters for line in lines) or record.by >= 0
    if has_counter or not columns.are_constant:
        return False
    if len(lines) < 2 or any(map(_VARIES.search, record.names)):
        return False
    return not (any(map(_LEARNING_RATE.search, record.names)) and _stand_below(lines))


def _tells_of_samples(record: Record, columns: Columns) -> bool:
    """Return whether each line is about one sample or class of an evaluation, so that its numbers are no
    curve.
    """
    if record.by < 0 or not _SAMPLE.fullmatch(record.names[record.by]):
        return False
    numbers = [count(text) or 0 for text in columns.texts[record.by]]
    return all(later - earlier == 1 for earlier, later in pairwise(numbers))


def may_count(record: Record) -> bool:
    """Return whether its values may count its lines: a person has not said what they are."""
    return record.unit != _NAMED


def slots_of_values(record: Record, lines: Sequence[PrintedLine], columns: Columns) -> list[int]:
    """Return the slots that hold metrics or what is read beside them; none if there are no metrics."""
    is_named = record.unit == _NAMED
    is_sure = record.unit == "sure"
    if not (is_named or is_sure or _varies_by_a_counter(record, lines, columns)):
        return []
    if not is_named and (_holds_settings(record, lines, columns) or _tells_of_samples(record, columns)):
        return []
    beside = {at for at, name in enumerate(record.names) if not is_named and is_beside(name)}
    if record.by in beside:
        record.by = -1
    slots = [
        at
        for at, (rises, is_whole) in enumerate(zip(columns.rise, columns.are_whole, strict=True))
        if at != record.by and (at in beside or is_sure or not (rises and is_whole))
    ]
    return slots if set(slots) - beside else []


def unit_of(record: Record, lines: Sequence[PrintedLine]) -> str:
    """Decide what counts the steps of a record: its own counter, one above it, or its rows."""
    if record.by >= 0:
        return "number"
    counters = set.intersection(*[set(line.counters) for line in lines])
    for kind in COUNTER_ORDER:
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


def step_of(record: Record, steps: Record, line: PrintedLine) -> int | None:
    """Return the step that a line or the lines above it tell; ``steps`` holds those of the lines before."""
    unit = record.unit
    counters = line.counters
    above = line.above
    if FIXED in counters:
        return counters[FIXED][0]
    if unit == "number":
        return count(line.texts[record.by])
    if unit in counters:
        value, total = counters[unit]
        of = "episode" if total is None and "epoch" not in counters else "epoch"
        epoch = counters[of][0] if of in counters else None
        is_whole = epoch is None and unit in ("step", "count") and total is None
        if value is None or unit not in _OF_EPOCH or is_whole:
            return value
        return steps.lap.step(value, total, epoch, line.is_final)
    if unit == "bar" and above and len(above) > 3:
        return int(above[3])
    return int(above[0]) if unit.endswith(" above") and above else None


@lru_cache(2048)
def leads(heading: str, names: tuple[str, ...]) -> bool:
    """Return whether what stands below lines belongs to their step: they are of the training."""
    parts = {part.lower() for text in (heading, *names) for part in phase(text).split()}
    return parts <= {"train", "training", "trn"}


def is_beside(name: str) -> bool:
    """Return whether a value is no metric by itself but is read beside metrics: an epoch, a speed."""
    return name in ("epoch", "max_steps") or says_other(name) or counter(name) is not None


def is_step(name: str, unit: str) -> bool:
    """Return whether a name is that of the counter that gives the step."""
    return name != "epoch" and counter(name) == unit


def _is_full(counters: Sequence[Mapping[str, Sequence[int | None]]]) -> bool:
    """Return whether all lines come at the end of an epoch whose number they do not tell."""
    return all("epoch" not in each and each[PART][0] == each[PART][1] for each in counters)


def certainty(plan: Template) -> str:
    """Return how sure it is that a template holds metrics."""
    if plan.is_named:
        return _NAMED
    return "sure" if plan.sure else "weak" if plan.weak else "bare" if plan.bare else ""


def make_of(plan: Template) -> str:
    """Return what lines have in common that tell of one thing, some of them with more values."""
    return f"{plan.heading}\n{' '.join(kind for _, kind, _ in plan.counters)}"


def _is_counter(column: tuple[str, ...]) -> bool:
    """Return whether a column counts: it grows by the same amount with each line, as if from 0 or 1."""
    values = [count(text) or 0 for text in column]
    steps = {later - earlier for earlier, later in pairwise(values)}
    step = steps.pop()
    return not steps and step > 0 and values[0] % step <= 1
