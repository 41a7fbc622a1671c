"""`sentinel calibrate`: keep a budget of pages from healthy runs on an archive of one's own."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sentinel.cli.archive import INTERRUPTED, judge_parts
from sentinel.cli.options import RESULTS_OPTION, ConfigFile, answers, configuration, opened
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError
from sentinel.common.text import clean_text, counted

if TYPE_CHECKING:
    from sentinel.calibration.calibration import Calibration
    from sentinel.calibration.page_statistics import Pages, Stricter, Telling
    from sentinel.calibration.thresholds import Move
    from sentinel.config.file import Config
    from sentinel.runs.log import RunOverview

_Archive = Annotated[
    list[str], typer.Argument(metavar="ARCHIVE...", help="Finished runs, most of them healthy.")
]
_PagesPerRun = Annotated[
    float | None,
    typer.Option(
        "--pages-per-run",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Share of healthy runs that may page. Default: 0.01.",
        show_default=False,
    ),
]
_PagesPerDay = Annotated[
    float | None,
    typer.Option(
        "--pages-per-run-day",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="For runs without end: share of the days of healthy runs that may page.",
    ),
]
_Bad = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Names or globs of runs that went wrong, one a line.")
]
_Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the result, for `include`.")
]
_Results = Annotated[Path | None, RESULTS_OPTION]
_Workers = Annotated[
    int | None, typer.Option(min=1, help="With --out: processes that judge; default: one for each core.")
]
_Html = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the five pages to look at first, with their curves and a question each."
    ),
]


def calibrate(
    archive: _Archive,
    pages_per_run: _PagesPerRun = None,
    pages_per_run_day: _PagesPerDay = None,
    bad: _Bad = None,
    output: _Output = Path("calibration.toml"),
    html: _Html = None,
    out: _Results = None,
    workers: _Workers = None,
    config: ConfigFile = None,
) -> None:
    """Find out how often healthy runs of an archive would page, and keep that within a budget.

    A run counts as healthy unless it crashed, `--bad` names it, or somebody called one of its incidents
    useful. What pages too often becomes stricter, or only informs from then on: it stands in reports, and
    nobody is paged. The result is written as a configuration; name it in `include` of sentinel.toml.
    """
    from sentinel.calibration.page_statistics import Pages
    from sentinel.calibration.thresholds import (
        changes_of,
        drifted,
        is_kept,
        judge_stricter,
        kept_within,
        promised,
    )
    from sentinel.replays.strictness import with_factors

    if workers and out is None:
        raise SentinelError("--workers needs --out DIR")
    if pages_per_run is not None and pages_per_run_day is not None:
        raise SentinelError("give either --pages-per-run or --pages-per-run-day")
    budget = next((share for share in (pages_per_run_day, pages_per_run) if share is not None), 0.01)
    settings = configuration(config, paths=archive)
    bad_runs = _lines_of(bad)
    verdicts = answers(settings, None)
    pages = Pages(daily=pages_per_run_day is not None)
    uncalibrated = settings.model_copy(update={"detectors": _uncalibrated(settings.detectors)})
    with opened(output) as file:
        for overview, notifications in (
            _stored(uncalibrated, out, workers) if out else _replayed(uncalibrated)
        ):
            pages.add(overview, notifications, bad_runs, verdicts)
        _require_healthy(pages, archive)
        if not is_kept(budget, pages):
            judge_stricter(pages, with_factors(uncalibrated.paths, uncalibrated))
        moves = kept_within(budget, pages)
        promise = promised(budget, pages, SystemClock().now())
        file.writelines(f"{line}\n" for line in _toml_lines(uncalibrated, moves, pages, promise))
        if html is not None:
            with opened(html) as page:
                page.write(_questions(uncalibrated, pages, moves, verdicts))
    typer.echo(f"before: {pages.rate()} would page; {pages.left_out} left out")
    if drifted(*(halves := pages.halves())):
        typer.echo(
            f"the archive has changed: first {halves[0]} would page, then {halves[1]}; "
            "calibrate on the runs that are like the coming ones"
        )
    for move in moves:
        lost = f"; nothing else tells of {counted(move.lost, 'other run')}" if move.lost else ""
        typer.echo(f"{_move_text(uncalibrated, move)}{lost}")
    changes = changes_of(moves)
    typer.echo(f"after: {pages.rate(changes)}")
    for stratum, rate in pages.by_stratum(changes).items():
        if rate.low > budget:
            typer.echo(f"above the budget: {stratum}: {rate}")
    typer.echo(f"promised: {promise}")
    typer.echo(f'{output}: written; add `include = ["{output}"]` to sentinel.toml')


def _require_healthy(pages: "Pages", archive: Sequence[str]) -> None:
    """Raise SentinelError if no healthy run, or no day of one, is there to count pages in."""
    if not pages.healthy:
        raise SentinelError(f"{', '.join(archive)}: no run counts as healthy, so nothing can be kept to")
    if pages.daily and not any(run.logged for run in pages.healthy.values()):
        lack = "no healthy log holds times, so no run-day is known; use --pages-per-run"
        raise SentinelError(f"{', '.join(archive)}: {lack}")


def _replayed(config: "Config") -> "Iterator[tuple[RunOverview, Telling]]":
    """Read and judge the runs, and yield each with what would be sent of it."""
    from sentinel.replays.replaying import replay_in_parts

    for replay_part in replay_in_parts(config.paths, config, lambda *_: None):
        yield from ((run.seen, run.notifications) for run in replay_part.runs)


def _move_text(config: "Config", move: "Move") -> str:
    """Describe a move for a person."""
    from sentinel.calibration.page_statistics import Kind

    if isinstance(move.change, Kind):
        return f"{move.change} only informs: it paged in {move.rate}"
    needs = ", ".join(_thresholds(config, move.change))
    now = f"{move.now.pages} ({move.now.share:.1%}, at most {move.now.high:.1%})"
    return f"{move.change} ({needs}): it paged in {move.rate}, now in {now}"


def _thresholds(config: "Config", change: "Stricter") -> Iterator[str]:
    """Yield the thresholds that become stricter, each with its old and its new value."""
    from sentinel.detectors.discovery import all_detectors

    detector = all_detectors()[change.detector]
    usual = {name: parameter.default for name, parameter in detector.parameters.items()}
    usual |= config.parameters.get(change.detector, {})
    if detector.stricter:
        for name, value in detector.stricter.of(change.factor, usual).items():
            yield f"{name} from {usual[name]:.3g} to {value:.3g}"


def _stored(config: "Config", out: Path, workers: int | None) -> "Iterator[tuple[RunOverview, Telling]]":
    """Yield the same from an archive with stored results, after its new and changed parts were judged."""
    from sentinel.archives.engine import Local
    from sentinel.archives.reducing import reduced
    from sentinel.archives.results import Results

    if judge_parts(config, out, Local(workers)):
        raise typer.Exit(INTERRUPTED)
    archive_results = Results(out)
    policies = config.policies
    for run in reduced(archive_results, policies).runs():
        yield run.overview, run.notifications


def _questions(config: "Config", pages: "Pages", moves: "Sequence[Move]", answers: Collection[str]) -> str:
    """Make the HTML file about the pages to look at first. Their runs are read again, for their curves."""
    from sentinel.replays.replaying import replay_in_parts
    from sentinel.report.model import replay_report
    from sentinel.report.review_queue import Doubt, doubtful, html

    incidents = doubtful(pages, moves, answers)
    runs = {}
    if incidents:
        names = [escape(name) for name, _ in incidents]
        replay_parts = replay_in_parts(config.paths, config, lambda *_: None, curves=True, names=names)
        runs = {run.name: run for run in replay_report(replay_parts, SystemClock().now(), "name").runs}
    return html(
        [Doubt.from_incident(runs[clean_text(name)], incident) for name, incident in incidents], pages, moves
    )


def _uncalibrated(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings of the detectors without what an earlier calibration changed."""
    return {
        name: {key: value for key, value in table.items() if key not in {"informs", "stricter"}}
        for name, table in tables.items()
    }


def _lines_of(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return [line.strip() for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise SentinelError(f"{file}: cannot be read: {error}") from None


def _toml_lines(
    config: "Config", moves: "Collection[Move]", pages: "Pages", promise: "Calibration"
) -> Iterator[str]:
    from sentinel.calibration.page_statistics import Kind
    from sentinel.calibration.public_base_rate import by_stratum
    from sentinel.calibration.thresholds import changes_of

    by_detector: dict[str, list[Move]] = {}
    for move in moves:
        by_detector.setdefault(move.change.detector, []).append(move)
    changes = changes_of(moves)
    unit = "run-day" if promise.daily else "run"
    yield f"# Made by `sentinel calibrate` for at most {promise.budget:.3g} pages a healthy {unit}."
    yield f"# Before: {pages.rate()}."
    yield f"# After: {pages.rate(changes)}. By framework and length:"
    yield from (f"# {line}" for line in by_stratum(pages, changes))
    yield "\n[calibration]"
    yield f"made_at = {promise.made_at:%Y-%m-%dT%H:%M:%SZ}"
    yield f"pages_per_{unit.replace('-', '_')} = {promise.budget}"
    yield f"runs = {promise.runs}"
    yield f"run_days = {promise.run_days}"
    yield f"pages = {promise.pages}"
    if promise.daily:
        yield f"design_effect = {round(promise.design_effect, 2)}"
    for name, by_kind in ("variants", promise.variants), ("design_effects", promise.design_effects):
        if by_kind:
            yield f"\n[calibration.{name}]"
            yield from (f"{json.dumps(kind)} = {round(value, 2)}" for kind, value in by_kind.items())
    for detector, moved in sorted(by_detector.items()):
        yield f"\n[detectors.{detector}]"
        yield from (f"# {_move_text(config, move)}" for move in moved)
        if quiet := sorted(move.change.variant for move in moved if isinstance(move.change, Kind)):
            yield f"informs = {json.dumps(quiet)}"
        yield from (f"stricter = {move.change.factor}" for move in moved if not isinstance(move.change, Kind))
