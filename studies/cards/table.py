"""A row for each series that may be an outcome, with all that can be measured of it and of its companions."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from sentinel.detectors.reading.company import COMPANY, largest
from sentinel.detectors.reading.curves import Curves, curve_of, together
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OUTCOMES, Role
from studies.cards.labels import Label
from studies.cards.series import Series, series_below

LEAST = 4  # points of an outcome
MOST_TAGS = 6  # of a role that count in an attempt; more are classes or parts
SHORT = 0.3  # of the longest attempt: a shorter one is a false start


def table_of(folder: Path, labels: Mapping[str, Label], cache: Path, until: float = 1.0) -> pl.DataFrame:
    """Return the table of a folder, read and measured once and then kept below the cache.

    Of each series the first rows count, ``until`` such a share of them.
    """
    file = cache / (f"{folder.name}.parquet" if until == 1.0 else f"{folder.name}-{until:g}.parquet")
    if not file.exists():
        began = time.monotonic()
        cache.mkdir(parents=True, exist_ok=True)
        series = [one.until(until) for one in series_below(folder) if home_of(one.path, labels)]
        measured(series, labels).write_parquet(file)
        print(f"{folder}: read and measured in {time.monotonic() - began:.0f} s", flush=True)
    return pl.read_parquet(file)


def home_of(path: str, labels: Mapping[str, Label]) -> str | None:
    place = Path(path)
    return next((str(p) for p in (place, *place.parents) if str(p) in labels), None)


def measured(series: Sequence[Series], labels: Mapping[str, Label]) -> pl.DataFrame:
    """Return the table of some series."""
    whole = _without_false_starts(series)
    curves = [curve_of(one.rows, higher_is_better=one.part.higher_is_better) for one in whole]
    outcomes, pairs = _paired(whole)
    columns: dict[str, list[float]] = {name: [np.nan] * len(outcomes) for name in (*MEASUREMENTS, *COMPANY)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for numbers in _alike([curves[n] for n in outcomes]):
            many = together([curves[outcomes[place]] for place in numbers])
            for name, one in MEASUREMENTS.items():
                for place, value in zip(numbers, one.measure(many).tolist(), strict=True):
                    columns[name][place] = value
        for name, companion in COMPANY.items():
            found: dict[int, dict[int, float]] = {}
            own = [(place, other) for place, role, other in pairs if role == companion.role]
            for group in _alike_pairs(curves, outcomes, own):
                first = together([curves[outcomes[place]] for place, _ in group])
                second = together([curves[other] for _, other in group])
                values = companion.measure(first, second).tolist()
                for (place, other), value in zip(group, values, strict=True):
                    found.setdefault(place, {})[other] = value
            for place, of_tags in found.items():
                columns[name][place] = largest(of_tags)
    rows = [whole[n] for n in outcomes]
    return pl.DataFrame(
        {
            "home": [home_of(one.path, labels) for one in rows],
            "path": [one.path for one in rows],
            "attempt": [one.attempt for one in rows],
            "tag": [one.tag for one in rows],
            "role": [one.part.role.value for one in rows],
            "is_fresh": [one.is_fresh for one in rows],
            "is_outcome": [one.is_outcome for one in rows],
            **columns,
        }
    )


def _without_false_starts(series: Sequence[Series]) -> list[Series]:
    longest: dict[tuple[str, str], int] = {}
    for one in series:
        key = one.path, one.tag
        longest[key] = max(longest.get(key, 0), len(one.rows))
    return [one for one in series if len(one.rows) >= SHORT * longest[one.path, one.tag]]


def _paired(series: Sequence[Series]) -> tuple[list[int], list[tuple[int, Role, int]]]:
    """Return the numbers of the outcomes, and each companion of each outcome with its role."""
    of_attempt: dict[tuple[str, int], list[int]] = {}
    for number, one in enumerate(series):
        of_attempt.setdefault((one.path, one.attempt), []).append(number)
    outcomes: list[int] = []
    pairs: list[tuple[int, Role, int]] = []
    for numbers in of_attempt.values():
        count: dict[Role, int] = {}
        for number in numbers:
            one = series[number]
            if one.part.role not in OUTCOMES or len(one.rows) < LEAST:
                continue
            count[one.part.role] = count.get(one.part.role, 0) + 1
            if count[one.part.role] > MOST_TAGS:
                continue
            place = len(outcomes)
            outcomes.append(number)
            pairs += [(place, series[other].part.role, other) for other in numbers if other != number]
    return outcomes, pairs


def _alike(curves: Sequence[Curves]) -> Iterable[list[int]]:
    groups: dict[tuple[bool, int], list[int]] = {}
    for number, one in enumerate(curves):
        groups.setdefault((one.is_cost, one.units.shape[1]), []).append(number)
    return groups.values()


def _alike_pairs(
    curves: Sequence[Curves], outcomes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Iterable[list[tuple[int, int]]]:
    groups: dict[tuple[int, int, bool, bool], list[tuple[int, int]]] = {}
    for place, other in pairs:
        one = curves[outcomes[place]]
        two = curves[other]
        key = one.units.shape[1], two.units.shape[1], one.is_cost, two.is_cost
        groups.setdefault(key, []).append((place, other))
    return groups.values()
