"""`sentinel silence`: stop notifications about some runs for a while."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, StateDir, recorded
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError, UnknownName
from sentinel.common.run_glob import matched_runs, run_glob
from sentinel.common.text import seconds_in

if TYPE_CHECKING:
    from sentinel.notifications.silences import Silence

silences = typer.Typer(help="Stop notifications about some runs for a while.")


def seconds(duration: str) -> float:
    """Return the seconds in a duration. Raises typer.BadParameter for anything else."""
    try:
        return seconds_in(duration)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


_Run = Annotated[
    str, typer.Argument(metavar="RUN", help="Glob for the path of runs, or the end of it: 'runs/ablation-*'.")
]
_Incident = Annotated[
    str, typer.Option(metavar="ID", help="Only this incident, by its id or the beginning of it.")
]
_Detector = Annotated[str, typer.Option(metavar="NAME", help="Glob for the names of detectors.")]
_Duration = Annotated[
    float,
    typer.Option(
        "--for", metavar="DURATION", parser=seconds, help="How long: 30m, 2h, 1d, 1w.", show_default=True
    ),
]
_Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; `sentinel silence list` shows it.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the silence, from `sentinel silence list`.")]


@silences.command()
def add(
    reason: _Reason,
    run: _Run = "",
    incident: _Incident = "",
    duration: _Duration = "2h",  # type: ignore[assignment]  # parsed like what a person types
    detector: _Detector = "*",
    config: ConfigFile = None,
    state_dir: StateDir = None,
) -> None:
    """Stop notifications about some runs, or one incident, until the time is over.

    Incidents are still recorded, and `sentinel status` shows them.
    """
    from sentinel.notifications.silences import silence
    from sentinel.storage.store import Store

    if bool(run) == bool(incident):
        raise SentinelError("name either a RUN or an --incident")
    settings = recorded(config, state_dir, incident)
    _check_detector(detector, [rule.detector_name for rule in settings.rules])
    now = SystemClock().now()
    with Store(settings.state_dir) as store:
        if incident:
            stored = store.incident(incident)
            silenced = silence(stored.run, stored.detector, now + duration, reason, now, stored.id)
        else:
            silenced = silence(run_glob(run), detector, now + duration, reason, now)
        store.add_silence(silenced)
        covered = [row.path for row in store.runs() if not incident and silenced.covers(row.path)]
    typer.echo(f"{silenced.id}: {silenced.detector} of {_runs(silenced)} is silent")
    if covered:
        typer.echo(f"it matches {matched_runs(covered)} now")
    elif not incident:
        typer.echo(f"sentinel: no run that was watched so far matches {run!r}", err=True)


def _runs(silence: "Silence") -> str:
    """Return the runs that a silence is about, in words; that of one incident names its run by id."""
    if not silence.incident:
        return silence.run
    return f"{silence.run.partition(':')[2]}, incident {silence.incident}"


def _check_detector(name: str, rules: Sequence[str]) -> None:
    from sentinel.detectors.discovery import all_detectors

    detectors = {*all_detectors(), *rules}
    if not set("*?[") & set(name) and name not in detectors:
        raise UnknownName("detector", name, detectors)


@silences.command("list")
def list_(config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """List the active silences."""
    from sentinel.common.text import duration_text
    from sentinel.storage.store import Store

    now = SystemClock().now()
    with Store(recorded(config, state_dir).state_dir, read_only=True) as store:
        for silence in store.silences(now):
            remaining = f"{duration_text(silence.until - now)} left: {silence.reason}"
            typer.echo(f"{silence.id}: {silence.detector} of {_runs(silence)}, {remaining}")


@silences.command()
def remove(silence_id: _Id, config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """End a silence early."""
    from sentinel.storage.store import Store

    with Store(recorded(config, state_dir).state_dir, create=False) as store:
        if not store.remove_silence(silence_id):
            raise SentinelError(f"no silence has the id {silence_id!r}; `sentinel silence list` shows them")
    typer.echo(f"{silence_id}: ended")
