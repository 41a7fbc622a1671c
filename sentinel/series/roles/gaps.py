"""Gives signals to names without one by their roles, where the stream has no signal of that role."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from sentinel.detectors.signals import Signal
from sentinel.series.derived import LOSS_OF_PERPLEXITY
from sentinel.series.roles.assignment import role_of_signal, roles_of
from sentinel.series.roles.company import (
    ABBREVIATED,
    Roles,
    Series,
    first_of_lists,
    games_lost,
    rates_players,
    results_of_participants,
    values_actions,
    weighs_advantages,
)
from sentinel.series.roles.names import companion_of, table
from sentinel.series.roles.role import MAIN_RANK, Direction, Kind, Mark, Measure, Role, Source, Split, Unit
from sentinel.series.tag_words import words_of

_HELD_OUT_METRICS = frozenset(
    {
        *(Signal.EVAL_ACCURACY, Signal.EVAL_SCORE, Signal.EVAL_ERROR_RATE),
        *(Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
        *(Signal.FRECHET_INCEPTION_DISTANCE, Signal.EVAL_QUALITY, Signal.EVAL_DISTANCE),
    }
)
_OF_AGENTS = frozenset({Signal.REWARD, Signal.POLICY_LOSS})
_LOSSES = frozenset({Signal.LOSS, Signal.PREFERENCE_LOSS, Signal.LOSS_PART, Signal.GENERATOR_LOSS})

_CORRECTABLE = frozenset({Signal.EVAL_LOSS, Signal.LOSS, Signal.POLICY_LOSS, Signal.ACCURACY})

_OF_PARTICIPANTS = frozenset({Signal.LOSS, Signal.EVAL_LOSS, Signal.ACCURACY, Signal.EVAL_ACCURACY})
"""Signals that participants of federated training lose, each of which begins anew from the common model."""

_FAMILIES = (
    frozenset({Signal.KL, Signal.KL_PER_SEQUENCE, Signal.KL_UNKNOWN_UNIT}),
    frozenset({Signal.COMPLETION_LENGTH, Signal.EPISODE_LENGTH}),
)
"""Signals of which a run has one."""

_GROWTH_OF_A_SUM = 2
"""How many times its first value tokens grow within a few rows that are summed over the run."""

_WHOLE_REWARDS = frozenset({Signal.REWARD, Signal.EVAL_REWARD})
"""Signals of the whole reward of an episode where a person or a profile states them."""

_STEP = "step"

_LAST_RESORT = 2
"""The rank of a reward that is judged where no other one is logged: whether a task was done."""

_NOT_PLAIN = frozenset({Mark.BEST, Mark.RUNNING, Mark.SUM, Mark.MEMBER})
"""Marks of what is no measurement of its own, or one of several."""


def corrections(
    all_series: Sequence[Series],
    signals: Mapping[str, Signal],
    stated: Roles,
    *,
    is_beside_others: bool = False,
    is_beside_reward: bool = False,
) -> dict[str, Signal | None]:
    """Return the signals that tags have only by their names and not beside the other tags of their stream;
    None for one that they lose.

    ``stated`` holds the roles that a person or a profile gave, which are never corrected. In a stream that
    ``is_beside_others`` of its file, a series is not the only one of its kind. Where it ``is_beside_reward``,
    which one of these holds, its loss is an agent's.
    """
    result: dict[str, Signal | None] = dict.fromkeys(_rewards_of_steps(all_series, signals, stated))
    result |= dict.fromkeys(_rewards_of_players(all_series, signals, stated))
    present = {*signals.values()}
    result |= _losses_by_perplexity(all_series, signals, stated)
    if present.isdisjoint(_CORRECTABLE):
        return result
    lost = games_lost(all_series)
    result |= {series.tag: None for series in all_series if series.key in lost and series.key not in stated}
    lists = first_of_lists(all_series)
    result |= {
        series.tag: None
        for series in all_series
        if series.key in lists and series.key not in stated and signals.get(series.tag) is Signal.LOSS
    }
    of_participants = results_of_participants(all_series)
    result |= {
        series.tag: None
        for series in all_series
        if series.key in of_participants
        and series.key not in stated
        and signals.get(series.tag) in _OF_PARTICIPANTS
    }
    roles = roles_of(all_series, stated)
    is_of_actions = values_actions(all_series)
    is_weighed = weighs_advantages(all_series)
    for series in all_series:
        role = roles.get(series.key)
        signal = signals.get(series.tag)
        if role is None or signal is None or series.key in stated:
            continue
        if series.tag in result or (is_beside_others and _is_one_of_several(series, role)):
            continue
        is_of_agent = is_beside_reward and signal is Signal.LOSS and Signal.VALUE_LOSS not in present
        if signal is Signal.LOSS and role.kind is Kind.INNER and is_weighed:
            result[series.tag] = None if Signal.POLICY_LOSS in present else Signal.POLICY_LOSS
        elif is_of_agent or _is_value_loss(series, role, signal, present, is_of_actions=is_of_actions):
            result[series.tag] = Signal.VALUE_LOSS
        elif signal is Signal.ACCURACY and _is_held_out_metric(role) and Signal.EVAL_ACCURACY not in present:
            result[series.tag] = Signal.EVAL_ACCURACY
        elif signal is Signal.LOSS and role.kind is Kind.HELD_OUT_LOSS and Signal.EVAL_LOSS not in present:
            result[series.tag] = Signal.EVAL_LOSS
        if (corrected := result.get(series.tag)) is not None:
            present.add(corrected)
    return result


def _losses_by_perplexity(
    all_series: Sequence[Series], signals: Mapping[str, Signal], stated: Roles
) -> Iterator[tuple[str, Signal]]:
    """Yield the losses of perplexities, by their names, where no loss of the same data is logged, nor one
    that names its part of the data alone.
    """
    present = {*signals.values()}
    roles = roles_of(all_series, stated)
    if any(not each.reading.words and (role := roles.get(each.key)) and role.is_loss for each in all_series):
        return
    for series in all_series:
        loss = loss_of(signals.get(series.tag), present)
        if loss is not None and series.key not in stated:
            yield series.tag, loss


def loss_of(signal: Signal | None, present: Collection[Signal]) -> Signal | None:
    """Return the loss that a perplexity stands for; None beside a loss of the same data."""
    loss = None if signal is None else LOSS_OF_PERPLEXITY.get(signal)
    rivals = _LOSSES if loss is Signal.LOSS else {loss}
    return loss if rivals.isdisjoint(present) else None


def _rewards_of_steps(
    all_series: Sequence[Series], signals: Mapping[str, Signal], stated: Roles
) -> Iterator[str]:
    """Yield what single steps gave, by their names, where the library's own reward of episodes is logged."""
    whole = {
        signals[series.tag]
        for series in all_series
        if series.key in stated and signals.get(series.tag) in _WHOLE_REWARDS
    }
    for series in all_series:
        is_of_steps = _STEP in words_of(series.tag)
        if is_of_steps and series.key not in stated and signals.get(series.tag) in whole:
            yield series.tag


def _rewards_of_players(
    all_series: Sequence[Series], signals: Mapping[str, Signal], stated: Roles
) -> Iterator[str]:
    """Yield rewards beside a rating, which say little of a player."""
    is_rated = rates_players(all_series)
    for series in all_series:
        if is_rated and series.key not in stated and signals.get(series.tag) in _WHOLE_REWARDS:
            yield series.tag


def _is_value_loss(
    series: Series, role: Role, signal: Signal, present: Collection[Signal], *, is_of_actions: bool
) -> bool:
    """Return whether a loss is that of values: beside a loss of the policy, or what actions are worth, or of
    an agent that explores.
    """
    if role.kind is not Kind.INNER or Signal.VALUE_LOSS in present:
        return False
    if signal is Signal.EVAL_LOSS:
        return series.reading.role is not None and series.reading.role.kind is Kind.HELD_OUT_LOSS
    is_agent = is_of_actions or Signal.EXPLORATION_RATE in present
    is_of_agent = signal in (Signal.LOSS, Signal.POLICY_LOSS) and is_agent
    is_plain = series.reading.role is not None and series.reading.role.kind is Kind.TRAINING_LOSS
    return is_of_agent and is_plain


def _is_one_of_several(series: Series, role: Role) -> bool:
    """Return whether other streams of its file may hold a series of the same meaning. A metric of a stream
    without a loss is that of an evaluation, whatever stands in the others.
    """
    is_sole = Mark.SOLE in role.marks and role.measure is not Measure.METRIC
    return is_sole or Mark.MEMBER in series.reading.marks


def _of_a_better_metric(role: Role, present: Collection[Signal], best: int) -> Signal | None:
    """Return the signal of a held-out metric that a reader takes before all others, such as an AUC, where
    the best one that has a signal has the rank ``best``.
    """
    if not _is_held_out_metric(role) or role.rank >= min(best, MAIN_RANK):
        return None
    return _signal(role, {*present} - _HELD_OUT_METRICS)


def _is_held_out_metric(role: Role | None) -> bool:
    if role is None:
        return False
    return role.kind is Kind.OUTCOME and role.measure is Measure.METRIC and role.split is Split.HELD_OUT


def first_signals(
    all_series: Sequence[Series],
    signals: Mapping[str, Signal],
    is_open: Callable[[str], bool],
    *,
    is_beside_others: bool = False,
) -> dict[str, Signal]:
    """Return the signals that tags without one get, given the first points of a stream.

    ``signals`` holds those that the tags have, and ``is_open`` says whether a tag may get one. In a stream
    that ``is_beside_others`` of its file, a series is not the only one of its kind.
    """
    if not any(series.tag not in signals and is_open(series.tag) for series in all_series):
        return {}
    stated = {
        series.key: role
        for series in all_series
        if series.tag in signals
        and (role := role_of_signal(signals[series.tag], Source.PROFILE, "it has a signal")) is not None
    }
    roles = roles_of(all_series, stated)
    present = {*signals.values()}
    ranked = sorted(
        (role.rank, role.kind is Kind.PART, series.tag)
        for series in all_series
        if (role := roles.get(series.key))
        and series.tag not in signals
        and is_open(series.tag)
        and not (is_beside_others and _is_one_of_several(series, role))
    )
    by_tag = {series.tag: roles[series.key] for series in all_series if series.key in roles}
    losses = sum(role.kind is Kind.TRAINING_LOSS for role in by_tag.values())
    best = min((by_tag[tag].rank for tag in signals if _is_held_out_metric(by_tag.get(tag))), default=0)
    result: dict[str, Signal] = {}
    for rank, _, tag in ranked:
        signal = _signal(by_tag[tag], present) or _of_a_better_metric(by_tag[tag], present, best)
        is_one_of_several = signal is Signal.LOSS and rank > MAIN_RANK and losses > 1
        if signal is not None and not is_one_of_several:
            result[tag] = signal
            present.add(signal)
            best = min(best, rank)
    given = {*signals, *result}
    open_series = [each for each in all_series if each.tag not in given and is_open(each.tag)]
    return result | _beside_a_reward(open_series, all_series, present)


def _beside_a_reward(
    open_series: Sequence[Series], all_series: Sequence[Series], present: Collection[Signal]
) -> dict[str, Signal]:
    """Return the signals that names have only where a policy earns rewards, each once."""
    if _WHOLE_REWARDS.isdisjoint(present):
        return {}
    writes = any(not table().texts.isdisjoint(series.reading.words) for series in all_series)
    result: dict[Signal, str] = {}
    for series in open_series:
        companion = companion_of(series.reading)
        if companion is None or series.reading.split is Split.HELD_OUT or _sums_tokens(series):
            continue
        rivals = next((family for family in _FAMILIES if companion.signal in family), {companion.signal})
        if rivals.isdisjoint(present) and (writes or not companion.writes):
            result.setdefault(companion.signal, series.tag)
    return {tag: signal for signal, tag in result.items()}


def _sums_tokens(series: Series) -> bool:
    """Return whether tokens are counted from the beginning of the run."""
    values = series.values
    grows = not values.falls and values.last > _GROWTH_OF_A_SUM * values.first
    return grows and "tokens" in series.reading.words


def later_signal(series: Series, by_words: Signal | None, present: Collection[Signal]) -> Signal | None:
    """Return the signal of a tag that a stream logs later; None if it gets none but that by its words.

    ``present`` are the signals that the stream has by then. A metric that comes once the training loss has
    been logged again and again is that of an evaluation: it is logged less often. What is short for more than
    one thing gets none, since it is not known what comes beside it.
    """
    role = series.reading.role
    if role is None or not series.reading.marks.isdisjoint(_NOT_PLAIN) or series.reading.words == ABBREVIATED:
        return None
    if role.kind is Kind.OUTCOME and role.measure is Measure.METRIC and role.split is Split.UNKNOWN:
        if Signal.LOSS not in present or by_words not in (None, Signal.ACCURACY):
            return None
        role = replace(role, split=Split.HELD_OUT)
        if by_words is Signal.ACCURACY:
            return None if Signal.EVAL_ACCURACY in present else Signal.EVAL_ACCURACY
        return _signal(role, present)
    named = roles_of([series], {}).get(series.key)
    if by_words is not None or named is None or named.source is not Source.NAME:
        return None
    return _signal(named, present)


def _signal(role: Role, present: Collection[Signal]) -> Signal | None:
    """Return the signal of a role; None if one of the ``present`` signals has this role."""
    if not role.marks.isdisjoint(_NOT_PLAIN):
        return None
    return next((signal for signal, rivals in _candidates(role) if rivals.isdisjoint(present)), None)


def _candidates(role: Role) -> Iterator[tuple[Signal, frozenset[Signal]]]:
    """Yield the signals that fit a role, each with those beside which it is not needed."""
    is_held_out = role.split is Split.HELD_OUT
    is_higher = role.direction is Direction.HIGHER
    if role.kind is Kind.OUTCOME and role.measure is Measure.METRIC:
        if is_held_out and role.unit in (Unit.SHARE, Unit.PERCENT):
            yield (Signal.EVAL_SCORE if is_higher else Signal.EVAL_ERROR_RATE), _HELD_OUT_METRICS
        elif is_held_out:
            yield (Signal.EVAL_QUALITY if is_higher else Signal.EVAL_DISTANCE), _HELD_OUT_METRICS
    elif role.kind is Kind.OUTCOME and role.measure is Measure.REWARD:
        if is_higher and role.rank <= _LAST_RESORT:
            signal = Signal.EVAL_REWARD if is_held_out else Signal.REWARD
            yield signal, frozenset({signal})
    elif role.kind is Kind.HELD_OUT_LOSS and not is_higher:
        yield Signal.EVAL_LOSS, _OF_AGENTS | {Signal.EVAL_LOSS}
    elif Mark.TERM in role.marks:
        yield Signal.LOSS_PART, (_LOSSES - {Signal.LOSS_PART}) | _OF_AGENTS
    elif role.kind is Kind.TRAINING_LOSS and not is_higher:
        yield Signal.LOSS, _LOSSES | _OF_AGENTS
