"""`sentinel silence`: what nobody wants to hear for a while."""

import re
from typing import Annotated

import typer

from sentinel.cli.options import ConfigFile, StateDir, configuration
from sentinel.clock import SystemClock
from sentinel.errors import SentinelError, UnknownName

silences = typer.Typer(help="Keep some runs quiet for a while.")

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str) -> float:
    """The seconds in `90s`, `30m`, `2h` or `1.5d`. Raises typer.BadParameter for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", duration)
    if not match or not float(match[1]):
        raise typer.BadParameter(f"{duration!r} is no duration; write 30m, 2h or 1d")
    return float(match[1]) * _SECONDS[match[2]]


_Run = Annotated[
    str, typer.Argument(metavar="RUN", help="Name or path of runs, as a glob: 'runs/ablation-*'.")
]
_Detector = Annotated[str, typer.Option(metavar="NAME", help="Only this detector's incidents; a glob.")]
_Duration = Annotated[
    float, typer.Option("--for", metavar="DURATION", parser=seconds, help="30m, 2h, 1d.", show_default=True)
]
_Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for whoever asks later.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="As `sentinel silence list` shows it.")]


@silences.command()
def add(
    run: _Run,
    reason: _Reason,
    duration: _Duration = "2h",  # type: ignore[assignment]  # parsed like what a person types
    detector: _Detector = "*",
    config: ConfigFile = None,
    state_dir: StateDir = None,
) -> None:
    """Send nothing about some runs until the time is over.

    Incidents are still recorded, and show in `sentinel status`.
    """
    from detectors.discovery import all_detectors
    from sentinel.alerts.silences import silence
    from sentinel.alerts.store import Store

    if not set("*?[") & set(detector) and detector not in all_detectors():
        raise UnknownName("detector", detector, all_detectors())
    now = SystemClock().now()
    new = silence(run, detector, now + duration, reason, now)
    with Store(configuration(config, state_dir).state_dir) as store:
        store.add_silence(new)
    typer.echo(f"{new.id}: {detector} of {run} is silent")


@silences.command("list")
def list_(config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """List the silences that hold."""
    from sentinel.alerts.store import Store
    from sentinel.text import duration_text

    now = SystemClock().now()
    with Store(configuration(config, state_dir).state_dir, create=False) as store:
        for one in store.silences(now):
            typer.echo(
                f"{one.id}: {one.detector} of {one.run}, {duration_text(one.until - now)} left: {one.reason}"
            )


@silences.command()
def remove(silence_id: _Id, config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """End a silence before its time."""
    from sentinel.alerts.store import Store

    with Store(configuration(config, state_dir).state_dir, create=False) as store:
        if not store.remove_silence(silence_id):
            raise SentinelError(f"no silence has the id {silence_id!r}; `sentinel silence list` shows them")
    typer.echo(f"{silence_id}: ended")
