"""Gives every series of a run its role.

What a person or a profile says wins. Then come the whole name, corrected by the values, and the company.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from sentinel.detectors.reading import roles as parts
from sentinel.detectors.signals import Signal
from sentinel.series.roles.company import Key, Roles, Series, apply_rules
from sentinel.series.roles.role import Direction, Kind, Mark, Measure, Role, Source, Split, Unit

_PAIRWISE_SIGNALS = frozenset({"preference_accuracy"})
"""Signals that count pairs in the right order."""


_OUTCOME_ROLES = {
    parts.Role.METRIC: (Kind.OUTCOME, Measure.METRIC, Split.HELD_OUT),
    parts.Role.REWARD: (Kind.OUTCOME, Measure.REWARD, Split.TRAIN),
    parts.Role.HELD_OUT_LOSS: (Kind.HELD_OUT_LOSS, Measure.LOSS, Split.HELD_OUT),
    parts.Role.TRAINING_LOSS: (Kind.TRAINING_LOSS, Measure.LOSS, Split.TRAIN),
    parts.Role.TRAIN_METRIC: (Kind.OUTCOME, Measure.METRIC, Split.TRAIN),
}
"""What the signals are by which a reader may judge a run; the score cards read the same ones."""


@cache
def _roles_of_signals() -> Mapping[str, tuple[Kind, Measure, Split, Direction]]:
    data = tomllib.loads((Path(__file__).parent / "signals.toml").read_text(encoding="utf-8"))
    rows: dict[str, tuple[Kind, Measure, Split, Direction]] = {}
    for name, signals in data.items():
        row = (Kind(name), Measure.OTHER, Split.UNKNOWN, Direction.UNKNOWN)
        rows.update(dict.fromkeys(signals, row))
    for signal, part in parts.PARTS.items():
        if part.role in _OUTCOME_ROLES:
            kind, measure, split = _OUTCOME_ROLES[part.role]
            direction = Direction.HIGHER if part.higher_is_better else Direction.LOWER
            is_held_out = signal is Signal.EVAL_REWARD
            rows[signal] = (kind, measure, Split.HELD_OUT if is_held_out else split, direction)
    return rows


def role_of_signal(signal: str, source: Source, why: str) -> Role | None:
    """Return the role that a signal has in its run; None if it has none."""
    row = _roles_of_signals().get(signal)
    if row is None:
        return None
    marks = frozenset({Mark.PAIRWISE}) if signal in _PAIRWISE_SIGNALS else frozenset[Mark]()
    return Role(*row, Unit.OWN, source, why, marks)


def roles_of(all_series: Sequence[Series], stated: Roles) -> Roles:
    """Return the role of each series that has one. ``stated`` holds those that a person or a profile gave."""
    roles: dict[Key, Role] = {}
    for series in all_series:
        role = stated.get(series.key)
        by_name = series.reading.role
        if role is not None:
            ranked = role if by_name is None else replace(role, rank=by_name.rank)
            roles[series.key] = _with_unit(ranked, series) or role
        elif by_name is not None:
            with_unit = _with_unit(replace(by_name, marks=series.reading.marks), series)
            if with_unit is not None:
                roles[series.key] = with_unit
    return apply_rules(all_series, roles)


def _with_unit(role: Role, series: Series) -> Role | None:
    """Return the role with the unit and direction that the values tell; None if they contradict the name."""
    values = series.values
    if not values.count or not role.is_outcome_like:
        return role
    is_stated = role.source >= Source.PROFILE
    if role.unit is Unit.SHARE or (is_stated and role.measure is Measure.METRIC):
        if values.is_share:
            return replace(role, unit=Unit.SHARE)
        if values.is_percent:
            return replace(role, unit=Unit.PERCENT)
        if values.is_skill and role.direction is Direction.HIGHER:
            return replace(role, unit=Unit.OWN)
        return role if is_stated else None
    if role.measure is Measure.REWARD and values.is_fraction:
        return replace(role, unit=Unit.SHARE)
    if role.measure is Measure.LOSS and values.least < 0 and not is_stated:
        role = replace(role, unit=Unit.NATS, marks=role.marks | {Mark.LIKELIHOOD})
    if "elbo" in series.tag.lower() and _rises_as_a_bound(series):
        return replace(role, direction=Direction.HIGHER, why=f"{role.why}; it rises from below zero")
    return role


def _rises_as_a_bound(series: Series) -> bool:
    return series.values.first < 0 and series.values.last >= series.values.first
