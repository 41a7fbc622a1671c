"""`sentinel check-config`: check a configuration before it is used."""

import json
from pathlib import Path
from typing import Annotated

import typer

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The configuration file.", show_default=True)]
_Schema = Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the file, for editors.")]


def check_config(file: _File = Path("sentinel.toml"), schema: _Schema = False) -> None:
    """Report every mistake in a configuration."""
    from sentinel.config.file import json_schema, load

    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
        return
    config = load(file)
    rules = [rule.detector_name for rule in config.rules]
    named = f"; rules: {', '.join(rules)}" if rules else ""
    typer.echo(f"{file}: no mistakes; sinks: {', '.join(sink.name for sink in config.sinks)}{named}")
