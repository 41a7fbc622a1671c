"""The generated parts of the docs: `python -m tests.tools.docs` rewrites them and measurements/coverage.md.

A part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from sentinel.cli.app import app, program_for
from sentinel.common.config_table import ConfigTable
from sentinel.config.file import json_schema
from sentinel.config.rules import Rule
from sentinel.report.probes import index
from sentinel.series.naming import profiles
from sentinel.sinks.discovery import sink_types
from sentinel.sinks.heartbeat import HeartbeatConfig
from studies.faults.page import peers, read, summary

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "deploy" / "site" / "docs").glob("*.md"))]
"""What people read of the project: the page that they meet first, and those behind it."""

FRAMEWORKS = ROOT / "tests" / "frameworks"


def table(head: list[str], rows: list[list[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *escaped])


def literal(value: Any) -> str:
    """As it would stand in the file; nothing for what is not there."""
    return "" if value in (None, "", [], {}) else f"`{json.dumps(value)}`"


def faults() -> str:
    outcomes = read()
    return f"{summary(outcomes)}\n{peers(outcomes)}".strip()


def frameworks() -> str:
    known = {name: profile for name, profile in profiles().items() if not name.startswith("custom-")}
    expected = [tomllib.loads(file.read_text()) for file in FRAMEWORKS.glob("*/expected.toml")]
    wrote = {run.get("framework") for log in expected for run in log["run"]}
    logs, sources = (
        sorted((profile.title for name, profile in known.items() if (name in wrote) == by_log), key=str.lower)
        for by_log in (True, False)
    )
    return (
        f"Checked against logs that they wrote, which are in `tests/frameworks/`: {'; '.join(logs)}.\n\n"
        f"Checked against their source: {'; '.join(sources)}."
    )


def config() -> str:
    rows = []
    for key, schema in json_schema()["properties"].items():
        rows.append([f"`{key}`", literal(schema.get("default")), schema["description"]])
    return table(["Key", "Default", "Meaning"], rows)


def keys(model: type[ConfigTable]) -> str:
    rows = [
        [f"`{key}`", "" if field.is_required() else literal(field.default), field.description or ""]
        for key, field in model.model_fields.items()
    ]
    return table(["Key", "Default", "Meaning"], rows)


def rules() -> str:
    return keys(Rule)


def heartbeat() -> str:
    return keys(HeartbeatConfig)


def sinks() -> str:
    keys: dict[tuple[str, str, str], list[str]] = {}
    for kind, model in sink_types().items():
        for key, field in model.model_fields.items():
            if key != "type":
                default = "required" if field.is_required() else literal(field.default)
                keys.setdefault((key, default, field.description or ""), []).append(kind)
    rows = []
    for (key, default, meaning), kinds in sorted(keys.items(), key=lambda item: -len(item[1])):
        told = "all" if len(kinds) == len(sink_types()) else ", ".join(kinds)
        rows.append([f"`{key}`", told, default, meaning])
    return table(["Key", "Sinks", "Default", "Meaning"], rows)


def report() -> str:
    return f"```text\n{shown(['replay', str(ROOT / 'sample_logs' / 'kl-blowup')])}\n```"


def probes() -> str:
    return index()


def commands() -> str:
    helps = [help_text([]), help_text(["."]), *map(help_text, command_paths())]
    return "\n\n".join(f"```text\n{text}\n```" for text in helps)


def command_paths() -> Iterator[list[str]]:
    """The words of every command, groups before their members."""

    def below(command: Any, path: list[str]) -> Iterator[list[str]]:
        for name, child in getattr(command, "commands", {}).items():
            yield [*path, name]
            yield from below(child, [*path, name])

    return below(typer.main.get_command(app), [])


def help_text(path: list[str]) -> str:
    words = [*path, "--help"]
    return f"$ sentinel {' '.join(words)}\n{shown(words)}"


def shown(words: list[str]) -> str:
    """What a command prints, 100 columns wide."""
    result = CliRunner(env={"COLUMNS": "100"}).invoke(program_for(words), words, prog_name="sentinel")
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


PARTS = (report, faults, frameworks, config, rules, heartbeat, sinks, probes, commands)


def rewritten(text: str) -> str:
    """A page with its generated parts made anew."""
    for part in PARTS:
        begin = f"<!-- begin {part.__name__} -->"
        end = f"<!-- end {part.__name__} -->"
        if begin in text:
            before, rest = text.split(begin)
            _, after = rest.split(end)
            text = f"{before}{begin}\n{part()}\n{end}{after}"
    return text


if __name__ == "__main__":
    from tests.sinks import messages
    from tests.tools import examples, schemas
    from tests.tools.coverage import COVERAGE, written

    for page in PAGES:
        page.write_text(rewritten(page.read_text()))
    COVERAGE.write_text(written())
    examples.write()
    messages.write()
    for path, text in schemas.texts():
        path.write_text(text)
