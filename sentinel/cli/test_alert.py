"""`sentinel test-alert`: check that each sink can deliver."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, configuration
from sentinel.clock import SystemClock
from sentinel.errors import ConfigError, UnknownName

if TYPE_CHECKING:
    from sentinel.sinks.base import Notification

_Sink = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only this sink: its name in the configuration, else its type."),
]


def send_test(config: ConfigFile = None, sink: _Sink = None) -> int:
    """Send a test to every sink.

    Each sink is tried once. The exit status is 1 if a sink did not take the test.
    """
    from sentinel.sinks.tries import attempt

    sinks = configuration(config).sinks
    chosen = [one for one in sinks if sink in (None, one.name)]
    if sink and not chosen:
        raise UnknownName("sink", sink, [one.name for one in sinks])
    now, undelivered = SystemClock().now(), 0
    notification = _notification(now)
    for one in chosen:
        error: Exception | None
        try:
            opened = one.open()
            _, error = attempt(partial(opened.send, notification, now))
        except ConfigError as unusable:
            error = unusable
        if error is None:
            typer.echo(f"{one.name}: delivered")
        else:
            undelivered += 1
            typer.echo(f"{one.name}: not delivered: {error}", err=True)
    return int(undelivered > 0)


def _notification(now: float) -> "Notification":
    from uuid import uuid4

    from detectors.api import Maturity, Severity
    from sentinel.alerts.incident import Event, Incident
    from sentinel.sinks.base import Notification

    incident = Incident(
        id="test",
        run="test",
        stream="",
        attempt=1,
        detector="test-alert",
        severity=Severity.INFO,
        maturity=Maturity.STABLE,
        signal="",
        tag="",
        onset_step=0,
        onset_time=now,
        fired_step=0,
        fired_time=now,
        summary="This is a test; nothing is wrong. Alerts that reach this sink look like this one.",
    )
    run = {"run": "test", "path": "", "framework": None}
    return Notification(uuid4().hex, Event.TEST, run, incident, catalogue=())
