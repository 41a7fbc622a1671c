"""The JSON forms of what agents are answered."""

from typing import Literal

from typing_extensions import TypedDict

from sentinel.report.run_body import RunBody
from sentinel.report.status_body import LocatedIncidentBody


class AgentRunBody(RunBody):
    """A run, and how many incidents of it, which no other one explains, were found or are open in a watch."""

    incidents: int


class RunsBody(TypedDict):
    """The answer of `list_runs`. ``left_off`` counts the runs that it does not hold."""

    schema: Literal[1]
    runs: list[AgentRunBody]
    left_off: int


class IncidentsBody(TypedDict):
    """The answer of `list_incidents`. ``left_off`` counts the incidents that it does not hold."""

    schema: Literal[1]
    incidents: list[LocatedIncidentBody]
    left_off: int
