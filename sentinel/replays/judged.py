"""One run with its incidents, as reports get it."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from sentinel.comparison.means import Means
from sentinel.detectors.api import Detector
from sentinel.detectors.run_checks import RunCheck, SiblingComparison
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Change, Incident
from sentinel.notifications.routing import SinkDecision
from sentinel.replays.coverage import skipped
from sentinel.run_pipeline import Advance, RunPipeline
from sentinel.runs.log import RunOverview
from sentinel.series.curves import Curves
from sentinel.sources.base import ReadIssue


class JudgedRun(msgspec.Struct):
    """A run that was read, and what was found in it: by a replay, or by the watch that follows the run."""

    run_pipeline: RunPipeline
    incidents: dict[str, Incident] = msgspec.field(default_factory=dict)  # by id, in the order of firing
    changes: list[Change] = msgspec.field(default_factory=list)
    notifications: dict[str, list[SinkDecision]] = msgspec.field(default_factory=dict)
    """By incident id, without reminders."""
    read_issues: list[ReadIssue] = msgspec.field(default_factory=list)
    failure: str | None = None
    curves: Curves | None = None  # if they are wanted
    means: Means | None = None  # if the run is to be compared with others
    among: SiblingComparison | None = None  # if it was compared with its siblings
    row_counts: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)  # see `RowDetection`

    @property
    def stopped(self) -> str | None:
        """Why the run was not judged to its end; None if it was."""
        return self.failure or self.run_pipeline.log.stopped

    @property
    def seen(self) -> RunOverview:
        """What reports show of it."""
        return replace(self.run_pipeline.log.overview(), stopped=self.stopped)

    @property
    def unread(self) -> bool:
        """Whether nothing of the run could be read."""
        broken = self.stopped is not None or (bool(self.read_issues) and not self.incidents)
        return broken and not self.run_pipeline.log.metadata.points

    @property
    def own(self) -> list[Incident]:
        """The incidents that no other one explains."""
        return [incident for incident in self.incidents.values() if incident.inhibited_by is None]

    @property
    def worst(self) -> Severity:
        """The severity of the worst of its own incidents."""
        return max((incident.severity for incident in self.own), default=Severity.CLEAN)

    def add(self, advance: Advance) -> None:
        """Add what one poll or the end of the log brought."""
        chunks = [*advance.ingested.chunks, *advance.ingested.flushed]
        if self.curves is not None:
            self.curves.add(chunks)
        if self.means is not None:
            self.means.add(chunks)
        for chunk in advance.ingested.flushed:
            self.run_pipeline.log.metadata.count(chunk)
        self.read_issues += advance.ingested.read_issues
        self.failure = advance.failure
        self.changes += advance.changes
        self.incidents |= {change.incident.id: change.incident for change in advance.changes}
        self.row_counts.update(advance.row_counts)

    @property
    def lacking(self) -> dict[str, list[str]]:
        """The signals that each detector lacks; none for those that can judge the run."""
        log = self.run_pipeline.log
        signals = log.understanding().signals
        no_clock = log.no_clock
        detectors = self.run_pipeline.incidents.detectors
        return {name: detector.demand.missing(signals, no_clock) for name, detector in detectors.items()}

    def skipped(self, lacking: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
        """Return why detectors judged no row of signals that the run logs; see `coverage.skipped`.

        ``lacking`` is what the property of this name gives. A detector that judges no signal waits for what
        only a problem brings, so it skips nothing. A run check that has counts needs other runs.
        """
        detectors = self.run_pipeline.incidents.detectors
        able = [detectors[name] for name, missing in lacking.items() if not missing]
        rules = [rule.name for rule in able if isinstance(rule, Detector) and rule.demand.judges]
        checks = {name for name, _ in self.row_counts if isinstance(detectors[name], RunCheck)}
        return skipped(self.row_counts, [*rules, *checks])
