"""`sentinel check-config`: check a configuration before it is used."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.plugins import complain_of_plugins
from sentinel.common.errors import ConfigError, StateError
from sentinel.common.paths import closure, exists, is_denied
from sentinel.common.run_glob import fits, matched_runs
from sentinel.common.text import clean_text, counted
from sentinel.sources.location import closed_to_us, is_pattern, matches

if TYPE_CHECKING:
    from sentinel.config.file import Config
    from sentinel.sources.console.line_forms import LineForm

_MAX_TEXTS_NAMED = 1000
"""Texts in which lines of the forms that a person named are looked for."""

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The configuration file.", show_default=True)]
_Schema = Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the file, for editors.")]


def check_config(file: _File = Path("sentinel.toml"), schema: _Schema = False) -> None:
    """Report every mistake in a configuration, and what it needs that is missing on this machine."""
    from sentinel.config.file import json_schema, load

    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
        return
    complain_of_plugins()  # first, because a configuration may name what a plugin should have brought
    config = load(file)
    for line in chain(_summary(file, config), _paths(config), _sinks(config)):
        typer.echo(line)
    for missing in _missing(config):
        typer.echo(f"missing here: {missing}")


def _summary(file: Path, config: "Config") -> Iterator[str]:
    """Yield what the file sets: sinks and rules, and how strict the detectors are."""
    rules = [rule.detector_name for rule in config.rules]
    rule_names = f"; rules: {', '.join(rules)}" if rules else ""
    yield f"{file}: no mistakes; sinks: {', '.join(sink.name for sink in config.sinks)}{rule_names}"
    quiet = [f"{d.name}: {variant}" for d in config.enabled_detectors for variant in sorted(d.informs)]
    if quiet:
        yield f"only inform: {', '.join(quiet)}"
    for name, table in config.detectors.items():
        if "stricter" in table:
            yield f"{name}: {table['stricter']:g} times as strict"
    if config.calibration:
        yield f"promised on {config.calibration.made_at:%Y-%m-%d}: {config.calibration}"


def _paths(config: "Config") -> Iterator[str]:
    """Yield what the globs among the paths match, what is closed below them, and which lines fit a form."""
    local = [path for path in config.paths if isinstance(path, Path)]
    for pattern in filter(is_pattern, local):
        count = len(matches(pattern))
        matches_text = f"matches {counted(count, 'path')} here" if count else "matches nothing here yet"
        yield f"{pattern} (`paths`): {matches_text}"
    for path in local:
        for directory in closed_to_us(path):
            yield f"{path} (`paths`): {closure(directory)}, so the runs below it are not watched"
    yield from _forms(config.forms, local)


def _sinks(config: "Config") -> Iterator[str]:
    """Yield by which clock sinks are quiet, and which runs they are told of."""
    for sink in config.sinks:
        if sink.quiet_hours is not None:
            now = datetime.now().astimezone()
            yield f"quiet hours of sink {sink.name}: by the clock of this machine, {now:%H:%M %Z} now"
    yield from _routes(config)


def _forms(forms: Sequence["LineForm"], paths: Sequence[Path]) -> Iterator[str]:
    """Yield which lines of the texts below some paths have each form that a person named."""
    from sentinel.sources.general.logs import candidates, sample_lines
    from sentinel.sources.walking import Walk

    if not forms:
        return
    walk = Walk(paths)
    files = [directory / name for directory, names in walk for name in candidates(names)] + [*walk.named]
    texts = {file: sample_lines(file) for file in files[:_MAX_TEXTS_NAMED]}
    for form in forms:
        title = f"line {clean_text(form.line)!r} (`console`)"
        lines = {file: [line for line in texts[file] if form.numbers(line)] for file in texts}
        fitting = {file: of_file for file, of_file in lines.items() if of_file}
        if not fitting:
            yield f"{title}: no line of the {counted(len(texts), 'text')} below `paths` has this form"
        for file, of_file in fitting.items():
            numbers = form.numbers(of_file[-1]) or []
            names = [name or "time" for name in (slot.name for slot in form.template.slots)]
            last_line = ", ".join(f"{name} {text}" for name, text in zip(names, numbers, strict=True))
            share = f"{len(of_file)} of {counted(len(texts[file]), 'line')}"
            read_part = f"at the beginning and the end of {clean_text(str(file))}"
            yield f"{title}: {share} {read_part}; the last says {clean_text(last_line)}"


def _routes(config: "Config") -> Iterator[str]:
    """Yield which runs each glob of a sink matches now, among those that a watch read or would find."""
    patterns = [(sink.name, pattern) for sink in config.sinks for pattern in sink.runs]
    paths = _paths_of_runs(config) if patterns else []
    for sink, pattern in patterns:
        matching = [path for path in paths if fits(pattern, path)]
        matches_text = f"matches {matched_runs(matching)}" if matching else f"matches {_none_of(paths)}"
        yield f"{clean_text(pattern)} (`runs` of sink {sink}): {matches_text}"


def _none_of(paths: Sequence[str]) -> str:
    return f"none of the {counted(len(paths), 'run')} here" if paths else "nothing: there is no run here yet"


def _paths_of_runs(config: "Config") -> list[str]:
    from sentinel.sources.discovery import discover
    from sentinel.storage.store import Store

    recorded = list[str]()
    with suppress(StateError), Store(config.state_dir, read_only=True) as store:
        recorded = [row.path for row in store.runs()]
    local = [path for path in config.paths if isinstance(path, Path)]
    return sorted({*recorded, *(str(run.path) for run in discover(local, forms=config.forms).runs)})


def _missing(config: "Config") -> Iterator[str]:
    """Yield the variables, files and paths that a watch with this configuration would not find."""
    from sentinel.storage.sharing import obstacles

    needs: list[tuple[str, Callable[[], object]]] = [(f"sink {s.name}", s.open) for s in config.sinks]
    if config.heartbeat is not None:
        needs.append(("heartbeat", config.heartbeat.address))
    for name, need in needs:
        try:
            need()
        except ConfigError as error:
            yield from (f"{problem} ({name})" for problem in error.problems)
    for sink in config.sinks:
        program = getattr(sink, "command", None)
        if program and shutil.which(program[0]) is None:
            yield f"{program[0]}: no such program on this machine (sink {sink.name})"
    if config.state_group:
        yield from obstacles(config.state_dir, config.state_group)
    for path in config.paths:
        if isinstance(path, Path) and not (exists(path) or is_denied(path) or is_pattern(path)):
            yield f"{path} (`paths`)"
