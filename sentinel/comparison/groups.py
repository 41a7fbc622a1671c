"""Finds runs that differ in one setting, and runs that differ in the seed alone."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel.comparison.fingerprint import NOT_STATED, SEED, matters


@dataclass(frozen=True)
class Group:
    """Runs that are equal in all settings but one. ``arms`` has the indices of the runs by its value."""

    setting: str
    arms: Mapping[str, Sequence[int]]
    of_seeds: bool = False  # the one setting is the seed


def grouped(configs: Sequence[Mapping[str, object]]) -> list[Group]:
    """Return the groups among runs with these flat settings, sorted by the name of the setting.

    A setting that a run does not state counts as a value of its own. A run without settings is in no group.
    Runs that differ in the seed alone stand together in an arm, and are a group of their own only where no
    other setting compares them. The time grows with the number of all settings, not with that of all pairs.
    """
    kept = [
        {name: str(value) for name, value in config.items() if matters(name, value)} for config in configs
    ]
    plain = [{k: v for k, v in settings.items() if not SEED.search(k)} for settings in kept]
    whole = [frozenset(settings.items()) for settings in plain]
    marks = [sum(map(hash, settings)) for settings in whole]  # the mark without one setting is a subtraction
    groups = sorted(_one_setting(plain, marks), key=lambda group: group.setting)
    compared = {run for group in groups for runs in group.arms.values() for run in runs}
    alike = defaultdict(list)
    for run, settings in enumerate(whole):
        if run not in compared:
            alike[settings].append(run)
    seeds = (Group("seed", _by_seed(kept, runs), of_seeds=True) for runs in alike.values())
    return [*groups, *(group for group in seeds if len(group.arms) > 1)]


def _one_setting(plain: Sequence[Mapping[str, str]], marks: Sequence[int]) -> Iterator[Group]:
    stating = defaultdict(list)
    alike = defaultdict(list)
    for run, (settings, mark) in enumerate(zip(plain, marks, strict=True)):
        for name in settings:
            stating[name].append(run)
        if settings:
            alike[mark].append(run)
    for name, runs in stating.items():
        equal_beside: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for run in runs:
            value = plain[run][name]
            equal_beside[marks[run] - hash((name, value))][value].append(run)
        for mark, arms in equal_beside.items():
            if silent := alike.get(mark):
                arms[NOT_STATED] = silent
            if len(arms) > 1:
                yield Group(name, {value: arms[value] for value in sorted(arms, key=_order)})


def _by_seed(kept: Sequence[Mapping[str, str]], runs: Sequence[int]) -> dict[str, list[int]]:
    arms = defaultdict(list)
    for run in runs:
        if stated := sorted(f"{name}={value}" for name, value in kept[run].items() if SEED.search(name)):
            arms[", ".join(stated)].append(run)
    return arms


def _order(value: str) -> tuple[float, str]:
    """Return numbers by size, then texts."""
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value
