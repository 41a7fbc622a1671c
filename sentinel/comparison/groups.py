"""Finds runs that differ in one setting, and runs that differ in the seed alone."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from sentinel.comparison.fingerprint import NOT_STATED, SEED, matters


class Group(msgspec.Struct, frozen=True):
    """Runs that are equal in all settings but one. ``arms`` has the indices of the runs by its value."""

    setting: str
    arms: Mapping[str, Sequence[int]]
    is_by_seed: bool = False  # the one setting is the seed


def grouped(configs: Sequence[Mapping[str, object]]) -> list[Group]:
    """Return the groups among runs with these flat settings, sorted by the name of the setting.

    A setting that a run does not state counts as a value of its own. A run without settings is in no group.
    Runs that differ in the seed alone stand together in an arm, and are a group of their own only where no
    other setting compares them. The time grows with the number of all settings, not with that of all pairs.
    """
    relevant = [
        {name: str(value) for name, value in config.items() if matters(name, value)} for config in configs
    ]
    without_seeds = [{k: v for k, v in settings.items() if not SEED.search(k)} for settings in relevant]
    groups = sorted(_one_setting(without_seeds), key=lambda group: group.setting)
    compared = {run for group in groups for runs in group.arms.values() for run in runs}
    equal = defaultdict(list)
    for run, settings in enumerate(without_seeds):
        if run not in compared:
            equal[frozenset(settings.items())].append(run)
    seeds = (Group("seed", _by_seed(relevant, runs), is_by_seed=True) for runs in equal.values())
    return [*groups, *(group for group in seeds if len(group.arms) > 1)]


def _one_setting(runs: Sequence[Mapping[str, str]]) -> Iterator[Group]:
    """Yield the groups of runs with these settings, of which all but one are equal.

    A run has a key, the sum of the hashes of its settings, so its key without one of them is a subtraction.
    Runs whose keys are equal without a setting differ in nothing else, and a run that does not state the
    setting has that key as a whole.
    """
    keys = [sum(map(hash, settings.items())) for settings in runs]
    runs_with_key = defaultdict(list)
    runs_with_setting = defaultdict(list)
    for run, settings in enumerate(runs):
        if settings:
            runs_with_key[keys[run]].append(run)
        for name in settings:
            runs_with_setting[name].append(run)
    for name, stating in runs_with_setting.items():
        arms_with_key: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for run in stating:
            value = runs[run][name]
            arms_with_key[keys[run] - hash((name, value))][value].append(run)
        for key, arms in arms_with_key.items():
            if key in runs_with_key:
                arms[NOT_STATED] = runs_with_key[key]
            if len(arms) > 1:
                yield Group(name, {value: arms[value] for value in sorted(arms, key=_order)})


def _by_seed(settings: Sequence[Mapping[str, str]], runs: Sequence[int]) -> dict[str, list[int]]:
    """Return some runs by the seeds that they state; those that state none are left out."""
    arms = defaultdict(list)
    for run in runs:
        seeds = sorted(f"{name}={value}" for name, value in settings[run].items() if SEED.search(name))
        if seeds:
            arms[", ".join(seeds)].append(run)
    return arms


def _order(value: str) -> tuple[float, str]:
    """Return what sorts numbers by size, then texts."""
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value
