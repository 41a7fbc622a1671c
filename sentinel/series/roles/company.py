"""What the other series of a run say of a series.

Each rule takes all series with their roles and gives the roles that it changes. A role that a profile or a
person gave is never changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sentinel.series.roles.names import Reading, reading, table
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
_OF_BOXES = frozenset({"box", "giou", "ciou", "box loss"})
_SCORES = (("score",), ("scores",))
_REWARDS = frozenset({"reward", "return"})
_GENERATORS = frozenset({"g loss", "generator loss", "loss g", "gen loss", "err g", "g gan"})
_DISCRIMINATORS = frozenset(
    {"d loss", "discriminator loss", "loss d", "disc loss", "err d", "d real", "d fake"}
)


@dataclass(frozen=True)
class Series:
    """A series of a run. ``part`` is the part of the data that its directory states."""

    stream: str
    tag: str
    values: Values
    part: str = ""

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
        return reading(self.tag, self.part)


Roles = Mapping[Key, Role]
Rule = Callable[[Sequence[Series], Roles], Iterator[tuple[Key, Role | None]]]


def apply_rules(series: Sequence[Series], roles: Roles) -> Roles:
    """Return the roles after all rules, in their order."""
    result = dict(roles)
    for rule in _RULES:
        for key, role in [*rule(series, result)]:
            present = result.get(key)
            if present is not None and present.source >= Source.PROFILE:
                continue
            if role is None:
                result.pop(key, None)
            else:
                result[key] = role
    return result


def trains_an_agent(series: Sequence[Series], roles: Roles) -> bool:
    """Return whether rewards are what the run is about. A score alone may be one of anything."""
    rewards = [one for one in series if _is_reward(roles.get(one.key))]
    if any(
        roles[one.key].source >= Source.PROFILE or one.reading.words[-1:] not in _SCORES for one in rewards
    ):
        return True
    agents = any(word in table().agents for one in series for word in one.reading.words)
    return _has_policy_loss(series) or (bool(rewards) and agents)


def _is_reward(role: Role | None) -> bool:
    return (
        role is not None
        and role.kind is Kind.OUTCOME
        and role.measure is Measure.REWARD
        and role.rank <= MAIN_RANK
    )


def _has_policy_loss(series: Sequence[Series]) -> bool:
    return any(one.reading.name in _OF_POLICIES for one in series)


def _same_row(one: Series, other: Series) -> bool:
    return one.stream == other.stream and abs(one.count - other.count) <= _MAX_COUNT_DIFFERENCE * max(
        one.count, other.count
    )


def _parts_of_a_reward(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the functions of which the reward is the sum: they stand in a group "rewards/"."""
    for one in series:
        group, slash, rest = one.tag.lower().partition("/")
        pairwise = Mark.PAIRWISE in one.reading.marks
        if slash and group in ("rewards", "reward") and rest not in ("mean", "avg") and not pairwise:
            role = roles.get(one.key)
            if role is None or role.kind is Kind.OUTCOME:
                yield one.key, _part_of_a_reward(role)


def _part_of_a_reward(role: Role | None) -> Role:
    why = "one of the rewards that make up the whole"
    if role is not None:
        return replace(role, kind=Kind.PART, source=Source.COMPANY, why=why)
    return Role(Kind.PART, Measure.REWARD, Split.UNKNOWN, Direction.UNKNOWN, Unit.OWN, Source.COMPANY, why)


def _returns_of_a_monitor(series: Sequence[Series], _: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a single R beside no length of an episode: it stands for recall and not for a return."""
    for one in series:
        if one.tag.lower() == "r" and not any(other.tag == "l" and _same_row(one, other) for other in series):
            yield one.key, None


def _members(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield names that differ only in their first groups: one outcome of several agents or data sets."""
    endings: dict[str, list[Series]] = {}
    for one in series:
        if one.key not in roles and not one.reading.is_in_table and "/" in one.tag:
            endings.setdefault(one.tag.rpartition("/")[2], []).append(one)
    for ending, members in endings.items():
        by_name = reading(ending).role
        if (
            by_name is None
            or by_name.kind is not Kind.OUTCOME
            or by_name.rank > MAIN_RANK
            or len(members) < _MIN_MEMBERS
        ):
            continue
        for one in members:
            split = one.reading.split if one.reading.split is not Split.UNKNOWN else by_name.split
            marks = frozenset({Mark.MEMBER})
            why = "one of several of this name"
            yield one.key, replace(by_name, split=split, marks=marks, source=Source.COMPANY, why=why)


def _splits_by_twins(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield bare metrics beside the same of training, which are of held-out data, and the other way round."""
    by_words: dict[tuple[str, ...], set[Split]] = {}
    for one in series:
        if one.reading.split is not Split.UNKNOWN:
            by_words.setdefault(one.reading.words, set()).add(one.reading.split)
    for one in series:
        role = roles.get(one.key)
        if (
            role is None
            or not role.is_outcome_like
            or one.reading.split is not Split.UNKNOWN
            or role.measure is Measure.REWARD
        ):
            continue
        twins = by_words.get(one.reading.words, set())
        if twins == {Split.TRAIN} and _beside(one, series, Split.TRAIN):
            yield one.key, _moved(role, Split.HELD_OUT, "the same of training stands beside it")
        elif Split.HELD_OUT in twins:
            yield one.key, _moved(role, Split.TRAIN, "the same of held-out data stands beside it")


def _beside(one: Series, series: Sequence[Series], split: Split) -> bool:
    """Return whether a twin of the other split is logged as often."""
    return any(
        other.reading.words == one.reading.words and other.reading.split is split and _same_row(one, other)
        for other in series
    )


def _moved(role: Role, split: Split, why: str) -> Role:
    kind = role.kind
    if kind is Kind.TRAINING_LOSS and split is Split.HELD_OUT:
        kind = Kind.HELD_OUT_LOSS
    return replace(role, kind=kind, split=split, source=min(role.source, Source.COMPANY), why=why)


def _splits_by_rows(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield bare metrics: those logged with held-out data or less often than training are held-out."""
    held_out = [one for one in series if one.reading.split is Split.HELD_OUT]
    losses = [one for one in series if (role := roles.get(one.key)) and role.kind is Kind.TRAINING_LOSS]
    rarest = min((one.count for one in losses), default=0)
    for one in series:
        role = roles.get(one.key)
        if (
            role is None
            or role.kind is not Kind.OUTCOME
            or role.measure is not Measure.METRIC
            or role.split is not Split.UNKNOWN
        ):
            continue
        with_held_out = any(_same_row(one, other) for other in held_out)
        in_training_rows = any(_same_row(one, other) for other in losses)
        if with_held_out and in_training_rows:  # the counts of both are near; equal ones tell more
            with_held_out = any(one.count == other.count for other in held_out)
            in_training_rows = any(one.count == other.count for other in losses)
        if with_held_out and not in_training_rows:
            yield one.key, _moved(role, Split.HELD_OUT, "it stands in the rows of the evaluation")
        elif one.count <= _MAX_EVALUATION_COUNT * rarest:
            yield one.key, _moved(role, Split.HELD_OUT, "it is logged less often than the training loss")
        elif in_training_rows and held_out:
            yield one.key, _moved(role, Split.TRAIN, "it stands in the rows of training")
        else:
            yield one.key, _moved(role, Split.TRAIN, "nothing tells that it is of held-out data")


def _scores(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the scores of a run that trains no agent, as metrics."""
    if trains_an_agent(series, roles):
        return
    for one in series:
        role = roles.get(one.key)
        if _is_reward(role) and role is not None:
            why = "a score, and no agent is trained"
            yield one.key, replace(role, measure=Measure.METRIC, source=Source.COMPANY, why=why)


def _losses_of_adversaries(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the losses of networks that play against each other, which need not fall, nor does their sum."""
    names = {one.reading.name for one in series}
    if names.isdisjoint(_GENERATORS) or names.isdisjoint(_DISCRIMINATORS):
        return
    for one in series:
        role = roles.get(one.key)
        if role is not None and role.is_loss:
            yield one.key, replace(role, kind=Kind.INNER, source=Source.COMPANY, why="a loss of adversaries")


def _losses_of_agents(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the losses beside a reward, which do not say how well an agent learns."""
    if not trains_an_agent(series, roles):
        return
    policy = [one for one in series if one.reading.name in _OF_POLICIES]
    for one in series:
        role = roles.get(one.key)
        if role is None or not role.is_loss:
            continue
        value = role.kind is Kind.HELD_OUT_LOSS and any(_same_row(one, other) for other in policy)
        if value or role.kind is Kind.TRAINING_LOSS:
            why = "the loss of a value function" if value else "an agent's loss"
            yield (
                one.key,
                replace(
                    role,
                    kind=Kind.INNER,
                    measure=Measure.OTHER,
                    split=Split.TRAIN,
                    source=Source.COMPANY,
                    why=why,
                ),
            )


def _parts_and_sole_losses(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield longer names of losses: parts where a whole loss is known, and the loss itself if alone."""
    agent = trains_an_agent(series, roles)
    for split, kind in ((Split.TRAIN, Kind.TRAINING_LOSS), (Split.HELD_OUT, Kind.HELD_OUT_LOSS)):
        plain = [one for one in series if (role := roles.get(one.key)) and role.kind is kind]
        parts = any(_is_part_of_a_loss(one, roles.get(one.key), split) for one in series)
        longer = [
            one
            for one in series
            if one.key not in roles and not one.reading.is_in_table and _names_a_loss(one, split)
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
        )
        yield from ((one.key, role) for one in longer if is_part or one.reading.words[-1].endswith("loss"))


def _sole_rewards(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield a longer name of a reward or return, where it is the only one of the run."""
    if any(role.measure is Measure.REWARD for role in roles.values()):
        return
    named = [one for one in series if _names_a_reward(one)]
    if len(named) == 1 and named[0].key not in roles:
        one = named[0]
        why = "the only reward of the run"
        yield (
            one.key,
            Role(
                Kind.OUTCOME,
                Measure.REWARD,
                one.reading.split,
                Direction.HIGHER,
                Unit.OWN,
                Source.COMPANY,
                why,
            ),
        )


def _names_a_reward(one: Series) -> bool:
    words = {*one.reading.name.split()}
    is_plain = words.isdisjoint(table().spread) and Mark.BEST not in one.reading.marks
    return is_plain and not one.reading.is_in_table and not words.isdisjoint(_REWARDS)


def _objectness(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the objectness of a detector, which is called as an objective: a part of the loss."""
    names = {one.reading.name for one in series}
    for one in series:
        role = roles.get(one.key)
        if role is not None and one.reading.name == "obj" and not names.isdisjoint(_OF_BOXES):
            why = "it stands beside a loss of boxes"
            yield one.key, replace(role, kind=Kind.PART, source=Source.COMPANY, why=why)


def _is_part_of_a_loss(one: Series, role: Role | None, split: Split) -> bool:
    return role is not None and role.kind is Kind.PART and _names_a_loss(one, split)


def _names_a_loss(one: Series, split: Split) -> bool:
    words = one.reading.words
    splits = (split, Split.UNKNOWN) if split is Split.TRAIN else (split,)
    return (
        one.reading.split in splits
        and bool(words)
        and ("loss" in (words[0], words[-1]) or words[-1].endswith("loss"))
        and Mark.BEST not in one.reading.marks
    )


def _errors_of_training(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield the errors on training data beside a loss, as its parts."""
    whole = any(role.kind is Kind.TRAINING_LOSS and role.rank <= MAIN_RANK for role in roles.values())
    if not whole:
        return
    for one in series:
        role = roles.get(one.key)
        if role is not None and role.kind is Kind.TRAINING_LOSS and role.rank > MAIN_RANK:
            yield one.key, replace(role, kind=Kind.PART, source=Source.COMPANY, why="a loss stands beside it")


def _never_measured_twice(series: Sequence[Series], roles: Roles) -> Iterator[tuple[Key, Role | None]]:
    """Yield what is the best so far or a running sum, which is no outcome."""
    for one in series:
        role = roles.get(one.key)
        if role is None or not role.is_outcome_like:
            continue
        marks = {*one.reading.marks, *role.marks}
        if Mark.SUM in marks and not (
            one.values.never_falls and one.values.last > _MIN_GROWTH * abs(one.values.first)
        ):
            marks.discard(Mark.SUM)  # a sum over one episode or over the parts of a loss
        if marks & {Mark.BEST, Mark.SUM}:
            what = Mark.BEST if Mark.BEST in marks else Mark.SUM
            yield (
                one.key,
                replace(
                    role,
                    kind=Kind.INNER,
                    marks=frozenset(marks),
                    source=Source.COMPANY,
                    why=f"a {what.value}",
                ),
            )
        elif frozenset(marks) != role.marks:
            yield one.key, replace(role, marks=frozenset(marks))


_RULES: Sequence[Rule] = (
    _parts_of_a_reward,
    _returns_of_a_monitor,
    _members,
    _sole_rewards,
    _splits_by_twins,
    _objectness,
    _parts_and_sole_losses,
    _errors_of_training,
    _scores,
    _splits_by_rows,
    _losses_of_agents,
    _losses_of_adversaries,
    _never_measured_twice,
)
