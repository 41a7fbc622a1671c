"""Holds the runs of an archive against their siblings from what is kept of them, as one replay does."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial

import msgspec
import polars as pl

from sentinel.archives.comparing import StoredCourses, packed_courses
from sentinel.archives.index import Contents
from sentinel.archives.record import Glance, Record, SiblingRecord
from sentinel.common.fault_isolation import Guard
from sentinel.comparison.band import MIN_SIBLINGS
from sentinel.comparison.fingerprint import Fingerprint
from sentinel.comparison.siblings import (
    MAX_SETTINGS,
    WORSE,
    Near,
    Sibling,
    among_siblings,
    near,
    representatives,
)
from sentinel.config.file import Config
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.incidents.incident import Change
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.pipeline import Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.replays.siblings import sibling
from sentinel.series.plan import KnownOfRun

_MAX_PROGRAMS_AT_ONCE = 64  # that are compared at once
_MAX_SHARED_SETTINGS = 100_000  # some 20 MB


def sibling_record(run: JudgedRun) -> SiblingRecord | None:
    """Return what `beside_siblings` needs of a run; None if it cannot have siblings."""
    if run.means is None:
        return None
    candidate = sibling(run, run.means, run.run_pipeline.id)
    if not candidate.fingerprint.tells_enough:
        return None
    settings = msgspec.msgpack.encode(sorted(candidate.fingerprint.settings))
    tags = [tag for signal in WORSE for tag in candidate.tags(signal)]
    return SiblingRecord(settings, candidate.healthy, packed_courses(run.means, tags))


def beside_siblings(contents: Contents) -> dict[int, Sequence[Change]]:
    """Return what happened in runs beside their siblings, by the number of each run that has enough of them.

    Runs of some programs are compared at a time, so that memory holds the courses of few.
    """
    settings = contents.results.sibling_rule()
    if settings is None:
        return {}
    config = Config.model_validate({"detectors": {RULE: settings}})
    rules = [detector for detector in config.enabled_detectors if detector.name == RULE]
    if not rules:
        return {}
    rule = _SiblingRule(Pipeline(rules, config.parameters, {}), config)
    runs = contents.rows.with_row_index("run").filter(pl.col("program").is_not_null())
    stored = _StoredSiblings(contents)
    healthy = near(stored.healthy(runs.filter("healthy")))
    programs = runs["program"].unique(maintain_order=True)
    changes: dict[int, Sequence[Change]] = {}
    for first_program in range(0, len(programs), _MAX_PROGRAMS_AT_ONCE):
        chunk = programs[first_program : first_program + _MAX_PROGRAMS_AT_ONCE]
        changes |= _changes_beside_siblings(
            stored, rule, healthy, runs.filter(pl.col("program").is_in(chunk.implode()))
        )
    return changes


def with_siblings(archived: Record, changes: Sequence[Change]) -> Record:
    """Return the record of a run with what happened in it beside its siblings."""
    return msgspec.structs.replace(
        archived,
        incidents=[*archived.incidents, *(change.incident for change in changes)],
        changes=[*archived.changes, *changes],
        skipped={name: why for name, why in archived.skipped.items() if name != RULE},
    )


def _changes_beside_siblings(
    stored: "_StoredSiblings", rule: "_SiblingRule", healthy: Near, runs: pl.DataFrame
) -> Iterator[tuple[int, Sequence[Change]]]:
    siblings_of: dict[int, Sequence[Sibling]] = {}  # by program
    for run_number, program in runs.select("run", "program").iter_rows():
        if program in siblings_of and len(siblings_of[program]) < MIN_SIBLINGS:
            continue
        candidate, run = stored.sibling(run_number)
        siblings_of[program] = healthy(candidate.fingerprint)
        if (changes := rule.changes(run, candidate, siblings_of[program])) is not None:
            yield run_number, changes
    for siblings in siblings_of.values():
        for member in siblings:
            member.forget()


class _StoredSiblings:
    """The runs of an archive as siblings. What many have in common is kept once."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._trainings = contents.trainings()

    def healthy(self, runs: pl.DataFrame) -> dict[Fingerprint, list[Sibling]]:
        """Return the healthy ones of these runs with which others are compared; see `representatives`."""
        by_program: dict[int, list[int]] = {}
        for number, program in runs.select("run", "program").iter_rows():
            by_program.setdefault(program, []).append(number)
        chosen = representatives(by_program, self._trainings.__getitem__)
        in_order = sorted(number for numbers in chosen.values() for number in numbers)  # as they lie on disk
        siblings = {number: self.sibling(number)[0] for number in in_order}
        groups = ([siblings[number] for number in numbers] for numbers in chosen.values())
        return {runs_of_one[0].fingerprint: runs_of_one for runs_of_one in groups}

    def sibling(self, run_number: int) -> tuple[Sibling, Glance]:
        """Return a run that can have siblings, and what its record says of it."""
        run = self._contents.glance(run_number)
        if (archived := run.sibling) is None:
            raise ValueError(f"{run.path}: can have no siblings")
        understanding = run.judged.understanding
        sibling_result = Sibling(
            name=run.name,
            training=str(self._trainings[run_number]),
            fingerprint=_run_fingerprint(
                understanding.framework, frozenset(understanding.tags), archived.settings
            ),
            signals=_signals(msgspec.msgpack.encode(understanding.signals)),
            means=StoredCourses(lambda: archived.courses),
            plan=run.described.planned_steps,
            last_step=run.judged.metadata.last_step or 0,
            healthy=archived.healthy,
        )
        return sibling_result, run


@lru_cache(MAX_SETTINGS)
def _run_fingerprint(framework: str | None, tags: frozenset[str], settings: bytes) -> Fingerprint:
    return Fingerprint(framework, tags, frozenset(map(_interned_setting, _SETTINGS_DECODER.decode(settings))))


@lru_cache(_MAX_SHARED_SETTINGS)
def _interned_setting(setting_item: tuple[str, str]) -> tuple[str, str]:
    """Return the same object for equal settings, which makes comparing many of them faster."""
    return setting_item


@lru_cache(MAX_SETTINGS)
def _signals(packed: bytes) -> Mapping[str, Sequence[str]]:
    return _SIGNALS.decode(packed)


class _SiblingRule(msgspec.Struct, frozen=True):
    """The rule, as the archive was judged with it."""

    pipeline: Pipeline
    config: Config

    def changes(self, run: Glance, candidate: Sibling, healthy: Sequence[Sibling]) -> Sequence[Change] | None:
        """Return what happened in a run beside the healthy runs of its program; None if they are too few."""
        guard = Guard()
        comparison = guard(run, "siblings", partial(among_siblings, candidate, healthy))
        if comparison is None:
            return None
        verdicts = self.pipeline.checking.beside(
            RULE, run.id, run.judged.metadata, KnownOfRun(()), comparison
        )
        # The rule explains nothing and nothing explains it, so it does not matter what else was open.
        tracker = IncidentTracker(run.id, self.pipeline.detectors, self.config.parameters)
        return guard(run, "siblings", partial(tracker.advance, verdicts)) or ()


_SETTINGS_DECODER = msgspec.msgpack.Decoder(list[tuple[str, str]])
_SIGNALS = msgspec.msgpack.Decoder(dict[str, list[str]])
