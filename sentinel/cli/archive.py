"""`sentinel replay --out` and `sentinel reduce`: judge an archive part by part, and report on the whole."""

import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, configuration, shard
from sentinel.cli.progress import archive_progress
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError
from sentinel.common.text import counted

if TYPE_CHECKING:
    from sentinel.archives.engine import Engine
    from sentinel.config.file import Config


class EngineName(StrEnum):
    """Who judges the parts of an archive."""

    LOCAL = "local"
    RAY = "ray"


INTERRUPTED = 130
"""The exit status, as a shell has it."""

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep the results as Parquet in DIR, part by part, for `sentinel reduce`. What is there and did "
        "not change is not read again.",
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="With --out: processes that judge; default: one for each core.")
]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="With --out: who judges the parts: this machine, or Ray.")
]
Address = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine ray: a cluster that runs already; default: one on this machine.",
    ),
]
ShardOption = Annotated[
    str,
    typer.Option("--shard", metavar="I/N", help="With --out: only share I of N, from 0 to N - 1."),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="With --out: also judge again what could not be judged.")
]
OwnersTable = Annotated[
    Path | None,
    typer.Option(
        "--owners",
        metavar="PARQUET",
        help="With --out: what Slurm's accounting says about users, projects and GPUs.",
    ),
]


class _ArchiveForm(StrEnum):
    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


_Directory = Annotated[Path, typer.Argument(metavar="DIR", help="What `sentinel replay --out DIR` made.")]
_Format = Annotated[
    _ArchiveForm,
    typer.Option("--format", help="What it cost, for people; or with json all runs, as `sentinel replay`."),
]
_Compare = Annotated[
    bool,
    typer.Option(
        "--compare", help="Compare runs that differ in one setting; `replay --out --compare` keeps them."
    ),
]


@dataclass(frozen=True)
class ArchiveOptions:
    """How `sentinel replay` judges an archive; ``out`` is None for a plain replay."""

    out: Path | None
    engine: EngineName = EngineName.LOCAL
    address: str = ""
    workers: int | None = None
    shard: str = ""
    owners: Path | None = None
    retry_failed: bool = False
    compare: bool = False

    def check(self) -> None:
        """Raise SentinelError if a plain replay has options of an archive."""
        given = (self.workers, self.shard, self.owners, self.retry_failed, self.engine is EngineName.RAY)
        if self.out is None and any(given):
            raise SentinelError("--engine, --workers, --shard, --owners and --retry-failed need --out DIR")
        if self.address and self.engine is not EngineName.RAY:
            raise SentinelError("--address needs --engine ray")

    def made_engine(self) -> "Engine":
        """Return the engine that was asked for."""
        if self.engine is EngineName.RAY:
            from sentinel.archives.ray_engine import Ray

            return Ray(self.address, self.workers)
        from sentinel.archives.engine import Local

        return Local(self.workers)


def judge(settings: "Config", out: Path, options: ArchiveOptions) -> int:
    """Judge the parts of an archive that were not judged before, and keep the results. Gives the status."""
    from sentinel.archives.archive import judge_archive
    from sentinel.archives.results import Results
    from sentinel.archives.slurm_accounting import Owners
    from sentinel.common.shard import WHOLE

    results = Results(out, Owners.read(options.owners) if options.owners else None)
    try:
        with archive_progress() as progress:
            judged = judge_archive(
                settings,
                results,
                options.made_engine(),
                SystemClock().now(),
                progress,
                shard=shard(options.shard) or WHOLE,
                retry_failed=options.retry_failed,
                compare=options.compare,
            )
    except KeyboardInterrupt:
        typer.echo(f"\nstopped; the parts that are done are in {out}, and the same command goes on", err=True)
        return INTERRUPTED
    failed = f", {judged.failed} could not be judged" if judged.failed else ""
    new = f"{counted(judged.done, 'part')} judged: {counted(judged.runs, 'run')}{failed}"
    typer.echo(f"{new}; {counted(judged.known, 'part')} known before; results in {out}")
    return 0


def reduce(
    directory: _Directory,
    format_: _Format = _ArchiveForm.TERMINAL,
    compare: _Compare = False,
    config: ConfigFile = None,
) -> None:
    """Report on an archive that `sentinel replay --out` judged, from all its parts and shards."""
    from sentinel.archives.reducing import reduced
    from sentinel.archives.results import Results
    from sentinel.report import cost

    results = Results(directory)
    policies = [sink.policy() for sink in configuration(config).sinks]
    whole = reduced(results, policies)
    if compare:
        from sentinel.archives.comparing import compared

        whole = replace(whole, comparisons=compared(whole.contents))
    match format_:
        case _ArchiveForm.TERMINAL:
            from sentinel.report.lines import print_lines

            print_lines(cost.lines(cost.cost(whole)))
        case _ArchiveForm.MARKDOWN:
            from sentinel.report import cost_page

            typer.echo(cost_page.markdown(cost.cost(whole)))
        case _ArchiveForm.HTML:
            from sentinel.report import cost_page

            typer.echo(cost_page.html(cost.cost(whole)))
        case _ArchiveForm.JSON:
            from sentinel.report import archive

            sys.stdout.writelines(chain(archive.pieces(whole), "\n"))
