"""Runs that were read to their end and judged, as reports get them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sentinel.alerts.incident import Change, Incident
from sentinel.alerts.outcomes import Outcome
from sentinel.comparison.means import Means
from sentinel.detectors.api import Detector
from sentinel.detectors.severity import Severity
from sentinel.frames.curves import Curves
from sentinel.judging.tracking import Tracker
from sentinel.pipeline import Advance, Pipeline
from sentinel.replays.coverage import Coverage, held_back
from sentinel.runs.same_training import trainings_of
from sentinel.sources.base import Complaint

if TYPE_CHECKING:
    from sentinel.comparison.measures import Comparison


@dataclass
class ReplayedRun:
    """A run read to its end."""

    tracker: Tracker
    incidents: dict[str, Incident] = field(default_factory=dict)  # by id, in the order of firing
    changes: list[Change] = field(default_factory=list)
    told: dict[str, list[Outcome]] = field(default_factory=dict)  # by incident id; without reminders
    complaints: list[Complaint] = field(default_factory=list)
    failure: str | None = None
    curves: Curves | None = None  # if they are wanted
    means: Means | None = None  # if the runs are to be compared
    looked: Counter[tuple[str, str]] = field(default_factory=Counter)  # see `Detection`

    @property
    def stopped(self) -> str | None:
        """Why the run was not judged to its end; None if it was."""
        return self.failure or self.tracker.log.stopped

    @property
    def unread(self) -> bool:
        """Whether nothing of the run could be read."""
        broken = self.stopped is not None or (bool(self.complaints) and not self.incidents)
        return broken and not self.tracker.log.facts.points

    @property
    def own(self) -> list[Incident]:
        """The incidents that no other one explains."""
        return [incident for incident in self.incidents.values() if incident.inhibited_by is None]

    @property
    def worst(self) -> Severity:
        """The severity of the worst of its own incidents."""
        return max((incident.severity for incident in self.own), default=Severity.CLEAN)

    def add(self, advance: Advance) -> None:
        """Add what one poll brought."""
        if self.curves is not None:
            self.curves.add(advance.absorbed.chunks)
        if self.means is not None:
            self.means.add(advance.absorbed.chunks)
        self.complaints += advance.absorbed.complaints
        self.failure = advance.failure
        self.changes += advance.changes
        self.incidents |= {change.incident.id: change.incident for change in advance.changes}
        self.looked.update(advance.looked)


@dataclass(frozen=True)
class Replay:
    """Runs that were read to their end, and complaints about what could not be read.

    The runs are all runs under the paths, sorted by path, or the next of them; see
    `replaying.replay_in_parts`. ``selection`` says which incidents these are, if not all: "kl-blowup since
    step 400".
    """

    runs: Sequence[ReplayedRun]
    complaints: Sequence[Complaint]
    pipeline: Pipeline
    coverage: Coverage
    selection: str = ""
    comparisons: Sequence["Comparison"] = ()

    @cached_property
    def trainings(self) -> dict[str, str]:
        """By the id of each run, that of the first log of its training."""
        return trainings_of({run.tracker.id: run.tracker.log.facts for run in self.runs})

    def lacking(self, run: ReplayedRun) -> dict[str, list[str]]:
        """The signals that each detector lacks in a run; none for those that can judge it."""
        return lacking_signals(self.pipeline, run)

    def held_back(self, run: ReplayedRun) -> dict[str, dict[str, int]]:
        """Why detectors judged no row of a run that logs their signals; see `coverage.held_back`."""
        able = [name for name, missing in self.lacking(run).items() if not missing]
        return held_back(run.looked, [n for n in able if isinstance(self.pipeline.detectors[n], Detector)])


def lacking_signals(pipeline: Pipeline, run: ReplayedRun) -> dict[str, list[str]]:
    """The signals that each detector lacks in a run; none for those that can judge it."""
    log = run.tracker.log
    signals = log.understanding().signals
    return {name: one.demand.missing(signals, log.no_clock) for name, one in pipeline.detectors.items()}
