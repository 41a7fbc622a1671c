"""The rows of an archive's tables; deploy/schema/archive.json has their columns."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import polars as pl
from typing_extensions import TypedDict

from sentinel.archives.record import Record
from sentinel.archives.slurm_accounting import Owners
from sentinel.incidents.incident import Incident
from sentinel.incidents.json_body import utc_text
from sentinel.runs.continuations import Observation, statuses

# What follows is a type in the schema and a type of polars. Times are ISO 8601 in UTC.
_Text = Annotated[str | None, pl.String]
_Count = Annotated[int | None, pl.Int64]
_Seconds = Annotated[float | None, pl.Float64]


class RunColumns(TypedDict):
    """A run that was judged, or what could not be.

    ``gpus_from`` is `owners` or `log`. ``state`` is what the run's own log tells; `sentinel archive report`
    also knows which run continues which. ``fingerprint`` is another one after each change of what was judged
    together with the run. ``failure`` says why the run was not judged to its end.
    """

    run: _Text
    path: _Text
    source: _Text
    framework: _Text
    user: _Text
    project: _Text
    began: _Text
    ended: _Text
    gpus: _Seconds
    gpus_from: _Text
    state: _Text
    points: _Count
    last_step: _Count
    incidents: _Count
    worst: _Text
    failure: _Text
    fingerprint: _Text
    version: _Text


class IncidentColumns(TypedDict):
    """An incident. ``seconds_lost`` went by from its onset to the last point of the run."""

    run: _Text
    path: _Text
    id: _Text
    detector: _Text
    severity: _Text
    maturity: _Text
    signal: _Text
    state: _Text
    onset_step: _Count
    onset_time: _Text
    fired_step: _Count
    fired_time: _Text
    last_step: _Count
    seconds_lost: _Seconds
    causes: Annotated[list[str], pl.List(pl.String)]
    inhibited_by: _Text
    summary: _Text


def columns(row: type) -> Mapping[str, type[pl.DataType] | pl.DataType]:
    """Return the columns of a table by name, with their types in polars."""
    return {name: hint.__metadata__[0] for name, hint in row.__annotations__.items()}


def run_row(archived: Record, fingerprint: str, owners: Owners) -> RunColumns:
    overview = archived.overview
    metadata = overview.metadata if overview else None
    began, ended = (metadata.first_time, metadata.last_time) if metadata else (None, None)
    owner = owners.owner(archived.path, began)
    gpus = owner.gpus if owner.gpus is not None else archived.described.world_size
    worst = max(
        (incident.severity for incident in archived.incidents if incident.inhibited_by is None), default=None
    )
    status = (
        statuses([Observation(overview, True, archived.silent_seconds, archived.training_evidence)])[0]
        if overview
        else None
    )
    return {
        "run": archived.name,
        "path": archived.path,
        "source": archived.format,
        "framework": overview.understanding.framework if overview else None,
        "user": owner.user or _owner(archived.path),
        "project": owner.project,
        "began": utc_text(began),
        "ended": utc_text(ended),
        "gpus": gpus,
        "gpus_from": None if gpus is None else "log" if owner.gpus is None else "owners",
        "state": status.state.value if status else None,
        "points": metadata.points if metadata else 0,
        "last_step": metadata.last_step if metadata else None,
        "incidents": len(archived.incidents),
        "worst": worst.label if worst is not None else None,
        "failure": archived.failure or (overview.stopped if overview else None),
        "fingerprint": fingerprint,
        "version": _version(),
    }


def incident_row(archived: Record, incident: Incident) -> IncidentColumns:
    return {
        "run": archived.name,
        "path": archived.path,
        "id": incident.id,
        "detector": incident.detector,
        "severity": incident.severity.label,
        "maturity": incident.maturity.value,
        "signal": incident.signal,
        "state": incident.state.value,
        "onset_step": incident.onset_step,
        "onset_time": utc_text(incident.onset_time),
        "fired_step": incident.fired_step,
        "fired_time": utc_text(incident.fired_time),
        "last_step": incident.last_step,
        "seconds_lost": archived.seconds_after(incident),
        "causes": list(incident.catalogue),
        "inhibited_by": incident.inhibited_by,
        "summary": incident.summary,
    }


@cache
def _version() -> str:
    """Return the version of this program. Python reads it from a file at each call."""
    return version("training-sentinel")


def _owner(path: str) -> str | None:
    """Return the user to whom a log belongs, if it lies on this machine."""
    try:
        return Path(path).owner()
    except (OSError, KeyError, NotImplementedError):
        return None
