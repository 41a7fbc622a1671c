"""`sentinel silence`: stop notifications about some runs for a while."""

import re
from typing import Annotated

import typer

from sentinel.cli.options import ConfigFile, StateDir, configuration
from sentinel.clock import SystemClock
from sentinel.errors import SentinelError, UnknownName

silences = typer.Typer(help="Stop notifications about some runs for a while.")

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str) -> float:
    """The seconds in `90s`, `30m`, `2h` or `1.5d`. Raises typer.BadParameter for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", duration)
    if not match or not float(match[1]):
        raise typer.BadParameter(f"{duration!r} is not a duration; write 30m, 2h or 1d")
    return float(match[1]) * _SECONDS[match[2]]


_Run = Annotated[
    str, typer.Argument(metavar="RUN", help="Glob for the name or path of runs: 'runs/ablation-*'.")
]
_Detector = Annotated[str, typer.Option(metavar="NAME", help="Glob for the names of detectors.")]
_Duration = Annotated[
    float,
    typer.Option(
        "--for", metavar="DURATION", parser=seconds, help="How long: 30m, 2h, 1d.", show_default=True
    ),
]
_Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; `sentinel silence list` shows it.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the silence, from `sentinel silence list`.")]


@silences.command()
def add(
    run: _Run,
    reason: _Reason,
    duration: _Duration = "2h",  # type: ignore[assignment]  # parsed like what a person types
    detector: _Detector = "*",
    config: ConfigFile = None,
    state_dir: StateDir = None,
) -> None:
    """Stop notifications about some runs until the time is over.

    Incidents are still recorded, and `sentinel status` shows them.
    """
    from detectors.discovery import all_detectors
    from sentinel.alerts.silences import silence
    from sentinel.alerts.store import Store

    settings = configuration(config, state_dir)
    known = {*all_detectors(), *(rule.detector_name for rule in settings.rules)}
    if not set("*?[") & set(detector) and detector not in known:
        raise UnknownName("detector", detector, known)
    now = SystemClock().now()
    new = silence(run, detector, now + duration, reason, now)
    with Store(settings.state_dir) as store:
        store.add_silence(new)
    typer.echo(f"{new.id}: {detector} of {run} is silent")


@silences.command("list")
def list_(config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """List the active silences."""
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
    """End a silence early."""
    from sentinel.alerts.store import Store

    with Store(configuration(config, state_dir).state_dir, create=False) as store:
        if not store.remove_silence(silence_id):
            raise SentinelError(f"no silence has the id {silence_id!r}; `sentinel silence list` shows them")
    typer.echo(f"{silence_id}: ended")
