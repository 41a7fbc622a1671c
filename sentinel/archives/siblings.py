"""Holds the runs of an archive against their siblings from what is kept of them, as one replay does."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from sentinel.alerts.incident import Change
from sentinel.alerts.lifecycle import Book
from sentinel.archives.comparing import KeptCourses, kept_courses
from sentinel.archives.record import Record, SiblingRecord
from sentinel.comparison.fingerprint import Fingerprint
from sentinel.comparison.siblings import WORSE, Sibling, among_siblings, healthy_siblings
from sentinel.config.file import Config
from sentinel.frames.plan import KnownOfRun
from sentinel.ground.guard import Guard
from sentinel.pipeline import Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.replays.siblings import RULE, sibling
from sentinel.runs.same_training import trainings

if TYPE_CHECKING:
    from sentinel.archives.results import Results


def sibling_record(run: JudgedRun) -> SiblingRecord | None:
    """What `with_siblings` needs of a run; None if it cannot have siblings."""
    if run.means is None:
        return None
    own = sibling(run, run.means, run.tracker.id)
    if not own.fingerprint.tells_enough:
        return None
    settings = msgspec.msgpack.encode(sorted(own.fingerprint.settings))
    tags = [tag for signal in WORSE for tag in own.tags(signal)]
    return SiblingRecord(settings, own.healthy, kept_courses(run.means, tags))


def with_siblings(records: Sequence[Record], results: "Results") -> list[Record]:
    """The records, in their order, with what their siblings say of them.

    Runs of one program are compared one after the other, so that memory holds the courses of few.
    """
    settings = results.sibling_rule()
    if settings is None:
        return [*records]
    config = Config.model_validate({"detectors": {RULE: settings}})
    rules = [one for one in config.enabled_detectors if one.name == RULE]
    siblings = _siblings(records, results) if rules else {}
    rule = _SiblingRule(Pipeline(rules, config.parameters, {}), config)
    healthy = healthy_siblings(siblings.values())
    by_program: dict[Fingerprint, list[int]] = defaultdict(list)
    for number, own in siblings.items():
        by_program[own.fingerprint].append(number)
    found = [*records]
    for program, numbers in by_program.items():
        near = healthy(program)
        for number in numbers:
            found[number] = rule.beside(records[number], siblings[number], near)
            siblings[number].forget()
        for one in near:
            one.forget()
    return found


def _siblings(records: Sequence[Record], results: "Results") -> dict[int, Sibling]:
    """The runs that can have siblings, by their places among the records."""
    judged = [record for record in records if record.seen is not None]
    training_of = trainings({record.id: record.of_training for record in judged})
    programs: dict[tuple[str | None, frozenset[str], bytes], Fingerprint] = {}
    stated: dict[tuple[str, str], tuple[str, str]] = {}  # each setting once, as many runs share it
    siblings = {}
    for number, record in enumerate(records):
        if record.seen is None or (told := record.sibling) is None:
            continue
        read = record.seen.understanding
        key = (read.framework, frozenset(read.tags), told.settings)
        if key not in programs:
            settings = (stated.setdefault(one, one) for one in _SETTINGS.decode(told.settings))
            programs[key] = Fingerprint(*key[:2], frozenset(settings))
        siblings[number] = Sibling(
            name=record.name,
            training=training_of[record.id],
            fingerprint=programs[key],
            signals=read.signals,
            means=KeptCourses(results, record.id),
            plan=record.described.planned_steps,
            last_step=record.seen.facts.last_step or 0,
            healthy=told.healthy,
        )
    return siblings


@dataclass(frozen=True)
class _SiblingRule:
    """The rule, as the archive was judged with it."""

    pipeline: Pipeline
    config: Config

    def beside(self, record: Record, own: Sibling, near: Sequence[Sibling]) -> Record:
        """The record of a run with what it is beside the healthy runs of its program."""
        guard = Guard()
        found = guard(record, "siblings", partial(among_siblings, own, near))
        if found is None or record.seen is None:
            return record
        said = self.pipeline.checking.beside(RULE, record.id, record.seen.facts, KnownOfRun(()), found)
        # The rule explains nothing and nothing explains it, so it does not matter what else was open.
        book = Book(record.id, self.pipeline.detectors, self.config.parameters)
        changes: Sequence[Change] = guard(record, "siblings", partial(book.advance, said)) or ()
        return msgspec.structs.replace(
            record,
            incidents=[*record.incidents, *(change.incident for change in changes)],
            changes=[*record.changes, *changes],
            held_back={name: why for name, why in record.held_back.items() if name != RULE},
        )


_SETTINGS = msgspec.msgpack.Decoder(list[tuple[str, str]])
