"""The generated parts of the docs: `python -m tests.tools.docs` rewrites them and measurements/coverage.md.

A part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`, and a file of the repository between
`<!-- begin include FILE -->` and `<!-- end include -->`.
"""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from typer.testing import CliRunner

from sentinel import catalogue
from sentinel.catalogue.index import families
from sentinel.cli.app import program, program_for
from sentinel.common.config_table import ConfigTable
from sentinel.config.file import json_schema
from sentinel.config.rules import Rule
from sentinel.detectors.discovery import all_detectors
from sentinel.notifications.decide import Reason
from sentinel.report.pages import flags, severities
from sentinel.report.probes import index
from sentinel.series.naming import profiles
from sentinel.sinks.discovery import sink_types
from sentinel.sinks.heartbeat import HeartbeatConfig
from sentinel.sources.registry import formats as names_of_formats
from studies.faults.page import peers, read, summary
from tests.sinks.receiver import Receiver

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "deploy" / "site" / "docs"
PAGES = [
    README,
    *sorted(DOCS.glob("*.md")),
    *(file for room in ("reference", "contributing") for file in sorted((DOCS / room).glob("*.md"))),
]
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


def first_screen() -> str:
    with TemporaryDirectory() as place, chdir(place):
        for name in ("kl-blowup", "lr-schedule-mismatch", "flat-loss-at-init", "healthy-supervised"):
            shutil.copytree(ROOT / "sample_logs" / name, Path("runs") / name)
        text = shown(["runs/"], columns=80)
    return f"```console\n$ sentinel runs/\n{re.sub(r' read in [0-9.]+ s', ' read in 1 s', text)}\n```"


def webhook_event() -> str:
    return _posted("kl-blowup")


def webhook_digest() -> str:
    return _posted("kl-blowup", "non-finite-metric")


def _posted(*samples: str) -> str:
    """What a webhook gets of some sample logs, with the names of one machine."""
    with TemporaryDirectory() as place, chdir(place), Receiver() as receiver:
        for name in samples:
            shutil.copytree(ROOT / "sample_logs" / name, Path("runs") / name)
        sink = f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\nfirst_look = "all"\n'
        Path("sentinel.toml").write_text(f'paths = ["runs"]\nhost = "node-7"\nstate_dir = "state"\n{sink}')
        CliRunner().invoke(program_for(["watch"]), ["watch", "--once"])
        (request,) = receiver.received
        text = request.body.decode().replace(str(Path.cwd()), "/data")
    body = json.loads(re.sub(r'"[0-9a-f]{16}(?:[0-9a-f]{16})?"', '"…"', text))
    body["sent_at"] = "2026-01-01T00:00:10Z"
    return f"```json\n{json.dumps(body, indent=2, ensure_ascii=False)}\n```"


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

    return below(typer.main.get_command(program()), [])


def help_text(path: list[str]) -> str:
    words = [*path, "--help"]
    return f"$ sentinel {' '.join(words)}\n{shown(words)}"


def shown(words: list[str], columns: int = 100) -> str:
    """What a command prints on a terminal of so many columns."""
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(program_for(words), words, prog_name="sentinel")
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


def link(name: str, file: Path, page: Path) -> str:
    return f"[{name}]({os.path.relpath(file, page.parent)})"


def detectors() -> str:
    files = {file.stem.replace("_", "-"): file for file in (ROOT / "detectors").glob("*/*.py")}
    rows = [
        [
            link(name, files[name], DOCS / "finds.md"),
            flags(one),
            severities(one.severities),
            str(one.maturity),
        ]
        for name, one in all_detectors().items()
    ]
    return table(["Detector", "What it flags", "Severity", "Maturity"], rows)


def entries() -> str:
    folder = Path(catalogue.__file__).parent
    page = DOCS / "reference" / "catalogue.md"
    return "\n\n".join(
        f"## {family}\n\n"
        + "\n".join(f"- {link(one.id, folder / f'{one.id}.md', page)}: {one.title}" for one in members)
        for family, members in families().items()
    )


def reasons() -> str:
    return table(["Reason", "What it means"], [[f"`{one}`", one.text] for one in Reason if not one.sends])


def formats() -> str:
    return ", ".join(f"`{name}`" for name in names_of_formats())


def decisions() -> str:
    folder = DOCS / "contributing" / "decisions"
    return "\n".join(
        f"- {link(file.read_text().partition(chr(10))[0].removeprefix('# '), file, folder)}"
        for file in sorted(folder.glob("*.md"))
    )


PARTS = (
    *(
        first_screen,
        webhook_event,
        webhook_digest,
        report,
        faults,
        frameworks,
        config,
        rules,
        heartbeat,
        sinks,
        probes,
        commands,
    ),
    *(detectors, entries, reasons, formats, decisions),
)

INCLUSION = re.compile(r"<!-- begin include (\S+) -->\n.*?<!-- end include -->", re.DOTALL)
KINDS = {".sh": "sh", ".toml": "toml", ".yml": "yaml", "": "Dockerfile"}
"""What a block of code is called, by the suffix of its file."""


def inclusion(file: str) -> str:
    """A file of the repository as a block of code."""
    path = ROOT / file
    kind = "ini" if path.name == "crontab" else KINDS.get(path.suffix, "ini")
    return f"<!-- begin include {file} -->\n```{kind}\n{path.read_text().strip()}\n```\n<!-- end include -->"


def rewritten(text: str) -> str:
    """A page with its generated parts made anew."""
    for part in PARTS:
        begin = f"<!-- begin {part.__name__} -->"
        end = f"<!-- end {part.__name__} -->"
        if begin in text:
            before, rest = text.split(begin)
            _, after = rest.split(end)
            text = f"{before}{begin}\n{part()}\n{end}{after}"
    return INCLUSION.sub(lambda found: inclusion(found[1]), text)


if __name__ == "__main__":
    from tests.sinks import messages
    from tests.tools import examples, schemas, tables
    from tests.tools.coverage import COVERAGE, written

    for path, table_text in tables.texts():
        path.write_bytes(table_text)
    for page in PAGES:
        page.write_text(rewritten(page.read_text()))
    COVERAGE.write_text(written())
    examples.write()
    messages.write()
    for path, text in schemas.texts():
        path.write_text(text)
