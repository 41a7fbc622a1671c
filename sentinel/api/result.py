"""The result of a replay for programs: plain data, frames, and every layout of the report."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from sentinel.common.run_glob import fits, run_glob
from sentinel.detectors.severity import Severity, SeverityName
from sentinel.replays.replay import Replay
from sentinel.report import json as json_report
from sentinel.report.incident_model import IncidentReport
from sentinel.report.json import ReplayBody
from sentinel.report.model import ReplayReport, RunReport, replay_report
from sentinel.report.selection import Order

if TYPE_CHECKING:
    import polars as pl

_FRAME = (
    '<iframe title="Report of sentinel" sandbox="allow-scripts" srcdoc="{}" '
    'style="width:100%;height:40rem;border:0"></iframe>'
)
"""The page within a notebook. The sandbox keeps it from the notebook's page, its cookies and its origin."""


@dataclass(frozen=True)
class Report:
    """What a replay found. The data classes of `story` are those that every layout of the report shows."""

    _replay: Replay = field(repr=False)
    _order: Order = field(repr=False)
    _now: float = field(repr=False)  # seconds since the epoch; the states of runs depend on it

    @cached_property
    def story(self) -> ReplayReport:
        """All that the report tells, as plain data. Every text in it is safe to show."""
        return replay_report([self._replay], self._now, self._order)

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or two."""
        return self.story.verdict

    @property
    def coverage(self) -> str:
        """How many logs were read and how many not, and how many of all detectors could judge them."""
        return self.story.coverage

    @property
    def runs(self) -> Sequence[RunReport]:
        """The runs, in the order that was asked for."""
        return self.story.runs

    @property
    def incidents(self) -> Sequence[IncidentReport]:
        """The incidents of all runs that no other incident explains, the worst first."""
        roots = [incident for run in self.runs for incident in run.incidents if not incident.explained_by]
        return sorted(roots, key=lambda incident: -incident.severity)

    def is_healthy(self, below: SeverityName = "warning") -> bool:
        """Return whether every run was judged to its end and every incident is less severe than ``below``."""
        covered = self._replay.coverage
        worst = max((run.worst for run in self._replay.runs), default=Severity.CLEAN)
        return not covered.cut and not covered.unread and worst < Severity.named(below)

    def points(self, run: str = "*") -> "pl.DataFrame":
        """Read the points of the runs that a glob fits, as logged, in the order of the log.

        The columns are ``run``, ``stream`` (the writer), ``tag``, ``signal`` (what the tag means; null if
        nothing is known), ``step``, ``time`` (UTC; null where the log has none) and ``value``.
        """
        from sentinel.api.points import points

        pattern = run_glob(run)
        logs = [replayed.run_pipeline.log for replayed in self._replay.runs]
        return points(log for log in logs if fits(pattern, log.name, str(log.run.path)))

    def to_dict(self) -> ReplayBody:
        """Return the object that `sentinel replay --format json` prints."""
        return json_report.document(self._replay, self._now)

    def to_html(self) -> str:
        """Return the page that `sentinel replay --format html` writes."""
        from sentinel.report import html

        return html.render(self.story)

    def to_markdown(self) -> str:
        """Return the text that `sentinel replay --format markdown` writes."""
        from sentinel.report import markdown

        return markdown.render(self.story)

    def __str__(self) -> str:
        """Return the report for a terminal, without colours."""
        from sentinel.report.terminal import show

        out = io.StringIO()
        show(self._replay, out)
        return out.getvalue()

    def __repr__(self) -> str:
        return f"<Report: {self.verdict}>"

    def _repr_html_(self) -> str:
        """Return the page, for a notebook."""
        return _FRAME.format(escape(self.to_html()))
