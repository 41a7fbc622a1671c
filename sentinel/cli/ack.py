"""`sentinel ack` and `sentinel feedback`: what a person says of one incident."""

from typing import Annotated, Literal

import typer

from sentinel.cli.options import ConfigFile, StateDir, recorded
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError, did_you_mean

_Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the incident, or its beginning, from `sentinel status`.")
]
_Verdict = Annotated[
    Literal["useful", "false-alarm"],
    typer.Argument(metavar="useful|false-alarm", help="What the incident was."),
]
_Detector = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Its detector, for an incident of an archive, which no watch has recorded."
    ),
]
_Note = Annotated[str, typer.Option(metavar="TEXT", help="Why.")]


def ack(incident: _Id, config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """Acknowledge an incident: you know of it, so only its end is sent.

    `sentinel silence list` shows it, and `sentinel silence remove` takes it back.
    """
    from sentinel.notifications.silences import acknowledgement
    from sentinel.storage.store import Store

    now = SystemClock().now()
    with Store(recorded(config, state_dir, incident).state_dir, create=False) as store:
        stored = store.incident(incident)
        acknowledged = acknowledgement(stored, now)
        store.add_silence(acknowledged)
    typer.echo(
        f"{stored.id}: {stored.detector} is acknowledged; "
        f"to take it back: sentinel silence remove {acknowledged.id}"
    )


def feedback(
    incident: _Id,
    verdict: _Verdict,
    note: _Note = "",
    detector: _Detector = "",
    config: ConfigFile = None,
    state_dir: StateDir = None,
) -> None:
    """Say whether an incident was useful or a false alarm.

    `sentinel status` and `/metrics` count the answers by detector, and `sentinel calibrate` heeds them.
    """
    from sentinel.detectors.discovery import all_detectors
    from sentinel.storage.store import Store

    if detector and detector not in all_detectors():
        raise SentinelError(f"{detector}: no such detector{did_you_mean(detector, all_detectors())}")
    with Store(recorded(config, state_dir, incident).state_dir, create=bool(detector)) as store:
        if not detector:
            stored = store.incident(incident)
            incident = stored.id
            detector = stored.detector
        store.feedback.add(incident, detector, verdict, note, SystemClock().now())
    typer.echo(f"{incident}: {detector} is recorded as {verdict}")
