"""What the whole name of a series says.

A name is read in steps: as it is, then without means and places, then without the marks of a series ("best",
"running"), and at last without numbers. The first step that the table knows counts. No single word decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.signals import Signal
from sentinel.series.foreign_words import in_english
from sentinel.series.glued_words import apart
from sentinel.series.roles.role import MAIN_RANK, Direction, Kind, Mark, Measure, Role, Source, Split, Unit

_TAG_WORD = lazy_pattern(
    r"[hH]eld[ _-]?[oO]ut|CIDEr|[mM]AP(?![A-Za-z])|[mM]?IoU|[mM]Io[uU]"
    r"|[a-z]?[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+|%"
)
_HASH = lazy_pattern(r"[0-9a-fA-F]{16,}")
"""A number in the name of a file that says nothing to a person."""

TABLE = Path(__file__).parent / "roles.json"
"""The data of ``roles.toml``, which `make docs` writes, since JSON is parsed in a tenth of the time."""

MIN_TELLING = 3
"""Characters of a word in a name that tells what a file holds whatever other words stand around it."""

_PAIRWISE = frozenset(
    {
        *("reward accuracy", "preference accuracy", "pairwise accuracy", "pair accuracy", "ranking accuracy"),
        *("comparison accuracy", "rm accuracy", "reward model accuracy", "dpo accuracy"),
        *("implicit accuracy", "implicit reward accuracy"),
    }
)
"""What shares of pairs in the right order are called."""


class Companion(msgspec.Struct, frozen=True):
    """A signal that names have beside a reward. ``words`` are what a name holds without those ``aside``, and
    ``writes`` says whether other names of the run have to be of texts.
    """

    signal: Signal
    words: frozenset[frozenset[str]]
    aside: frozenset[str]
    writes: bool


class Table(msgspec.Struct, frozen=True):
    """The data of ``roles.toml``."""

    names: Mapping[str, Role | None]
    with_split: frozenset[str]  # names that count only beside the part of the data
    held_out: frozenset[str]
    training: frozenset[str]
    at_an_end: frozenset[str]
    means: frozenset[str]
    places: frozenset[str]
    episodes: frozenset[str]
    running: frozenset[str]
    best: frozenset[str]
    sums: frozenset[str]
    spread: frozenset[str]
    agents: frozenset[str]
    other_rewards: frozenset[str]
    members: frozenset[str]
    participants: frozenset[str]
    classes: frozenset[str]
    ranks: frozenset[str]
    similarities: frozenset[str]
    texts: frozenset[str]
    companions: tuple[Companion, ...]
    spellings: Mapping[str, str]


class Reading(msgspec.Struct, frozen=True, dict=True):
    """What a name says. ``role`` is None if the table does not know it, or says that it is nothing."""

    role: Role | None
    is_in_table: bool
    split: Split
    words: tuple[str, ...]
    marks: frozenset[Mark]

    @cached_property
    def name(self) -> str:
        """The words in the spelling of the table."""
        return _spelling(self.words, table().spellings)


@cache
def table() -> Table:
    """Read the table. Raises ValueError for a name that stands in it twice with different meanings."""
    data = msgspec.json.decode(TABLE.read_bytes())
    spellings: Mapping[str, str] = data["spellings"]
    names: dict[str, Role | None] = {}
    for group in data["names"]:
        role = _role(group)
        for text in group["names"]:
            name = _spelling(text.split(" "), spellings)
            if name in names and names[name] != role:
                raise ValueError(f"roles.toml: {text!r} stands in two groups")
            names[name] = role
    names = {**_turned(names), **names}
    words = {
        key.removeprefix("words_of_"): frozenset(value)
        for key, value in data.items()
        if key.startswith("words_")
    }
    with_split = {text for group in data["names"] if group.get("with_split") for text in group["names"]}
    return Table(
        names=names,
        with_split=frozenset(with_split),
        held_out=words["held_out"],
        training=words["training"],
        at_an_end=words["words_at_an_end"],
        means=words["means"],
        places=words["places"],
        episodes=words["episodes"],
        running=words["running_means"],
        best=words["best"],
        sums=words["sums"],
        spread=words["spread"],
        agents=words["agents"],
        other_rewards=words["other_rewards"],
        members=words["members"],
        participants=words["participants"],
        classes=words["classes"],
        ranks=frozenset(data["names_of_ranks"]),
        similarities=words["similarities"],
        texts=words["texts"],
        companions=tuple(map(_companion, data["companions"])),
        spellings=spellings,
    )


def _companion(row: Mapping[str, Any]) -> Companion:
    return Companion(
        Signal(row["signal"]),
        frozenset(map(frozenset, row["words"])),
        frozenset(row["aside"]),
        row.get("writes", False),
    )


def _turned(names: Mapping[str, Role | None]) -> dict[str, Role | None]:
    """Return the names of losses with "loss" at the other end: `loss_recon` is `recon_loss`."""
    begin = {
        f"loss {name.removesuffix(' loss')}": role for name, role in names.items() if name.endswith(" loss")
    }
    end = {
        f"{name.removeprefix('loss ')} loss": role for name, role in names.items() if name.startswith("loss ")
    }
    return begin | end


def _role(group: Mapping[str, Any]) -> Role | None:
    if group["role"] == "none":
        return None
    kind = Kind(group["role"])
    default_measure = Measure.LOSS if kind is Kind.TRAINING_LOSS else Measure.OTHER
    return Role(
        kind,
        Measure(group.get("measure", default_measure)),
        Split.HELD_OUT if group.get("held_out") else Split.UNKNOWN,
        Direction(group.get("direction", Direction.UNKNOWN)),
        Unit(group.get("unit", Unit.OWN)),
        Source.NAME,
        "its name says so",
        rank=group.get("rank", MAIN_RANK),
    )


def words_of(tag: str) -> list[list[str]]:
    """Return the words of each part of a tag, in lower case."""
    parts = re.split(r"[/#|]|\.(?=[A-Za-z])", apart(in_english(tag)))
    return [[word.lower() for word in _TAG_WORD.findall(part)] for part in parts]


def _spelling(words: Sequence[str], spellings: Mapping[str, str]) -> str:
    return " ".join(spellings.get(word, word) for word in words)


@lru_cache(maxsize=1 << 12)
def companion_of(name: Reading) -> Companion | None:
    """Return the signal that a name has beside a reward; None if it has none."""
    words_table = table()
    aside = words_table.means | words_table.places
    words = frozenset(words_table.spellings.get(word, word) for word in name.words if word not in aside)
    return next((each for each in words_table.companions if words - each.aside in each.words), None)


@lru_cache(maxsize=1 << 14)
def reading(tag: str, part: str = "") -> Reading:
    """Return what a tag means. ``part`` is the part of the data that its directory states, if any."""
    words_table = table()
    parts = words_of(tag)
    split = _split(parts, words_table)
    if split is Split.UNKNOWN and part:
        split = _split([[part.lower()]], words_table)
    plain = [
        [word for index, word in enumerate(words) if not _tells_split(words, index, words_table)]
        for words in parts
    ]
    marks: set[Mark] = set()
    if any(word in words_table.means for words in plain for word in words):
        marks.add(Mark.MEAN)
    for words, new_marks in _steps([words for words in plain if words], words_table):
        name = _spelling(words, words_table.spellings)
        marks |= new_marks
        is_pairwise = name in _PAIRWISE
        if is_pairwise:
            marks.add(Mark.PAIRWISE)
            name = "accuracy"
        if name in words_table.names and (split is not Split.UNKNOWN or name not in words_table.with_split):
            role = words_table.names[name]
            if is_pairwise and split is Split.UNKNOWN:
                return Reading(_with_split(role, Split.TRAIN), True, split, tuple(words), frozenset(marks))
            if Mark.MEMBER in marks and role is not None and role.kind is Kind.TRAINING_LOSS:
                role = replace(role, kind=Kind.PART)
            return Reading(_with_split(role, split), True, split, tuple(words), frozenset(marks))
    flat = tuple(word for words in plain for word in words)
    return Reading(None, False, split, flat, frozenset(marks))


@lru_cache(maxsize=1 << 12)
def reading_of_a_file(name: str, part: str = "") -> Reading:
    """Return what the name of a file says of its only column, which has no name of its own.

    Words of the experiment may stand around those of the metric: "scores_dueling_doubleq". The longest part
    that the table knows as an outcome counts, if there is one.
    """
    words_table = table()
    all_words = [word for words in words_of(_HASH.sub(" ", name)) for word in words]
    split = _split([all_words], words_table)
    if split is Split.UNKNOWN and part:
        split = _split([[part.lower()]], words_table)
    aside = words_table.means | words_table.places | words_table.held_out | words_table.training
    words = [word for word in all_words if word not in aside]
    for length in range(len(words), 0, -1):
        spans = [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
        by_name = {_spelling(span, words_table.spellings): span for span in spans}
        in_table = {
            span: words_table.names[name] for name, span in by_name.items() if _is_telling(name, split)
        }
        outcomes = {
            span: role for span, role in in_table.items() if role is not None and role.is_outcome_like
        }
        if len({*outcomes.values()}) == 1:
            span, role = next(iter(outcomes.items()))
            return Reading(_with_split(role, split), True, split, span, frozenset())
        if None in in_table.values():
            break
    return reading(name, part)


def _is_telling(name: str, split: Split) -> bool:
    """Return whether the table knows a name that is more than single letters."""
    is_known = name in table().names and (split is not Split.UNKNOWN or name not in table().with_split)
    return is_known and max(map(len, name.split())) >= MIN_TELLING


def _with_split(role: Role | None, split: Split) -> Role | None:
    if role is None or split is Split.UNKNOWN:
        return role
    kind = role.kind
    if kind is Kind.TRAINING_LOSS and split is Split.HELD_OUT:
        kind = Kind.HELD_OUT_LOSS
    return replace(role, kind=kind, split=split)


def _tells_split(words: Sequence[str], index: int, words_table: Table) -> bool:
    word = words[index]
    if word in words_table.held_out or word in words_table.training:
        return True
    return word in words_table.at_an_end and index in (0, len(words) - 1)


def _split(parts: Sequence[Sequence[str]], words_table: Table) -> Split:
    """Return the split that a name tells. Held-out data win: "train/val_loss" is logged by a trainer."""
    splits = {
        Split.TRAIN if words[index] in words_table.training else Split.HELD_OUT
        for words in parts
        for index in range(len(words))
        if _tells_split(words, index, words_table)
    }
    return next((split for split in (Split.HELD_OUT, Split.TRAIN) if split in splits), Split.UNKNOWN)


def _steps(parts: Sequence[Sequence[str]], words_table: Table) -> Iterator[tuple[list[str], set[Mark]]]:
    """Yield shorter and shorter names, each with the marks of the words that it lost."""
    whole = [word for words in parts for word in words]
    yield whole, set()
    last = [*parts[-1]] if parts else []
    spread = any(word in words_table.spread for word in whole)
    if spread:
        return
    for words, marks in ((whole, set[Mark]()), (last, set[Mark]())):
        if words is last and (len(parts) < 2 or not _is_place(parts[:-1], words_table)):
            continue
        if words is last:
            yield words, marks
        means = [word for word in words if word not in words_table.means]
        yield means, marks
        named_words = [word for word in means if word not in words_table.places]
        yield named_words, marks
        rest, new_marks = _unmarked(named_words, words_table)
        if new_marks:
            yield rest, new_marks
        without_episodes = [
            word for word in rest if word not in words_table.episodes and not _is_window(rest, word)
        ]
        yield without_episodes, new_marks
        members = _without_member(without_episodes, words_table)
        of_similarity = _behind_a_similarity(without_episodes, words_table)
        if of_similarity:
            yield of_similarity, new_marks
        elif members != without_episodes:
            yield members, {*new_marks, Mark.MEMBER}


def _behind_a_similarity(words: Sequence[str], words_table: Table) -> list[str]:
    """Return the name of a metric that was measured by a similarity of embeddings, without that of the
    similarity and of the data; empty if the table knows none.

    Sentence-transformers has "cosine_accuracy@1", "eval_all-nli-dev_cosine_ap" and "sts-dev_pearson_cosine".
    """
    places = [at for at, word in enumerate(words) if word in words_table.similarities]
    if not places:
        return []
    behind = [*words[places[-1] + 1 :]]
    before = [*words[: places[0]]]
    candidates = [behind, behind[1:]] if behind else [before[-2:], before[-1:]]
    return next((name for name in candidates if _metric(name, words_table)), [])


def metric_at_the_end(name: Reading) -> Role | None:
    """Return the role of the metric with which a name ends that the table does not know, as that of
    "val_novel_acc" is the accuracy's; None if it ends with none, or does not measure the metric itself.
    """
    words = name.words
    if name.is_in_table or Mark.BEST in name.marks or not table().spread.isdisjoint(words):
        return None
    roles = (_metric(words[at:], table()) for at in range(1, len(words)))
    return next((_with_split(role, name.split) for role in roles if role is not None), None)


def _metric(words: Sequence[str], words_table: Table) -> Role | None:
    role = words_table.names.get(_spelling(words, words_table.spellings))
    return role if role is not None and role.kind is Kind.OUTCOME and role.measure is Measure.METRIC else None


def _is_place(parts: Sequence[Sequence[str]], words_table: Table) -> bool:
    """Return whether the groups before the last one only say where a number was measured."""
    allowed = (
        words_table.places
        | words_table.means
        | words_table.episodes
        | {"loss", "losses", "acc", "accuracy", "reward", "coco", "charts", "self", "play"}
    )
    return all(word in allowed for words in parts for word in words)


def _unmarked(words: Sequence[str], words_table: Table) -> tuple[list[str], set[Mark]]:
    marks = set()
    rest = []
    for word in words:
        if word in words_table.running:
            marks.add(Mark.RUNNING)
        elif word in words_table.best:
            marks.add(Mark.BEST)
        elif word in words_table.sums:
            marks.add(Mark.SUM)
        else:
            rest.append(word)
    return rest, marks


def _is_window(words: Sequence[str], word: str) -> bool:
    """Return whether a number tells over how many episodes a mean was taken: "mean 100 episode reward"."""
    return word.isdecimal() and len(word) > 1 and len(words) > 1 and words[-1] != word


def _without_member(words: Sequence[str], words_table: Table) -> list[str]:
    """Return the name without the number of an agent, a fold, a data set, or one of several losses."""
    rest = [word for word in words if not word.isdecimal()]
    if (
        len(rest) == len(words)
        or " ".join(rest) in words_table.ranks
        or any(word in words_table.classes for word in rest[:-1])
    ):
        return [*words]
    return [word for word in rest if word not in words_table.members]
