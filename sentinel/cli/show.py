"""`sentinel show`: all that is known of one incident."""

from typing import Annotated

import typer

from sentinel.cli.options import ConfigFile, ReportFormat, StateDir, TextOrJson, recorded
from sentinel.common.clock import SystemClock

_Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the incident, or its beginning, from an alert or `status`.")
]


def show(
    incident: _Id,
    format_: ReportFormat = TextOrJson.TERMINAL,
    config: ConfigFile = None,
    state_dir: StateDir = None,
) -> None:
    """Show an incident with its evidence, its curves and all its possible causes.

    As JSON it is the body that a webhook would get now.
    """
    from sentinel.common.state_dir import state_dir_option
    from sentinel.pipeline import Pipeline
    from sentinel.report.recorded import recorded_incident
    from sentinel.storage.store import Store

    settings = recorded(config, state_dir, incident)
    pipeline = Pipeline(settings.enabled_detectors, settings.parameters, settings.signals, host=settings.host)
    options = state_dir_option(settings.state_dir)
    with Store(settings.state_dir, read_only=True) as store:
        notification = recorded_incident(store, pipeline, incident, settings.link, options)
    if format_ is TextOrJson.JSON:
        import orjson

        from sentinel.sinks.webhook import webhook_body

        body = webhook_body(notification, SystemClock().now())
        typer.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.incident_page import lines
        from sentinel.report.lines import print_lines

        print_lines(lines(notification))
