"""`sentinel archive`: judge an archive part by part, and report on the whole."""

import sys
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from sentinel.cli.options import RESULTS_OPTION, ConfigFile, configuration, shard
from sentinel.cli.progress import archive_progress
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError
from sentinel.common.shard import WHOLE, Shard
from sentinel.common.text import counted

if TYPE_CHECKING:
    from sentinel.archives.engine import Engine
    from sentinel.config.file import Config

archives = typer.Typer(help="Judge many thousands of finished logs part by part, and report on them.")

INTERRUPTED = 130
"""The exit status, as a shell has it."""


class _EngineName(StrEnum):
    LOCAL = "local"
    RAY = "ray"


class _ReportForm(StrEnum):
    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


_Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Log files, run directories, directories of runs, or addresses."),
]
_Out = Annotated[Path, RESULTS_OPTION]
_Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes that judge; default: one for each core.")
]
_Engine = Annotated[_EngineName, typer.Option("--engine", help="Who judges the parts: this machine, or Ray.")]
_Address = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine ray: a cluster that runs already; default: one on this machine.",
    ),
]
_Shard = Annotated[str, typer.Option("--shard", metavar="I/N", help="Only share I of N, from 0 to N - 1.")]
_RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Also judge again what could not be judged.")
]
_Owners = Annotated[
    Path | None,
    typer.Option(
        "--owners", metavar="PARQUET", help="What Slurm's accounting says about users, projects and GPUs."
    ),
]
_KeepCourses = Annotated[
    bool, typer.Option("--compare", help="Also keep what `sentinel archive report --compare` needs.")
]

_Directories = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="What `sentinel archive judge` made; several are one.")
]
_Format = Annotated[
    _ReportForm,
    typer.Option("--format", help="What it cost, for people; or with json all runs, as `sentinel replay`."),
]
_Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        help="Compare runs that differ in one setting; `sentinel archive judge --compare` keeps them.",
    ),
]


@archives.command("judge")
def judge(
    paths: _Paths,
    out: _Out,
    engine: _Engine = _EngineName.LOCAL,
    address: _Address = "",
    workers: _Workers = None,
    share: _Shard = "",
    owners: _Owners = None,
    retry_failed: _RetryFailed = False,
    compare: _KeepCourses = False,
    config: ConfigFile = None,
) -> int:
    """Judge finished logs part by part, and keep the results.

    The same command goes on where it stopped. `sentinel archive report` makes the report.
    """
    from sentinel.cli.logs import log_to_stderr

    if address and engine is not _EngineName.RAY:
        raise SentinelError("--address needs --engine ray")
    log_to_stderr()
    settings = configuration(config, paths=paths)
    return judge_parts(
        settings,
        out,
        _engine(engine, address, workers),
        owners=owners,
        shard=shard(share) or WHOLE,
        retry_failed=retry_failed,
        compare=compare,
    )


def judge_parts(
    settings: "Config",
    out: Path,
    engine: "Engine",
    *,
    owners: Path | None = None,
    shard: Shard = WHOLE,
    retry_failed: bool = False,
    compare: bool = False,
) -> int:
    """Judge the parts of an archive that were not judged before, keep the results, and return the status."""
    from sentinel.archives.archive import judge_archive
    from sentinel.archives.results import Results
    from sentinel.archives.slurm_accounting import Owners

    archive_results = Results(out, Owners.read(owners) if owners else None, shard)
    try:
        with archive_progress() as progress:
            judgement = judge_archive(
                settings,
                archive_results,
                engine,
                SystemClock().now(),
                progress,
                retry_failed=retry_failed,
                compare=compare,
            )
    except KeyboardInterrupt:
        typer.echo(f"\nstopped; the parts that are done are in {out}, and the same command goes on", err=True)
        return INTERRUPTED
    failed = f", {judgement.failed} could not be judged" if judgement.failed else ""
    judged_parts = f"{counted(judgement.completed, 'part')} judged: {counted(judgement.runs, 'run')}{failed}"
    damaged = f" ({counted(judgement.damaged, 'file')} had been damaged)" if judgement.damaged else ""
    typer.echo(f"{judged_parts}{damaged}; {counted(judgement.reused, 'part')} known before; results in {out}")
    return 0


def _engine(name: _EngineName, address: str, workers: int | None) -> "Engine":
    if name is _EngineName.RAY:
        from sentinel.archives.ray_engine import Ray

        return Ray(address, workers)
    from sentinel.archives.engine import Local

    return Local(workers)


@archives.command("report")
def report(
    directories: _Directories,
    format_: _Format = _ReportForm.TERMINAL,
    compare: _Compare = False,
    config: ConfigFile = None,
) -> None:
    """Report on archives that `sentinel archive judge` judged, from all their parts and shards."""
    from sentinel.archives.merged_results import MergedResults
    from sentinel.archives.reducing import reduced
    from sentinel.archives.results import Results
    from sentinel.report import cost

    all_results = [Results(directory) for directory in dict.fromkeys(map(Path.resolve, directories))]
    archive_results = all_results[0] if len(all_results) == 1 else MergedResults(all_results)
    policies = configuration(config).policies
    reduced_archive = reduced(archive_results, policies)
    if compare:
        from sentinel.archives.comparing import compared

        reduced_archive = replace(reduced_archive, comparisons=compared(reduced_archive.contents))
    match format_:
        case _ReportForm.TERMINAL:
            from sentinel.report.lines import print_lines

            print_lines(cost.lines(cost.cost(reduced_archive)))
        case _ReportForm.MARKDOWN:
            from sentinel.report import cost_page

            typer.echo(cost_page.markdown(cost.cost(reduced_archive)))
        case _ReportForm.HTML:
            from sentinel.report import cost_page

            typer.echo(cost_page.html(cost.cost(reduced_archive)))
        case _ReportForm.JSON:
            from sentinel.report import archive

            sys.stdout.writelines(chain(archive.pieces(reduced_archive), "\n"))
