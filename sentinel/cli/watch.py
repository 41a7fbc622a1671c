"""`sentinel watch`: follow runs and send alerts."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, Notify, Paths, StateDir, configuration, here, watching
from sentinel.common.errors import SentinelError
from sentinel.common.paths import closure, exists, is_denied
from sentinel.common.text import clean_text

if TYPE_CHECKING:
    from sentinel.config.file import Config
    from sentinel.sources.location import Location

_log = logging.getLogger(__name__)

_Once = Annotated[bool, typer.Option("--once", help="Read what is there, deliver notifications and exit.")]
_Poll = Annotated[
    bool,
    typer.Option("--poll", help="Poll instead of waiting for file system events; NFS and FUSE send none."),
]
_Wait = Annotated[bool, typer.Option("--wait", help="Wait for a PATH that does not exist yet.")]
_Listen = Annotated[
    str,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Answer /metrics (for Prometheus) and /healthz here; a port alone means on this machine only.",
    ),
]
_Shard = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Follow only share I of N, from 0 to N - 1, of a tree that is too large for one watch. Each "
        "share needs a --state-dir of its own.",
    ),
]


def watch(
    paths: Paths = None,
    config: ConfigFile = None,
    once: _Once = False,
    state_dir: StateDir = None,
    poll: _Poll = False,
    wait: _Wait = False,
    listen: _Listen = "",
    notify: Notify = None,
    shard: _Shard = "",
) -> None:
    """Follow runs and send an alert when one goes wrong.

    Runs that begin later are followed as well. A restart continues where the last watch stopped. SIGHUP
    makes the watch read its configuration again.

    On Linux the processes of the runs are watched, too. What GPUs and NCCL tell of them is off until
    `[process] devices = true`: it is not proved with several GPUs yet.
    """
    from sentinel.cli.logs import log_to_stderr
    from sentinel.cli.plugins import find_broken_plugins
    from sentinel.cli.watch_table import table_of
    from sentinel.storage.states import note_watched
    from sentinel.watch.daemon import Daemon, WatchSetup

    def load() -> WatchSetup:
        settings = here(configuration(config, state_dir, paths or (), poll, listen, notify or (), shard))
        _check_paths(settings.paths, wait)
        settings = _with_terminal(watching(settings, config, paths or ()))
        note_watched(settings.state_dir, settings.paths)
        return WatchSetup(settings, [sink.open() for sink in settings.sinks])

    log_to_stderr()
    for plugin in find_broken_plugins():
        _log.warning("%s", plugin)
    daemon = Daemon(load)
    if once:
        daemon.read_once()
    else:
        daemon.run(table_of)


def _with_terminal(config: "Config") -> "Config":
    """Return the configuration with the terminal among its sinks, where a person looks at one."""
    from sentinel.sinks.discovery import named
    from sentinel.sinks.terminal import TerminalConfig

    is_sink = any(isinstance(sink, TerminalConfig) for sink in config.sinks)
    if is_sink or not sys.stderr.isatty():
        return config
    return config.model_copy(update={"sinks": named([*config.sinks, TerminalConfig()])})


def _check_paths(paths: "Sequence[Location]", wait: bool) -> None:
    """Warn of paths that do not exist. Raises SentinelError if none exists, unless it may ``wait``."""
    from sentinel.sources.location import closed_to_us, is_pattern, matches

    local = [path for path in paths if isinstance(path, Path)]
    missing = [
        path for path in local if not any(exists(match) or is_denied(match) for match in matches(path))
    ]
    problems = [
        "nothing matches it yet" if is_pattern(path) else "no such file or directory" for path in missing
    ]
    if missing == paths and not wait and not any(map(is_pattern, missing)):
        raise SentinelError(f"{missing[0]}: {problems[0]}; --wait waits until it exists")
    for path, problem in zip(missing, problems, strict=True):
        _log.warning("%s: %s; the watch waits for it", clean_text(str(path)), problem)
    for directory in (directory for path in local for directory in closed_to_us(path)):
        _log.warning("%s, so the runs below it are not watched", closure(directory))
