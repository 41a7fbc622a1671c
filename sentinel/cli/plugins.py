"""Names the plugins that cannot be used."""

from collections.abc import Sequence

import typer

from sentinel.plugins import BrokenPlugin, Group, broken_plugins, has_plugins


def complain_of_plugins() -> None:
    """Name on standard error, a line each, the plugins that cannot be used, and why."""
    for plugin in find_broken_plugins():
        typer.echo(f"sentinel: {plugin}", err=True)


def find_broken_plugins() -> Sequence[BrokenPlugin]:
    """Load all plugins, and return those that cannot be used. Where there are none, nothing is imported."""
    if has_plugins(Group.DETECTORS):
        from sentinel.detectors.discovery import all_detectors

        all_detectors()
    if has_plugins(Group.SOURCES):
        from sentinel.sources.registry import formats

        formats()
    if has_plugins(Group.SINKS):
        from sentinel.sinks.discovery import sink_types

        sink_types()
    if has_plugins(Group.CATALOGUE):
        from sentinel.catalogue import load

        load()
    return broken_plugins()
