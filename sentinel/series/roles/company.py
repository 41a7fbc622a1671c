"""What the other series of a run say of a series.

Each rule takes all series with their roles and gives the roles that it changes. A role that a profile or a
person gave is never changed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.series.roles.names import (
    Reading,
    metric_at_the_end,
    reading,
    reading_of_a_file,
    table,
    words_of,
)
from sentinel.series.roles.role import MAIN_RANK, Direction, Kind, Mark, Measure, Role, Source, Split, Unit
from sentinel.series.roles.values import Values

Key = tuple[str, str]
"""Stream and tag."""

_MIN_GROWTH = 3  # of a running sum, times its first value
_MIN_MEMBERS = 2  # series of one name, which is then that of several agents or data sets
_MAX_COUNT_DIFFERENCE = 0.1  # relative, of how often two series of one row are logged
_MAX_EVALUATION_COUNT = 0.7  # of an evaluation, relative to training
_OF_POLICIES = frozenset(
    {"policy loss", "policy grad loss", "surrogate loss", "loss policy", "grad loss policy"}
)
_OF_UPDATES = frozenset(
    {"clip fraction", "clip frac", "clipfrac", "policy clip fraction", "policy clipfrac"}
    | {"ppo clip ratio", "policy clip ratio"}
)
"""What only the updates of a policy have; a loss beside it is theirs."""

_ADVANTAGES = frozenset({"advantage", "advantages"})
_OF_ACTIONS = frozenset({"q", "q value", "q values", "q vals", "td error", "td loss", "q loss"})
_OF_BOXES = frozenset({"box", "giou", "ciou", "box loss"})
_OF_EPISODES = frozenset({"l", "eps", "epsilon"})
_SCORES = (("score",), ("scores",))
_OF_AGENTS = lazy_pattern(
    r"(?<![a-z])(?:dqn|ddqn|ddpg|td3|sac|ppo|trpo|a[23]c|reinforce|sarsa|q[_-]?learning)(?![a-z])",
    re.IGNORECASE,
)
"""Algorithms that train an agent, in the name of a file or of what stands before it."""

_ROW = "row"
"""The unit of printed lines that no counter of a training counts."""

_OF_ERRORS = frozenset({"mse", "rmse", "mae", "mape"})
_SOLE = frozenset({Mark.SOLE})
_ONE_OF_SEVERAL = "one of several of this name"
_OF_A_PARTICIPANT = "it stands beside the number of a participant of federated training"
_OF_TASKS = frozenset(
    {"pass", "passed", "correct", "correctness", "success", "solved", "task", "outcome", "answer"}
)
"""Words of the reward for the task itself, and not for its form."""

_OF_WHOLE_REWARDS = frozenset({"all", "raw", "reward", "rewards", "score", "scores"})
_REWARDS = frozenset({"reward", "return"})
_COSTS = frozenset({"loss", "losses", "error", "errors", "mse", "nll"})
_GENERATORS = frozenset(
    {"g loss", "generator loss", "loss g", "gen loss", "err g", "g gan", "gan loss", "loss gan"}
    | {"adversarial loss", "adv loss", "loss adv"}
)
_DISCRIMINATORS = frozenset(
    {"d loss", "discriminator loss", "loss d", "disc loss", "err d", "d real", "d fake"}
    | {"d loss real", "d loss fake", "loss d real", "loss d fake", "disc real loss", "disc fake loss"}
)
_OF_ADVERSARIES = frozenset({"fake", "gp"})
"""Words of names of losses, those of invented samples and of a gradient penalty, that only a critic has."""
_OF_EQUATIONS = frozenset({"pde", "ode", "bc", "ic", "boundary", "initial", "residual", "physics"})
_RATINGS = frozenset({"elo", "rating"})
_LOSS = "loss"
_WON = "wins"
_LOST = "losses"
_OF_AUTOENCODERS = frozenset({"kl", "kld", "kl loss", "kl divergence"})
ABBREVIATED = ("rec",)
"""A name that is short for recall, and for reconstruction."""

_OF_A_LOSS = frozenset(
    {"weight", "weights", "scale", "rate", "ratio", "coefficient", "threshold", "diff", "difference", "delta"}
    | {"change", "improvement", "gap", "window", "fn", "function", "type", "count", "patience", "decrease"}
    | {"by", "at", "history", "smooth", "target", "limit", "step", "steps", "epoch", "epochs", "time"}
)
"""Words behind "loss" of what is no loss."""

_KEEPS_SMALL = frozenset(
    {"kl", "kld", "reg", "regularization", "regularisation", "aux", "auxiliary", "balancing", "z", "entropy"}
    | {"mmd", "commit", "commitment", "codebook", "vq", "decay", "tv", "penalty", "gate", "stop", "duration"}
)
"""Words of what keeps weights or codes small, which says nothing of how well a model fits."""

_HOW_MUCH_COUNTS = frozenset({"weight", "weights", "coefficient", "lambda"})
"""Words of how much a term counts in a loss."""

_OF_WHOLES = frozenset({"total", "overall", "whole", "sum", "combined", "all", "vae", "elbo"})
"""Words of a loss that holds others of its run."""

_TOTAL = ("total",)
_MIN_EQUATIONS = 2  # parts of the loss of a network that solves equations
_OF_BOOSTING = frozenset({"learn", "remaining"})
_NUMBER_BEHIND = lazy_pattern(r" [2-9]$")
_MIN_OF_A_LIST = 3  # numbers behind one name in one row, before they are a list


class Series(msgspec.Struct, frozen=True, dict=True):
    """A series of a run. ``part`` is the part of the data that its directory states, ``label`` the training
    of which it is, with which its tag begins, and ``unit`` what its steps count, where the log names it.
    """

    stream: str
    tag: str
    values: Values
    part: str = ""
    label: str = ""
    unit: str = ""

    @property
    def count(self) -> int:
        """The number of its points, finite or not."""
        return self.values.points

    @cached_property
    def key(self) -> Key:
        """What tells it from the other series of its run."""
        return self.stream, self.tag

    @cached_property
    def reading(self) -> Reading:
        """What its name says."""
        by_name = reading(without_label(self.tag, self.label), self.part)
        is_sure = by_name.is_in_table and Mark.MEMBER not in by_name.marks
        if not is_sure and self.tag == Path(self.stream).stem:
            return reading_of_a_file(self.tag, self.part)
        return by_name


def without_label(tag: str, label: str) -> str:
    """Return what a tag says beside the training of which it is."""
    return tag.removeprefix(label).lstrip() if label else tag


Roles = Mapping[Key, Role]
Rule = Callable[[Sequence[Series], Roles], Iterator[tuple[Key, Role | None]]]


def apply_rules(all_series: Sequence[Series], roles: Roles) -> Roles:
    """Return the roles after all rules, in their order."""
    result = dict(roles)
    for rule in _RULES:
        for key, role in [*rule(all_series, result)]:
            present = result.get(key)
            if present is not None and present.source >= Source.PROFILE:
                continue
            if role is None:
                result.pop(key, None)
            else:
                result[key] = role
    return result


def trains_an_agent(all_series: Sequence[Series], roles: Roles) -> bool:
    """Return whether rewards are what the run is about. A score may be one of anything, unless it is that of
    an episode.
    """
    rewards = [series for series in all_series if _is_reward(roles.get(series.key))]
    if any(
        roles[series.key].source >= Source.PROFILE or series.reading.words[-1:] not in _SCORES
        for series in rewards
    ):
        return True
    agents = any(
        series.unit in table().agents or not table().agents.isdisjoint(series.reading.words)
        for series in all_series
    )
    agents |= bool(rewards) and any(_OF_AGENTS.search(series.stream) for series in rewards)
    has_policy = any(series.reading.name in _OF_POLICIES | _OF_UPDATES for series in all_series)
    return has_policy or values_actions(all_series) or (bool(rewards) and agents)


def values_actions(all_series: Sequence[Series]) -> bool:
    """Return whether what actions are worth is logged, which an agent learns from its own values."""
    return any(series.reading.name in _OF_ACTIONS for series in all_series)


def rates_players(all_series: Sequence[Series]) -> bool:
    """Return whether a rating is logged: of players that learn from games against one another."""
    return any(series.reading.words[-1:] and series.reading.words[-1] in _RATINGS for series in all_series)


def games_lost(all_series: Sequence[Series]) -> set[Key]:
    """Return the losses that count games, because wins stand beside them."""
    by_name = {series.tag.rpartition("/")[2].lower(): series.key for series in all_series}
    return {by_name[_LOST]} if {_WON, _LOST} <= by_name.keys() else set()


def _is_reward(role: Role | None) -> bool:
    return (
        role is not None
        and role.kind is Kind.OUTCOME
        and role.measure is Measure.REWARD
        and role.rank <= MAIN_RANK
    )


def _same_row(series: Series, other: Series) -> bool:
    return series.stream == other.stream and abs(series.count - other.count) <= _MAX_COUNT_DIFFERENCE * max(
        series.count, other.count
    )


def _parts_of_a_reward(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the functions of which the reward is the sum: they stand in a group "rewards/"."""
    for series in all_series:
        group, slash, rest = series.tag.lower().partition("/")
        pairwise = Mark.PAIRWISE in series.reading.marks
        if slash and group in ("rewards", "reward") and not _is_of_the_whole(rest) and not pairwise:
            role = roles.get(series.key)
            if role is None or role.kind is Kind.OUTCOME:
                yield series.key, _part_of_a_reward(role)


def _is_of_the_whole(name: str) -> bool:
    """Return whether the name of a reward within its group only says that it is the whole: "total_mean"."""
    words = {word for part in words_of(name) for word in part}
    return words <= table().means | table().places | table().sums | table().training | _OF_WHOLE_REWARDS


def _part_of_a_reward(role: Role | None) -> Role:
    why = "one of the rewards that make up the whole"
    if role is not None:
        return replace(role, kind=Kind.PART, source=Source.COMPANY, why=why)
    return Role(Kind.PART, Measure.REWARD, Split.UNKNOWN, Direction.UNKNOWN, Unit.OWN, Source.COMPANY, why)


def _rewards_of_the_task(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the one of several rewards that asks whether the task was done, where the whole is not logged."""
    if any(role.kind is Kind.OUTCOME and role.measure is Measure.REWARD for role in roles.values()):
        return
    parts = [
        series
        for series in all_series
        if (role := roles.get(series.key)) and role.kind is Kind.PART and role.measure is Measure.REWARD
    ]
    of_task = [
        series
        for series in parts
        if not _OF_TASKS.isdisjoint(series.reading.words) and table().spread.isdisjoint(series.reading.words)
    ]
    if len(of_task) == 1:
        series = of_task[0]
        reward = _by_company(Kind.OUTCOME, Measure.REWARD, series.reading.split, "the reward of the task")
        yield series.key, replace(reward, unit=Unit.OWN)


def _returns_of_a_monitor(all_series: Sequence[Series], _: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a single R beside no length of an episode and no exploration: it stands for recall and not for a
    return.
    """
    for series in all_series:
        if series.reading.name == "r" and not any(
            other.tag.lower() in _OF_EPISODES and _same_row(series, other) for other in all_series
        ):
            yield series.key, None


def _rewards_of_players(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the rewards beside a rating: what a player wins from others that learn as well says little."""
    if not rates_players(all_series):
        return
    for series in all_series:
        role = roles.get(series.key)
        if role is not None and role.kind is Kind.OUTCOME and role.measure is Measure.REWARD:
            why = "a reward of games against others that learn"
            yield series.key, replace(role, kind=Kind.INNER, source=Source.COMPANY, why=why)


def _games_lost(all_series: Sequence[Series], _: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield numbers of games lost, which are no losses of a training."""
    yield from ((key, None) for key in games_lost(all_series))


def _reconstructions(all_series: Sequence[Series], _: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a Rec beside a KL and no precision: it stands for the reconstruction of an autoencoder and not
    for recall.
    """
    names = {series.reading.name for series in all_series}
    if names.isdisjoint(_OF_AUTOENCODERS) or "precision" in names:
        return
    for series in all_series:
        if series.reading.words == ABBREVIATED:
            of_training = series.reading.split is not Split.HELD_OUT
            kind = Kind.TRAINING_LOSS if of_training else Kind.HELD_OUT_LOSS
            split = Split.TRAIN if of_training else Split.HELD_OUT
            yield series.key, _by_company(kind, Measure.LOSS, split, "it stands beside a KL")


def _results_of_runs(all_series: Sequence[Series], _: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield all of a table in which a row is a whole run: it has a seed of its own and a final result."""
    tables: dict[tuple[str, str], list[Series]] = {}
    for series in all_series:
        tables.setdefault((series.stream, series.tag.rpartition("/")[0]), []).append(series)
    for rows in tables.values():
        has_final = any("final" in series.reading.words for series in rows)
        seeds = [series for series in rows if series.tag.rpartition("/")[2].lower() == "seed"]
        if has_final and any(not seed.values.is_constant for seed in seeds):
            yield from ((series.key, None) for series in rows)


def _numbered_members(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield names that differ only in their first groups: one outcome of several agents or data sets."""
    endings: dict[str, list[Series]] = {}
    for series in all_series:
        if series.key not in roles and not series.reading.is_in_table and "/" in series.tag:
            endings.setdefault(series.tag.rpartition("/")[2], []).append(series)
    for ending, members in endings.items():
        by_name = reading(ending).role
        if (
            by_name is None
            or by_name.kind is not Kind.OUTCOME
            or by_name.rank > MAIN_RANK
            or len(members) < _MIN_MEMBERS
        ):
            continue
        for series in members:
            split = series.reading.split if series.reading.split is not Split.UNKNOWN else by_name.split
            marks = frozenset({Mark.MEMBER})
            why = _ONE_OF_SEVERAL
            yield series.key, replace(by_name, split=split, marks=marks, source=Source.COMPANY, why=why)


def _splits_by_twins(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield bare metrics beside the same of training, which are of held-out data, and the other way round."""
    by_words: dict[tuple[str, ...], set[Split]] = {}
    for series in all_series:
        if series.reading.split is not Split.UNKNOWN:
            by_words.setdefault(series.reading.words, set()).add(series.reading.split)
    for series in all_series:
        role = roles.get(series.key)
        if (
            role is None
            or not role.is_outcome_like
            or series.reading.split is not Split.UNKNOWN
            or role.measure is Measure.REWARD
        ):
            continue
        twins = by_words.get(series.reading.words, set())
        if twins == {Split.TRAIN} and _has_twin(series, all_series, Split.TRAIN):
            yield series.key, _moved(role, Split.HELD_OUT, "the same of training stands beside it")
        elif Split.HELD_OUT in twins:
            yield series.key, _moved(role, Split.TRAIN, "the same of held-out data stands beside it")


def _has_twin(series: Series, all_series: Sequence[Series], split: Split) -> bool:
    """Return whether a twin of the other split is logged as often."""
    return any(
        other.reading.words == series.reading.words
        and other.reading.split is split
        and _same_row(series, other)
        for other in all_series
    )


def _moved(role: Role, split: Split, why: str) -> Role:
    kind = role.kind
    if kind is Kind.TRAINING_LOSS and split is Split.HELD_OUT:
        kind = Kind.HELD_OUT_LOSS
    return replace(role, kind=kind, split=split, source=min(role.source, Source.COMPANY), why=why)


def _splits_by_rows(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield bare metrics: those logged with held-out data or less often than training are held-out, and so
    are those of a run that logs no loss of its training, and those beside a bare loss of held-out data. A
    score may be that of a sample.
    """
    held_out = [series for series in all_series if series.reading.split is Split.HELD_OUT]
    bare = [
        series
        for series in all_series
        if series.reading.split is Split.UNKNOWN
        and (role := roles.get(series.key))
        and role.kind is Kind.HELD_OUT_LOSS
    ]
    losses = [
        series for series in all_series if (role := roles.get(series.key)) and role.kind is Kind.TRAINING_LOSS
    ]
    rarest = min((series.count for series in losses), default=0)
    has_loss = any("loss" in series.reading.name.split() for series in all_series)
    for series in all_series:
        role = roles.get(series.key)
        if (
            role is None
            or role.kind is not Kind.OUTCOME
            or role.measure is not Measure.METRIC
            or role.split is not Split.UNKNOWN
        ):
            continue
        with_held_out = any(_same_row(series, other) for other in held_out)
        in_training_rows = any(_same_row(series, other) for other in losses)
        if with_held_out and in_training_rows:  # the counts of both are near; equal ones tell more
            with_held_out = any(series.count == other.count for other in held_out)
            in_training_rows = any(series.count == other.count for other in losses)
        if with_held_out and not in_training_rows:
            yield series.key, _moved(role, Split.HELD_OUT, "it stands in the rows of the evaluation")
        elif any(_same_row(series, other) for other in bare):
            yield series.key, _moved(role, Split.HELD_OUT, "it stands beside a bare loss of held-out data")
        elif series.count <= _MAX_EVALUATION_COUNT * rarest:
            yield series.key, _moved(role, Split.HELD_OUT, "it is logged less often than the training loss")
        elif in_training_rows and held_out:
            yield series.key, _moved(role, Split.TRAIN, "it stands in the rows of training")
        elif not (losses or has_loss or series.reading.words in _SCORES):
            moved = _moved(role, Split.HELD_OUT, "nothing of a training stands beside it")
            sole = replace(moved, marks=role.marks | {Mark.SOLE})
            yield series.key, None if series.unit == _ROW else sole  # a result of several models or tests
        else:
            yield series.key, _moved(role, Split.TRAIN, "nothing tells that it is of held-out data")


def _scores(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the scores of a run that trains no agent, as metrics."""
    if trains_an_agent(all_series, roles):
        return
    errors = [series for series in all_series if not _OF_ERRORS.isdisjoint(series.reading.words)]
    for series in all_series:
        role = roles.get(series.key)
        if series.reading.words in _SCORES and _is_of_any_direction(series, errors):
            yield series.key, None
        elif _is_reward(role) and role is not None:
            why = "a score, and no agent is trained"
            yield series.key, replace(role, measure=Measure.METRIC, source=Source.COMPANY, why=why)


def _is_of_any_direction(score: Series, errors: Sequence[Series]) -> bool:
    """Return whether a score is no share and stands beside an error: it may be a penalty for errors."""
    is_share = score.values.is_share or score.values.is_percent
    return not is_share and any(_same_row(score, error) for error in errors)


def _losses_of_adversaries(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the losses of networks that play against each other, which need not fall, nor does their sum."""
    names = {series.reading.name for series in all_series}
    if names.isdisjoint(_GENERATORS) or names.isdisjoint(_DISCRIMINATORS):
        return
    for series in all_series:
        role = roles.get(series.key)
        if role is not None and role.is_loss:
            yield (
                series.key,
                replace(role, kind=Kind.INNER, source=Source.COMPANY, why="a loss of adversaries"),
            )


def _results_of_participants(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield what stands in the rows of a number of a participant of federated training: each one begins anew
    from the common model, on data of its own, so that the series is no course of one model.
    """
    of_participants = results_of_participants(all_series)
    for series in all_series:
        role = roles.get(series.key)
        if role is not None and role.is_outcome_like and series.key in of_participants:
            yield series.key, replace(role, kind=Kind.INNER, source=Source.COMPANY, why=_OF_A_PARTICIPANT)


def results_of_participants(all_series: Sequence[Series]) -> set[Key]:
    """Return what stands in the rows of a number of a participant of federated training."""
    numbers = [series for series in all_series if _numbers_participants(series)]
    return {series.key for series in all_series if any(_same_row(series, other) for other in numbers)}


def _numbers_participants(series: Series) -> bool:
    words = [word for word in series.reading.words if word != "id" and word not in table().places]
    ends = (series.values.first, series.values.last, series.values.least, series.values.most)
    is_name = len(words) == 1 and words[0] in table().participants
    return is_name and all(end.is_integer() and end >= 0 for end in ends)


def _losses_of_agents(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the losses beside a reward, which do not say how well an agent learns."""
    if not trains_an_agent(all_series, roles):
        return
    policy = [series for series in all_series if series.reading.name in _OF_POLICIES]
    for series in all_series:
        role = roles.get(series.key)
        if role is None or not role.is_loss:
            continue
        value = role.kind is Kind.HELD_OUT_LOSS and any(_same_row(series, other) for other in policy)
        if value or role.kind is Kind.TRAINING_LOSS:
            why = "the loss of a value function" if value else "an agent's loss"
            yield (
                series.key,
                replace(
                    role,
                    kind=Kind.INNER,
                    measure=Measure.OTHER,
                    split=Split.TRAIN,
                    source=Source.COMPANY,
                    why=why,
                ),
            )


def weighs_advantages(all_series: Sequence[Series]) -> bool:
    """Return whether advantages are logged, with which the gradient of a policy weighs its actions."""
    return any(series.reading.name in _ADVANTAGES for series in all_series)


def _losses_of_policies(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a loss beside advantages, whose level says nothing. What the policy costs is no loss of it."""
    if not weighs_advantages(all_series):
        return
    for series in all_series:
        role = roles.get(series.key)
        if role is not None and role.kind is Kind.TRAINING_LOSS and _LOSS in series.reading.words:
            why = "the loss of a policy, beside advantages"
            yield series.key, replace(role, kind=Kind.INNER, source=Source.COMPANY, why=why)


def _losses_of_equations(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a plain total beside the residuals of equations and of their boundaries, which is their loss, and
    the residuals as its terms.
    """
    terms = [
        series
        for series in all_series
        if not _OF_EQUATIONS.isdisjoint(series.reading.words) and series.reading.split is not Split.HELD_OUT
    ]
    if len(terms) < _MIN_EQUATIONS or any(role.kind is Kind.TRAINING_LOSS for role in roles.values()):
        return
    part = _by_company(Kind.PART, Measure.LOSS, Split.TRAIN, "a residual")
    yield from ((series.key, replace(part, marks=frozenset({Mark.TERM}))) for series in terms)
    whole = _by_company(Kind.TRAINING_LOSS, Measure.LOSS, Split.TRAIN, "a total beside residuals")
    yield from ((series.key, whole) for series in all_series if series.reading.words == ("total",))


def _errors_of_boosting(all_series: Sequence[Series], _: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield what CatBoost prints, whatever it measures: losses where it falls, or else metrics."""
    by_tag = {series.tag: series for series in all_series}
    if not by_tag.keys() >= _OF_BOOSTING:
        return
    falls = by_tag["learn"].values.last <= by_tag["learn"].values.first
    why = "CatBoost prints it"
    for tag, split in (("learn", Split.TRAIN), ("test", Split.HELD_OUT)):
        if tag in by_tag and falls:
            kind = Kind.TRAINING_LOSS if split is Split.TRAIN else Kind.HELD_OUT_LOSS
            yield by_tag[tag].key, _by_company(kind, Measure.LOSS, split, why)
        elif tag in by_tag:
            yield by_tag[tag].key, _by_company(Kind.OUTCOME, Measure.METRIC, split, why)


def _parts_of_the_data_alone(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield what only names its part of the data, such as "train" and "val", where nothing else is judged but
    a metric or a perplexity by its name: shares of which that of the training rises are a metric, and else it
    is the loss.
    """
    alone = [
        series
        for series in all_series
        if not series.reading.words and series.reading.split is not Split.UNKNOWN and series.key not in roles
    ]
    splits = {series.reading.split for series in alone}
    is_named = any(
        role.is_loss or role.measure is Measure.REWARD
        for series in all_series
        if (role := roles.get(series.key)) is not None and series.reading.name != "perplexity"
    )
    if len(splits) < len(Split) - 1 or is_named:
        return
    are_shares = all(
        series.values.least >= 0 and (series.values.is_share or series.values.is_percent) for series in alone
    )
    of_training = [series.values for series in alone if series.reading.split is Split.TRAIN]
    rises = all(one.last > one.first and one.rises > one.falls for one in of_training)
    is_metric = are_shares and rises
    why = "nothing but its part of the data is named"
    for series in alone:
        split = series.reading.split
        of_loss = Kind.TRAINING_LOSS if split is Split.TRAIN else Kind.HELD_OUT_LOSS
        kind = Kind.OUTCOME if is_metric else of_loss
        yield series.key, _by_company(kind, Measure.METRIC if is_metric else Measure.LOSS, split, why)


def first_of_lists(all_series: Sequence[Series]) -> set[Key]:
    """Return the first ones of several numbers that a row prints behind one name."""
    sizes = Counter((series.stream, _NUMBER_BEHIND.sub("", series.tag)) for series in all_series)
    return {series.key for series in all_series if sizes[series.key] >= _MIN_OF_A_LIST}


def _numbers_of_a_list(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the first number of a list of losses: none of them is the whole."""
    for key in first_of_lists(all_series):
        role = roles.get(key)
        if role is not None and role.kind is Kind.TRAINING_LOSS:
            yield key, replace(role, kind=Kind.PART, source=Source.COMPANY, why="one of a list")


def _by_company(kind: Kind, measure: Measure, split: Split, why: str) -> Role:
    direction = Direction.LOWER if measure is Measure.LOSS else Direction.HIGHER
    unit = Unit.OWN if measure is Measure.LOSS else Unit.SHARE
    return Role(kind, measure, split, direction, unit, Source.COMPANY, why)


def _parts_and_sole_losses(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield longer names of losses: parts where a whole loss is known, and the loss itself if alone."""
    agent = trains_an_agent(all_series, roles)
    for split, kind in ((Split.TRAIN, Kind.TRAINING_LOSS), (Split.HELD_OUT, Kind.HELD_OUT_LOSS)):
        plain = [series for series in all_series if (role := roles.get(series.key)) and role.kind is kind]
        parts = any(_is_part_of_a_loss(series, roles.get(series.key), split) for series in all_series)
        longer = [
            series
            for series in all_series
            if series.key not in roles and not series.reading.is_in_table and _names_a_loss(series, split)
        ]
        whole = bool(plain)
        is_part = whole or parts or len(longer) > 1 or agent
        why = "one of several losses" if is_part else "the only loss of the run"
        role = Role(
            Kind.PART if is_part else kind,
            Measure.LOSS,
            split,
            Direction.LOWER,
            Unit.OWN,
            Source.COMPANY,
            why,
            frozenset() if is_part else _SOLE,
        )
        yield from (
            (series.key, role)
            for series in longer
            if is_part or series.reading.words[-1].endswith("loss") or _is_of_a_component(series)
        )


def _are_terms(parts: Sequence[Series]) -> bool:
    """Return whether parts of a loss are its terms, and not the losses of several tasks: one has a usual
    name, or they are called as "loss_box" and "loss_class" are.
    """
    are_distinct = len({*map(_without_numbers, parts)}) == len(parts) > 1
    return are_distinct and any(
        series.reading.is_in_table or series.reading.name.startswith("loss ") for series in parts
    )


def _is_of_a_component(series: Series) -> bool:
    """Return whether a word after "loss" names what is trained, as in "LOSS TEXTCAT", and not a number."""
    words = series.reading.name.split()
    return len(words) == 2 and len(words[1]) > 2 and words[1] not in _OF_A_LOSS | table().spread


def _losses_without_a_whole(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the parts of a loss whose whole is not logged: several are its terms, and one alone is the loss.

    What keeps weights or codes small says nothing alone, and networks that play against each other have no
    common loss.
    """
    names = {series.reading.name for series in all_series}
    adversaries = not names.isdisjoint(_GENERATORS | _DISCRIMINATORS)
    adversaries |= any(not _OF_ADVERSARIES.isdisjoint(name.split()) for name in names)
    if adversaries or trains_an_agent(all_series, roles):
        return
    for split, kind in ((Split.TRAIN, Kind.TRAINING_LOSS), (Split.HELD_OUT, Kind.HELD_OUT_LOSS)):
        parts = [
            series
            for series in all_series
            if _is_part_of_a_loss(series, roles.get(series.key), split)
            and (_KEEPS_SMALL | _OF_EQUATIONS | _HOW_MUCH_COUNTS).isdisjoint(series.reading.name.split())
        ]
        if any(role.kind is kind for role in roles.values()) or not parts:
            continue
        if any(not _OF_WHOLES.isdisjoint(series.reading.name.split()) for series in parts):
            continue
        if split is Split.TRAIN and _are_terms(parts):
            part = _by_company(Kind.PART, Measure.LOSS, split, "a term of a loss that is not logged")
            yield from ((series.key, replace(part, marks=frozenset({Mark.TERM}))) for series in parts)
        elif len(parts) == 1:
            whole = _by_company(kind, Measure.LOSS, split, "the only loss of the run")
            yield parts[0].key, replace(whole, marks=_SOLE)


def _sole_rewards(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a longer name of a reward or return, where it is the only one of the run."""
    if any(role.measure is Measure.REWARD for role in roles.values()):
        return
    reward_series = [series for series in all_series if _names_a_reward(series)]
    if len(reward_series) == 1 and reward_series[0].key not in roles:
        series = reward_series[0]
        why = "the only reward of the run"
        yield (
            series.key,
            Role(
                Kind.OUTCOME,
                Measure.REWARD,
                series.reading.split,
                Direction.HIGHER,
                Unit.OWN,
                Source.COMPANY,
                why,
                _SOLE,
            ),
        )


def _names_a_reward(series: Series) -> bool:
    """Return whether a longer name is of a reward: of the whole one, and of the policy that learns."""
    words = {*series.reading.name.split()}
    others = table().spread | table().other_rewards
    is_plain = words.isdisjoint(others | _COSTS) and Mark.BEST not in series.reading.marks
    return is_plain and not series.reading.is_in_table and not words.isdisjoint(_REWARDS)


def _sole_metrics(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a longer name of a share that was measured on held-out data, where nothing else of them is
    judged.
    """
    if any(role.is_outcome_like and role.split is Split.HELD_OUT for role in roles.values()):
        return
    metrics = [
        (series, role)
        for series in all_series
        if series.key not in roles
        and series.reading.split is Split.HELD_OUT
        and (role := metric_at_the_end(series.reading))
        and role.unit is Unit.SHARE
        and (series.values.is_share or series.values.is_percent)
    ]
    if len(metrics) == 1:
        series, role = metrics[0]
        unit = Unit.SHARE if series.values.is_share else Unit.PERCENT
        why = "the only metric of held-out data"
        yield series.key, replace(role, unit=unit, marks=_SOLE, source=Source.COMPANY, why=why)


def _objectness(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the objectness of a detector, which is called as an objective: a part of the loss."""
    names = {series.reading.name for series in all_series}
    for series in all_series:
        role = roles.get(series.key)
        if role is not None and series.reading.name == "obj" and not names.isdisjoint(_OF_BOXES):
            why = "it stands beside a loss of boxes"
            yield series.key, replace(role, kind=Kind.PART, source=Source.COMPANY, why=why)


def _is_part_of_a_loss(series: Series, role: Role | None, split: Split) -> bool:
    return role is not None and role.kind is Kind.PART and _names_a_loss(series, split)


def _names_a_loss(series: Series, split: Split) -> bool:
    words = series.reading.words
    splits = (split, Split.UNKNOWN) if split is Split.TRAIN else (split,)
    return (
        series.reading.split in splits
        and bool(words)
        and ("loss" in (words[0], words[-1]) or words[-1].endswith("loss"))
        and Mark.BEST not in series.reading.marks
    )


def _terms_of_a_total(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a total of each part of the data, "train_total" beside "val_total", as the loss, and as its terms
    what else falls on both: a quality that got worse with the loss is a cost.
    """
    totals = [series for series in all_series if series.reading.words == _TOTAL and series.values.falls]
    if {series.reading.split for series in totals} != {Split.TRAIN, Split.HELD_OUT}:
        return
    for series in totals:
        kind = Kind.TRAINING_LOSS if series.reading.split is Split.TRAIN else Kind.HELD_OUT_LOSS
        yield series.key, _by_company(kind, Measure.LOSS, series.reading.split, "the total of several costs")
    splits: dict[tuple[str, ...], list[Series]] = {}
    for series in all_series:
        splits.setdefault(series.reading.words, []).append(series)
    for twins in splits.values():
        of_both = {series.reading.split for series in twins} >= {Split.TRAIN, Split.HELD_OUT}
        if not of_both or not all(series.values.last < series.values.first for series in twins):
            continue
        for series in twins:
            role = roles.get(series.key)
            if role is not None and role.unit is Unit.OWN and series not in totals:
                part = _by_company(Kind.PART, Measure.LOSS, series.reading.split, "a term of the total")
                yield series.key, part


def _errors_of_training(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the errors on training data beside a loss, as its parts."""
    whole = any(role.kind is Kind.TRAINING_LOSS and role.rank <= MAIN_RANK for role in roles.values())
    if not whole:
        return
    for series in all_series:
        role = roles.get(series.key)
        if role is not None and role.kind is Kind.TRAINING_LOSS and role.rank > MAIN_RANK:
            yield (
                series.key,
                replace(role, kind=Kind.PART, source=Source.COMPANY, why="a loss stands beside it"),
            )


def _without_numbers(series: Series) -> tuple[str, ...]:
    """Return the words that a series has in common with the others of which it may be one."""
    return tuple(word for word in series.reading.words if not word.isdecimal())


def _never_measured_twice(all_series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield what is the best so far or a running sum, which is no outcome, and what only its number calls one
    of several.
    """
    namesakes = Counter(map(_without_numbers, all_series))
    for series in all_series:
        role = roles.get(series.key)
        if role is None or not role.is_outcome_like:
            continue
        marks = {*series.reading.marks, *role.marks}
        if namesakes[_without_numbers(series)] == 1 and role.why != _ONE_OF_SEVERAL:
            marks.discard(Mark.MEMBER)
        if Mark.SUM in marks and not (
            series.values.never_falls and series.values.last > _MIN_GROWTH * abs(series.values.first)
        ):
            marks.discard(Mark.SUM)  # a sum over one episode or over the parts of a loss
        if marks & {Mark.BEST, Mark.SUM}:
            what = Mark.BEST if Mark.BEST in marks else Mark.SUM
            yield (
                series.key,
                replace(
                    role,
                    kind=Kind.INNER,
                    marks=frozenset(marks),
                    source=Source.COMPANY,
                    why=f"a {what.value}",
                ),
            )
        elif frozenset(marks) != role.marks:
            yield series.key, replace(role, marks=frozenset(marks))


_RULES: Sequence[Rule] = (
    _parts_of_a_reward,
    _returns_of_a_monitor,
    _games_lost,
    _reconstructions,
    _rewards_of_players,
    _numbered_members,
    _sole_rewards,
    _rewards_of_the_task,
    _splits_by_twins,
    _sole_metrics,
    _objectness,
    _losses_of_equations,
    _errors_of_boosting,
    _terms_of_a_total,
    _numbers_of_a_list,
    _parts_and_sole_losses,
    _losses_without_a_whole,
    _errors_of_training,
    _scores,
    _splits_by_rows,
    _parts_of_the_data_alone,
    _losses_of_agents,
    _losses_of_policies,
    _losses_of_adversaries,
    _results_of_participants,
    _never_measured_twice,
    _results_of_runs,
)
