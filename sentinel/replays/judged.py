"""One run with what was found in it, as reports get it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sentinel.comparison.means import Means
from sentinel.detectors.api import Detector
from sentinel.detectors.run_checks import AmongSiblings, RunCheck
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Change, Incident
from sentinel.notifications.routing import Outcome
from sentinel.replays.coverage import held_back
from sentinel.run_pipeline import Advance, Tracker
from sentinel.runs.log import RunOverview
from sentinel.series.curves import Curves
from sentinel.sources.base import Complaint


@dataclass
class JudgedRun:
    """A run that was read, and what was found in it: by a replay, or by the watch that follows the run."""

    tracker: Tracker
    incidents: dict[str, Incident] = field(default_factory=dict)  # by id, in the order of firing
    changes: list[Change] = field(default_factory=list)
    told: dict[str, list[Outcome]] = field(default_factory=dict)  # by incident id; without reminders
    complaints: list[Complaint] = field(default_factory=list)
    failure: str | None = None
    curves: Curves | None = None  # if they are wanted
    means: Means | None = None  # if the run is to be compared with others
    among: AmongSiblings | None = None  # if it was compared with its siblings
    looked: Counter[tuple[str, str]] = field(default_factory=Counter)  # see `Detection`

    @property
    def stopped(self) -> str | None:
        """Why the run was not judged to its end; None if it was."""
        return self.failure or self.tracker.log.stopped

    @property
    def seen(self) -> RunOverview:
        """What reports show of it."""
        return replace(self.tracker.log.overview(), stopped=self.stopped)

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
        """Add what one poll or the end of the log brought."""
        chunks = [*advance.absorbed.chunks, *advance.absorbed.rest]
        if self.curves is not None:
            self.curves.add(chunks)
        if self.means is not None:
            self.means.add(chunks)
        for chunk in advance.absorbed.rest:
            self.tracker.log.facts.count(chunk)
        self.complaints += advance.absorbed.complaints
        self.failure = advance.failure
        self.changes += advance.changes
        self.incidents |= {change.incident.id: change.incident for change in advance.changes}
        self.looked.update(advance.looked)

    @property
    def lacking(self) -> dict[str, list[str]]:
        """The signals that each detector lacks; none for those that can judge the run."""
        log = self.tracker.log
        signals = log.understanding().signals
        no_clock = log.no_clock
        detectors = self.tracker.book.detectors
        return {name: detector.demand.missing(signals, no_clock) for name, detector in detectors.items()}

    def held_back(self, lacking: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
        """Why detectors judged no row of signals that the run logs; see `coverage.held_back`.

        ``lacking`` is the run's own.

        A detector that asks for no signal judges what only trouble brings, so it misses nothing. A check that
        was counted asks for other runs.
        """
        able = [self.tracker.book.detectors[name] for name, missing in lacking.items() if not missing]
        rules = [rule for rule in able if isinstance(rule, Detector) and rule.demand.judges]
        counted = {rule for rule, _ in self.looked if isinstance(self.tracker.book.detectors[rule], RunCheck)}
        return held_back(self.looked, [*(rule.name for rule in rules), *counted])
