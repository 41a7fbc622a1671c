"""JSON of any shape: rows, lists of numbers, dictionaries of lists, ``[[time, step, value]]``, nested."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.json.documents import SETTINGS_KEYS
from sentinel.sources.readers.printed_numbers import MAX_STEP, number
from sentinel.sources.readers.records import MAY_BE_LENGTHS
from sentinel.sources.readers.splits import ONLY_A_PART
from sentinel.sources.readers.words import counter, says_metric

MAX_DEPTH = 8
"""Levels of nesting."""

MAX_SERIES = 4096
"""Series of a document."""

MAX_NAME = 200
"""Characters of a name."""

MIN_POINTS = 2
"""Numbers of a list that is a series."""

MAX_PLAIN_ROWS = 64
"""Rows of a text of numbers whose rows are series."""

MIN_PLAIN_CELLS = 16
"""Numbers of such a row."""

MIN_CELLS_A_ROW = 4
"""Numbers of such a row for each row that there is; in a table, rows are more than columns."""

_NAMES_OF_ROWS = frozenset(
    {"log", "logs", "history", "raw", "epoch", "epochs", "step", "steps", "iterations", "episodes", "rounds"}
    | {"record", "records", "row", "rows", "entries", "metrics", "stats", "training", "train", "per", "by"}
)
"""Words of which the name of a list of rows consists that says nothing of what the rows hold."""

_TRAINING = frozenset({"train", "training"})
"""Words of the name of an object of columns that say of which data they are, where there is no other one."""

_HELD_OUT = frozenset({"val", "valid", "validation", "eval", "evals", "evaluation", "test", "dev"})
"""Words of the name of such a list that do."""

_SETTINGS = frozenset({*SETTINGS_KEYS, "params", "hyperparams"})
"""Names of the settings that a row states of itself."""

_LOSS = "loss"
_LOSSES = lazy_pattern(
    r"(?:.*[ _-])?loss(?:es)?(?:[ _-](?:histor(?:y|ies)|logs?|curves?|values|per[ _-]epoch))?", re.IGNORECASE
)
"""Names of files that hold losses, whatever their series are called: models, stages, folds."""
_VALUES = "values"
"""The name of the list of values beside that of their steps, as Sacred writes each metric."""

MIN_EPOCH_SECONDS = 1e8
"""Seconds since 1970 from which a number is a time."""

MIN_PARTS = 2
"""Parts of the data whose curves are losses where nothing else is named."""

MIN_MATRIX = 2
"""Rows of a matrix."""

_MATRIX = lazy_pattern(r"matrix|matrices|confusion", re.IGNORECASE)
"""What the name of one holds."""

_COUNTING_KEY = lazy_pattern(r"(?P<word>(?:[A-Za-z]{2,12}(?=[ _-]?\d))?)[ _-]?(?P<count>\d{1,15})")
"""The key of the row of an epoch or a step."""

_KEY_OF_A_PART = lazy_pattern(r"(?P<part>[A-Za-z]{2,12})[ _-]?(?P<row>(?:(?:epoch|step)[ _-]?)?\d{1,15})")
"""The key of the row of a part of the data at an epoch: "valid_3", "train_epoch_3"."""


class Series(NamedTuple):
    """One series. ``unit`` is what its steps count."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    unit: str


def read(data: bytes, name: str) -> list[Series]:
    """Return the series of a document, or of a file with a document on each line; none if it is no JSON."""
    text = data.decode(errors="replace").lstrip("\ufeff")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = _of_lines(text)
    if document is None:
        rows = _of_plain_rows(data)
        document = rows[0] if len(rows) == 1 else rows
    all_series = [*islice(_series_below(document, "", name, 0), MAX_SERIES)]
    of_file = name if says_metric(name) else _LOSS if _are_losses(all_series) else ""
    is_of_losses = _LOSSES.fullmatch(name) is not None and _say_no_metric(all_series)
    return [
        series._replace(name=f"{of_file} {series.name}")
        if of_file and (is_of_losses or ONLY_A_PART.fullmatch(series.name))
        else series
        for series in all_series
    ]


def _are_losses(all_series: Sequence[Series]) -> bool:
    """Return whether the series are equally long curves of nothing but parts of the data, which fall as
    losses do.
    """
    lengths = {len(each.values) for each in all_series}
    if len(all_series) < MIN_PARTS or len(lengths) != 1:
        return False
    return all(ONLY_A_PART.fullmatch(each.name) and _falls(each.values) for each in all_series)


def _say_no_metric(all_series: Sequence[Series]) -> bool:
    """Return whether no series has a name that says what it is, or stands below another name."""
    return not any(says_metric(each.name) or "/" in each.name for each in all_series)


def _falls(values: Sequence[float]) -> bool:
    """Return whether a curve of fractions has been below its beginning."""
    return min(values) < values[0] and not all(map(float.is_integer, values))


def is_of_plain_rows(data: bytes) -> bool:
    """Return whether a text holds nothing but a few long rows of numbers, each of which is a series."""
    return bool(_of_plain_rows(data))


def _of_plain_rows(data: bytes) -> list[list[float]]:
    """Return the numbers of each row of a text that has only a few long ones; none if it holds other things.

    A last cell that is cut off does not count.
    """
    lines = data.split(b"\n", MAX_PLAIN_ROWS + 1)
    rows = [line.decode(errors="replace").strip() for line in lines if line.strip()]
    if not 0 < len(rows) <= MAX_PLAIN_ROWS:
        return []
    numbers: list[list[float]] = []
    for row in rows:
        cells = re.split(r"[;\t]" if ";" in row or "\t" in row else r"[,\s]\s*", row.strip(",; \t"))
        values = [_cell_value(cell) for cell in cells]
        if len(values) < max(MIN_PLAIN_CELLS, MIN_CELLS_A_ROW * len(rows)) or None in values[:-1]:
            return []
        numbers.append([value for value in values if value is not None])
    return numbers


def _cell_value(cell: str) -> float | None:
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return None


def _of_lines(text: str) -> list[Any] | None:
    rows: list[Any] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, (dict, list)):  # a number may be a torn document's
            rows.append(row)
    return rows or None


def _series_below(node: Any, prefix: str, name: str, depth: int) -> Iterator[Series]:
    if depth > MAX_DEPTH:
        return
    if isinstance(node, list):
        yield from _of_list(node, prefix, name, depth)
    elif isinstance(node, Mapping):
        node = {key: _as_list(_unprinted(value)) for key, value in node.items()}
        node = _with_whole_rows(_with_named_errors(_with_named_cells(node)))
        if (counted := _counts_of_keys(node)) is not None:
            kind, counts = counted
            values = zip(counts, node.values(), strict=True)
            rows = [{kind: count, **value} for count, value in values if isinstance(value, Mapping)]
            if rows:
                yield from _of_rows(rows, prefix)
            else:
                yield from _of_numbers([*node.values()], prefix or name, counts)
            return
        steps = _steps_beside(node)
        rows_key = _key_of_rows(node)
        for key, value in node.items():
            if value is steps or str(key).lower() in SETTINGS_KEYS:
                continue
            path = f"{prefix}/{key}"[:MAX_NAME] if prefix else str(key)[:MAX_NAME]
            path = prefix if key == rows_key or (key == _VALUES and prefix and steps is not None) else path
            is_of_steps = isinstance(value, list) and steps is not None and len(value) == len(steps)
            if is_of_steps and _is_column(value):
                yield from _of_numbers(value, path, steps)
            else:
                yield from _series_below(value, path, name, depth + 1)


def _unprinted(value: Any) -> Any:
    """Return the cells of a list that was printed as a text, as by ``str(losses)``, and any other value as it
    is.
    """
    if isinstance(value, str) and value[:1] == "[" and value[-1:] == "]" and value.find("[", 1) < 0:
        return [cell.strip() for cell in value[1:-1].split(",")]
    return value


def _as_list(value: Any) -> Any:
    """Return a column that pandas wrote, `{"0": 1.5, "1": 1.25}`, as a list, and any other value as it is."""
    is_of_pandas = isinstance(value, Mapping) and list(value) == [*map(str, range(len(value)))]
    return [*value.values()] if is_of_pandas and _is_column([*value.values()]) else value


def _with_named_cells(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a table of W&B or of pandas, which names its columns apart, with its rows as objects."""
    columns = node.get("columns")
    rows = node.get("data")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return node
    names = [str(column) for column in columns]
    return {"rows": [dict(zip(names, row, strict=False)) for row in rows if isinstance(row, list)]}


def _with_whole_rows(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object with a key for each part of the data at each epoch, such as "valid_3" or
    "train_epoch_3", as one with a key for each epoch.
    """
    keys = [_KEY_OF_A_PART.fullmatch(str(key)) for key in node]
    rows: dict[str, dict[str, Any]] = {}
    for key, value in zip(keys, node.values(), strict=True):
        if key is None or not isinstance(value, Mapping) or not ONLY_A_PART.fullmatch(key["part"]):
            return node
        rows.setdefault(key["row"], {})[key["part"]] = value
    return rows or node


def _with_named_errors(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document of CatBoost with its errors below the names that its head gives them."""
    meta = node.get("meta")
    rows = node.get("iterations")
    if not isinstance(meta, Mapping) or not isinstance(rows, list):
        return node
    errors = {part: meta.get(f"{part}_metrics") for part in ("learn", "test")}
    names = {
        part: [str(each.get("name")) for each in listed if isinstance(each, Mapping)]
        for part, listed in errors.items()
        if isinstance(listed, list)
    }
    return {"iterations": [_with_names(row, names) for row in rows if isinstance(row, Mapping)]}


def _with_names(row: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a row whose lists of errors are objects."""
    named = dict(row)
    for part in names.keys() & row.keys():
        if isinstance(row[part], list):
            named[part] = dict(zip(names[part], row[part], strict=False))
    return named


def _key_of_rows(node: Mapping[str, Any]) -> str | None:
    """Return the name of the list that holds the rows of a log, where it says nothing of what they hold; of
    the object that holds the columns, each a list; or of the only one with a key for each epoch.

    Of several it is the one with the widest rows; none, where another one is of held-out data.
    """
    counted = [str(key) for key, value in node.items() if isinstance(value, Mapping) and _counts_rows(value)]
    if len(counted) == 1:
        return counted[0]
    lists = {str(key): width for key, value in node.items() if (width := _width(value))}
    words = {key: re.split(r"[\W_]+", key.lower()) for key in lists}
    of_rows = [
        key
        for key in lists
        if _NAMES_OF_ROWS.issuperset(words[key])
        and not (isinstance(node[key], Mapping) and _TRAINING.issuperset(words[key]))
    ]
    if not of_rows or not all(map(_HELD_OUT.isdisjoint, words.values())):
        return None
    return max(of_rows, key=lambda key: lists[key])


def _width(value: Any) -> int:
    """Return how many columns rows have, or lists that are columns; 0 of anything else."""
    if (
        isinstance(value, list)
        and len(value) >= MIN_POINTS
        and all(isinstance(row, Mapping) for row in value)
    ):
        return max(map(len, value))
    columns = [*value.values()] if isinstance(value, Mapping) else []
    return len(columns) if all(map(_is_column, columns)) else 0


def _is_column(value: Any) -> bool:
    """Return whether a value is a list of enough numbers, between which and after which may be nulls."""
    if not isinstance(value, list) or len(value) < MIN_POINTS:
        return False
    return all(each is None or _is_number(each) for each in value) and any(map(_is_number, value))


def _of_list(node: Sequence[Any], prefix: str, name: str, depth: int) -> Iterator[Series]:
    if not node or (_MATRIX.search(prefix) and _is_square(node)) or all(map(_is_square, node)):
        return  # a confusion matrix, or one an epoch
    if _is_column(node):
        yield from _of_numbers(node, prefix or name, None)
    elif all(isinstance(each, Mapping) for each in node):
        yield from _of_rows(node, prefix)
    elif all(isinstance(each, list) and each and all(map(_is_number, each)) for each in node):
        yield from _of_tuples(node, prefix or name)
    else:
        for at, each in enumerate(node[:64]):
            if isinstance(each, (list, Mapping)):
                yield from _series_below(each, f"{prefix}/{at}" if prefix else str(at), name, depth + 1)


def _is_square(node: Any) -> bool:
    """Return whether a value is a matrix of numbers with as many rows as columns."""
    if not isinstance(node, list) or len(node) < MIN_MATRIX:
        return False
    return all(isinstance(row, list) and len(row) == len(node) and all(map(_is_number, row)) for row in node)


def _of_tuples(points: Sequence[Sequence[float]], name: str) -> Iterator[Series]:
    """Yield the series of lists of numbers: a value for each, with a step before it, or a time and a step."""
    widths = {len(each) for each in points}
    columns = [*zip(*points, strict=False)] if len(widths) == 1 else []
    if len(columns) == 3 and _float(columns[0][0]) > MIN_EPOCH_SECONDS:
        yield from _of_numbers(columns[2], name, columns[1])
    elif len(columns) == 2 and _grows(columns[0]):
        yield from _of_numbers(columns[1], name, columns[0])
    elif len(columns) == 1:
        yield from _of_numbers(columns[0], name, None)
    else:
        for at, each in enumerate(points[:64]):
            yield from _of_numbers(each, f"{name}/{at}", None)


def _of_rows(rows: Sequence[Mapping[str, Any]], prefix: str) -> Iterator[Series]:
    if len(rows) < MIN_POINTS or _are_trainings(rows):
        return
    series: dict[str, tuple[list[int], list[float]]] = {}
    key = _counting_key(rows)
    for at, row in enumerate(rows):
        step = at + 1
        flat = dict(_flat(row, "", 0))
        if key is not None and _is_number(flat.get(key)):
            step = _step(flat[key], step)
        for name, value in flat.items():
            if name == key or counter(_last_part(name)) or not _is_number(value):
                continue
            if name not in series:
                if len(series) >= MAX_SERIES:
                    continue
                series[name] = ([], [])
            series[name][0].append(step)
            series[name][1].append(_float(value))
    for name, (steps, values) in series.items():
        if len(values) >= MIN_POINTS:
            path = f"{prefix}/{name}" if prefix else name
            yield Series(path, tuple(steps), tuple(values), key or "row")


def _are_trainings(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether rows state settings of which not all are equal, as the trials of a sweep do."""
    stated = [key for key, value in rows[0].items() if key in _SETTINGS and isinstance(value, Mapping)]
    return any(row.get(key) != rows[0][key] for key in stated for row in rows)


def _flat(row: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        name = f"{prefix}/{key}"[:MAX_NAME] if prefix else str(key)[:MAX_NAME]
        if isinstance(value, Mapping):
            if depth < MAX_DEPTH:
                yield from _flat(value, name, depth + 1)
        elif isinstance(value, list) and len(value) <= 16 and value and all(map(_is_number, value)):
            if len(value) == 1:
                yield name, value[0]
            else:
                yield from ((f"{name}/{at}", each) for at, each in enumerate(value))
        else:
            yield name, value


def _counting_key(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the name of what counts the rows: the most telling one, but for lengths of episodes that others
    count.
    """
    order = ("step", "episode", "epoch", "count", "batch", "frame")
    ranks = {
        name: order.index(kind)
        for name, value in _flat(rows[0], "", 0)
        if (kind := counter(_last_part(name))) and _is_number(value) and _float(value).is_integer()
    }
    names = sorted(ranks, key=lambda name: ranks[name])
    others = [name for name in names if _last_part(name).lower() not in MAY_BE_LENGTHS]
    if names and others and names[0] not in others and not _grows(_cells(rows, names[0])):
        return others[0]
    return names[0] if names else None


def _last_part(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _cells(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return the numbers of a name in all rows."""
    cells = (dict(_flat(row, "", 0)).get(name) for row in rows)
    return [cell for cell in cells if _is_number(cell)]


def _steps_beside(node: Mapping[str, Any]) -> list[int] | None:
    for key, value in node.items():
        may_count = isinstance(value, list) and len(value) >= MIN_POINTS and counter(str(key)) is not None
        if may_count and all(map(_is_count, value)):
            return value if _grows(value) else None
    return None


def _is_count(value: Any) -> bool:
    return _is_number(value) and abs(_float(value)) < MAX_STEP and _float(value).is_integer()


def _counts_of_keys(node: Mapping[str, Any]) -> tuple[str, list[int]] | None:
    """Return what the keys of a document count, such as "3" or "epoch_3", and the counts; None if they count
    nothing, or their values are neither all rows nor all numbers.
    """
    keys = [_COUNTING_KEY.fullmatch(str(key)) for key in node] if len(node) >= MIN_POINTS else []
    words = {key["word"] if key else None for key in keys}
    word = words.pop() if len(words) == 1 else None
    kind = "step" if word == "" else counter(word) if word else None
    if kind not in ("epoch", "step"):
        return None
    values = node.values()
    is_alike = all(isinstance(value, Mapping) for value in values) or all(map(_is_number, values))
    return (kind, [int(key["count"]) for key in keys if key]) if is_alike else None


def _counts_rows(node: Mapping[str, Any]) -> bool:
    """Return whether an object holds a row for each epoch or step."""
    whole = _with_whole_rows(node)
    return _counts_of_keys(whole) is not None and all(isinstance(row, Mapping) for row in whole.values())


def _of_numbers(values: Sequence[Any], name: str, steps: Sequence[Any] | None) -> Iterator[Series]:
    """Yield the series of a list. A null before a number stands for a row without a measurement, one after
    the last number for a NaN, which JSON has not.
    """
    if not _is_column([*values]):
        return
    rows = range(1, len(values) + 1)
    counts = rows if steps is None else map(_step, steps, rows)
    nulls = [value is None for value in values]
    is_sparse = any(earlier and not later for earlier, later in pairwise(nulls))
    points = [
        (step, math.nan if value is None else _float(value))
        for step, value in zip(counts, values, strict=True)
        if value is not None or not is_sparse
    ]
    unit = "row" if steps is None else "step"
    yield Series(name, tuple(step for step, _ in points), tuple(value for _, value in points), unit)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, (int, float)):
        return True
    return isinstance(value, str) and len(value) < 40 and number(value) is not None


def _float(value: Any) -> float:
    if isinstance(value, str):
        return number(value) or 0.0
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _step(value: Any, row: int) -> int:
    """Return the step that a number tells, or the row if it is too large for one."""
    number_ = _float(value)
    return int(number_) if abs(number_) < MAX_STEP else row


def _grows(values: Sequence[Any]) -> bool:
    plain = [_float(value) for value in values]
    return all(later >= earlier for earlier, later in pairwise(plain)) and plain[-1] > plain[0]
