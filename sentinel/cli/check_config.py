"""`sentinel check-config`: whether a configuration can be used, before it is needed."""

import json
from pathlib import Path
from typing import Annotated

import typer

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The configuration.", show_default=True)]
_Schema = Annotated[bool, typer.Option("--schema", help="Print the file's JSON Schema, for editors.")]


def check_config(file: _File = Path("sentinel.toml"), schema: _Schema = False) -> None:
    """Name every mistake in a configuration."""
    from sentinel.config import json_schema, load

    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
        return
    config = load(file)
    typer.echo(f"{file}: fine; sinks: {', '.join(sink.name for sink in config.sinks)}")
