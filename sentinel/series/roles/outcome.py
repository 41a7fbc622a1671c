"""Finds the series by which a careful reader judges a run."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sentinel.series.roles.company import Key, Roles, Series, trains_an_agent
from sentinel.series.roles.role import MAIN_RANK, Kind, Mark, Measure, Role, Source, Split, Unit

_MIN_POINTS = 2  # of a series by which a run can be judged
_MIN_EVALUATIONS = 3  # that come before the rewards of training


class Outcome(msgspec.Struct, frozen=True):
    """The series by which a reader judges a run, and why."""

    stream: str
    tag: str
    role: Role
    why: str

    @property
    def kind(self) -> str:
        """What it is: a metric, a reward, or one of the losses."""
        return str(self.role.measure if self.role.kind is Kind.OUTCOME else self.role.kind)

    @property
    def split(self) -> Split:
        """The data on which it was measured; a reward or loss of which nothing is said is of training."""
        is_plain = self.role.split is Split.UNKNOWN and self.role.measure in (Measure.REWARD, Measure.LOSS)
        return Split.TRAIN if is_plain else self.role.split


def outcome_of(all_series: Sequence[Series], roles: Roles) -> Outcome | None:
    """Return the outcome of a run; None if it has none."""
    order = _AGENT_ORDER if trains_an_agent(all_series, roles) else _OUTCOMES_IN_ORDER
    counts = {series.key: series.count for series in all_series}
    for description, fits, min_points in order:
        candidates = [
            series
            for series in all_series
            if (role := roles.get(series.key)) and fits(series, role) and _points(series, role) >= min_points
        ]
        if candidates:
            best = min(candidates, key=lambda series: _preference(series, roles[series.key], counts))
            role = roles[best.key]
            return Outcome(best.stream, best.tag, role, f"{description}: {role.why}")
    return None


def _points(series: Series, role: Role) -> int:
    """Return how many points count. Only of a loss does one that is not finite say how the run went."""
    return series.values.count if role.kind is Kind.OUTCOME else series.count


def _preference(series: Series, role: Role, counts: Mapping[Key, int]) -> tuple[int, ...]:
    return (
        role.rank,
        Mark.RUNNING in role.marks,
        role.measure is Measure.REWARD and Mark.MEAN not in series.reading.marks,
        Mark.MEMBER in role.marks,
        _is_of_steps(series, counts),
        -role.source,
        -series.count,
    )


def _is_of_steps(series: Series, counts: Mapping[Key, int]) -> bool:
    """Return whether the means of epochs, which are logged at least as often, stand beside it."""
    twin = series.stream, series.tag.removesuffix("_step") + "_epoch"
    return series.tag.endswith("_step") and counts.get(twin, 0) >= series.count


def _is_metric(role: Role, split: Split) -> bool:
    return role.kind is Kind.OUTCOME and role.measure is Measure.METRIC and role.split is split


def _is_reward(role: Role, *splits: Split) -> bool:
    return role.kind is Kind.OUTCOME and role.measure is Measure.REWARD and role.split in splits


def _is_accuracy_of_the_evaluation(series: Series, role: Role) -> bool:
    has_split = series.reading.split is Split.HELD_OUT or role.source is not Source.NAME
    return (
        has_split
        and _is_metric(role, Split.HELD_OUT)
        and role.rank <= MAIN_RANK
        and role.unit in (Unit.SHARE, Unit.PERCENT)
    )


_Step = tuple[str, Callable[[Series, Role], bool], int]
"""What it is called, which series fit, and how many points they need."""


def _is_held_out_metric(_: Series, role: Role) -> bool:
    return _is_metric(role, Split.HELD_OUT) or _is_reward(role, Split.HELD_OUT)


_OUTCOMES_IN_ORDER: Sequence[_Step] = (
    ("a metric of held-out data", _is_held_out_metric, _MIN_POINTS),
    ("the share of pairs in the right order", lambda _, role: Mark.PAIRWISE in role.marks, _MIN_POINTS),
    ("the loss of held-out data", lambda _, role: role.kind is Kind.HELD_OUT_LOSS, _MIN_POINTS),
    ("the training loss", lambda _, role: role.kind is Kind.TRAINING_LOSS, _MIN_POINTS),
    ("a metric of training", lambda _, role: role.kind is Kind.OUTCOME, _MIN_POINTS),
)

# An accuracy of the evaluation comes before the rewards, for which it is the purpose.
_AGENT_ORDER: Sequence[_Step] = (
    ("an accuracy of the evaluation", _is_accuracy_of_the_evaluation, _MIN_EVALUATIONS),
    ("the reward of the evaluation", lambda _, role: _is_reward(role, Split.HELD_OUT), _MIN_EVALUATIONS),
    ("the reward of training", lambda _, role: _is_reward(role, Split.TRAIN, Split.UNKNOWN), _MIN_POINTS),
    ("the reward of the evaluation", lambda _, role: _is_reward(role, Split.HELD_OUT), _MIN_POINTS),
    *_OUTCOMES_IN_ORDER,
)
