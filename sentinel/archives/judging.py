"""Judges one part of an archive, in whatever process or machine."""

from collections.abc import Iterator
from functools import cached_property

import msgspec
from msgspec.structs import replace

from sentinel.archives.comparing import comparable
from sentinel.archives.origin import ArchiveSource
from sentinel.archives.parts import Part, RunName
from sentinel.archives.record import Record, packed_record
from sentinel.archives.siblings import sibling_record
from sentinel.config.file import Config
from sentinel.detection.duplicates import how_informed
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.detectors.skip_reason import SkipReason
from sentinel.pipeline import Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replaying import judged
from sentinel.runs.advisories import advisories
from sentinel.runs.continuations import observe
from sentinel.runs.training_groups import trace_of

_MAX_JUDGED_RUNS = 192  # at once, so that memory does not grow with the size of a directory


class Judge(msgspec.Struct, dict=True):
    """What judges parts with one configuration at one time of day. It can be pickled.

    With ``compare``, records keep what a comparison of runs needs.
    """

    origin: ArchiveSource
    config: Config
    now: float
    compare: bool = False

    def __call__(self, part: Part) -> list[bytes]:
        """Return the packed records of the runs in which there is anything.

        Raises SentinelError with a reason.
        """
        return [packed_record(record) for record in self._records(part)]

    def names(self, part: Part) -> list[bytes]:
        """Return the packed names of the runs of a part, each a `RunName`."""
        with self.origin.opened(part, self.config.forms) as opened:
            return [msgspec.msgpack.encode(RunName(run.id, name)) for run, name in opened.runs]

    def _records(self, part: Part) -> Iterator[Record]:
        only = {run.id for run in part.only}
        with self.origin.opened(part, self.config.forms) as opened:
            runs = [run for run in opened.runs if not only or run[0].id in only]
            for first_run in range(0, len(runs), _MAX_JUDGED_RUNS):
                group = runs[first_run : first_run + _MAX_JUDGED_RUNS]
                yield from map(self._archived_run, judged(self._pipeline, group, means=self._keeps_courses))
        for issue in opened.read_issues:
            yield Record(str(issue.path), str(issue.path), "", failure=issue.problem)

    @property
    def _keeps_courses(self) -> bool:
        return self.compare or RULE in self._pipeline.detectors

    @cached_property
    def _pipeline(self) -> Pipeline:
        return Pipeline(self.config.enabled_detectors, self.config.parameters, self.config.signals)

    def __getstate__(self) -> tuple[ArchiveSource, Config, float, bool]:
        return self.origin, self.config, self.now, self.compare

    def __setstate__(self, judge_state: tuple[ArchiveSource, Config, float, bool]) -> None:
        self.origin, self.config, self.now, self.compare = judge_state

    def _archived_run(self, run: JudgedRun) -> Record:
        log = run.run_pipeline.log
        lacking = run.lacking
        sibling_part = None
        if RULE in self._pipeline.detectors:  # a part does not know which other runs there are
            run.row_counts[RULE, SkipReason.NO_SIBLINGS.value] += 1
            sibling_part = sibling_record(run)
        observation = observe(log, True, self.now)
        metadata = msgspec.structs.replace(observation.run.metadata, config={}, plan={})
        return Record(
            name=log.name,
            path=str(log.run.path),
            format=log.run.format,
            overview=replace(observation.run, metadata=metadata, stopped=run.stopped),
            silent_seconds=observation.silent_seconds,
            described=run.run_pipeline.described(),
            trace=trace_of(run.run_pipeline.id, log.metadata),
            informed=how_informed(log),
            incidents=[*run.incidents.values()],
            changes=run.changes,
            lacking=lacking,
            skipped=run.skipped(lacking),
            advisories=advisories(log),
            read_issues=[str(issue) for issue in run.read_issues],
            comparable=comparable(run) if self.compare else None,
            sibling=sibling_part,
        )
