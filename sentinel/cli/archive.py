"""`sentinel replay --out` and `sentinel reduce`: judge an archive part by part, and report on the whole."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, configuration
from sentinel.cli.progress import progress_bar
from sentinel.ground.clock import SystemClock
from sentinel.ground.text import counted

if TYPE_CHECKING:
    from sentinel.config.file import Config

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
ShardOption = Annotated[
    str,
    typer.Option("--shard", metavar="I/N", help="With --out: only share I of N, from 0 to N - 1."),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="With --out: also judge again what could not be judged.")
]


class _ArchiveForm(StrEnum):
    TERMINAL = "terminal"
    JSON = "json"


_Directory = Annotated[Path, typer.Argument(metavar="DIR", help="What `sentinel replay --out DIR` made.")]
_Format = Annotated[
    _ArchiveForm,
    typer.Option("--format", help="What it cost, for people; or all runs, as `sentinel replay`."),
]


def judge(settings: "Config", out: Path, workers: int | None, shard: str, retry_failed: bool) -> None:
    """Judge the runs of an archive that were not judged before, and keep the results."""
    from sentinel.archives.archive import judge_archive
    from sentinel.archives.engine import Local
    from sentinel.archives.parts import Shard
    from sentinel.archives.results import Results

    share = Shard.parse(shard) if shard else Shard()
    now = SystemClock().now()
    with progress_bar() as progress:
        judged = judge_archive(
            settings, Results(out), Local(workers), now, progress, shard=share, retry_failed=retry_failed
        )
    typer.echo(f"{counted(judged.runs, 'run')} judged, {judged.known} were known; results in {out}")


def reduce(
    directory: _Directory, format_: _Format = _ArchiveForm.TERMINAL, config: ConfigFile = None
) -> None:
    """Report on an archive that `sentinel replay --out` judged, from all its parts and shards."""
    from sentinel.archives.reducing import settled
    from sentinel.archives.results import Results
    from sentinel.report import archive

    results = Results(directory)
    policies = [sink.policy() for sink in configuration(config).sinks]
    whole = settled(results.records(), results.complaints(), policies)
    if format_ is _ArchiveForm.JSON:
        import orjson

        typer.echo(orjson.dumps(archive.document(whole), option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.lines import print_lines

        print_lines(archive.lines(whole))
