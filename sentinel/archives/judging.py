"""Judges one part of an archive, in whatever process or machine."""

from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from sentinel.archives.parts import Part
from sentinel.archives.record import Record, packed_record
from sentinel.config.file import Config
from sentinel.judging.joining import how_informed
from sentinel.pipeline import Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replaying import judged
from sentinel.runs.checks import checks
from sentinel.runs.same_training import trace_of
from sentinel.runs.standings import observe


@dataclass
class Judge:
    """Judges parts with one configuration at one time of day. It can be pickled."""

    config: Config
    now: float

    def __call__(self, part: Part) -> list[bytes]:
        """The packed records of the runs in which there is anything."""
        runs = judged(self._pipeline, part.runs)
        return [packed_record(self._record(run)) for run in runs]

    @cached_property
    def _pipeline(self) -> Pipeline:
        return Pipeline(self.config.enabled_detectors, self.config.parameters, self.config.signals)

    def __getstate__(self) -> tuple[Config, float]:
        return self.config, self.now

    def __setstate__(self, state: tuple[Config, float]) -> None:
        self.config, self.now = state

    def _record(self, run: JudgedRun) -> Record:
        log = run.tracker.log
        seen = observe(log, True, self.now)
        facts = msgspec.structs.replace(seen.run.facts, config={}, plan={})
        return Record(
            name=log.name,
            path=str(log.run.path),
            format=log.run.format,
            seen=replace(seen.run, facts=facts, stopped=run.stopped),
            silent_seconds=seen.silent_seconds,
            described=run.tracker.described(),
            trace=trace_of(run.tracker.id, log.facts),
            informed=how_informed(log),
            incidents=[*run.incidents.values()],
            changes=run.changes,
            lacking=run.lacking,
            held_back=run.held_back,
            checks=checks(log),
            complaints=[str(complaint) for complaint in run.complaints],
        )
