"""`sentinel test-alert`: check that each sink can deliver."""

from functools import partial
from typing import Annotated

import typer
from msgspec.structs import replace

from sentinel.cli.options import ConfigFile, Notify, configuration
from sentinel.common.clock import SystemClock
from sentinel.common.errors import ConfigError, UnknownName

_Sink = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only this sink: its name in the configuration, else its type."),
]

_SUMMARY = "This is a test; nothing is wrong. Alerts that reach this sink look like this one."


def send_test(config: ConfigFile = None, sink: _Sink = None, notify: Notify = None) -> int:
    """Send a test to every sink.

    Each sink is tried once. The exit status is 1 if a sink did not take the test.
    """
    from sentinel.detectors.api import Severity
    from sentinel.incidents.incident import Event
    from sentinel.sinks.retry import attempt
    from sentinel.sinks.self_alerts import of_no_run

    sinks = configuration(config, notify=notify or ()).sinks
    chosen = [table for table in sinks if sink in (None, table.name)]
    if sink and not chosen:
        raise UnknownName("sink", sink, [table.name for table in sinks])
    now = SystemClock().now()
    undelivered = 0
    notification = of_no_run(
        Event.TEST, Severity.INFO, _SUMMARY, now, run="test", detector="test-alert", id_="test"
    )
    for table in chosen:
        error: Exception | None
        try:
            opened = table.open()
            _, error = attempt(partial(opened.send, notification, now))
        except ConfigError as unusable:
            error = unusable
        if error is None:
            typer.echo(f"{table.name}: delivered")
            if table.type == "pagerduty":  # a person would have to resolve it
                over = replace(notification, event=Event.RESOLVED)
                _, error = attempt(partial(opened.send, over, now))
                typer.echo(f"{table.name}: {f'not resolved: {error}' if error else 'resolved'}")
        else:
            undelivered += 1
            typer.echo(f"{table.name}: not delivered: {error}", err=True)
    return int(undelivered > 0)
