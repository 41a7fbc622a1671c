"""`sentinel compare`: hold runs against one another, and say nothing else of them."""

import typer

from sentinel.cli.options import ConfigFile, Paths, ReportFormat, TextOrJson, judging
from sentinel.cli.progress import progress_bar
from sentinel.common.errors import SentinelError


def compare(
    paths: Paths = None, format_: ReportFormat = TextOrJson.TERMINAL, config: ConfigFile = None
) -> None:
    """Compare two runs side by side, or all runs that differ in one setting or in the seed alone."""
    from sentinel.cli.logs import log_to_stderr
    from sentinel.replays.replaying import replay
    from sentinel.report.comparisons import statements, title
    from sentinel.report.json import ComparedBody, comparison_body
    from sentinel.report.lines import print_lines
    from sentinel.report.pair import pair_body, pair_lines
    from sentinel.sources.discovery import locations_of

    log_to_stderr()
    named_paths, judging_config = judging(config, paths or ())
    with progress_bar() as progress:
        replayed = replay(
            named_paths or locations_of(["."]), judging_config, progress, curves=True, compare=True
        )
    trainings = {replayed.trainings[run.run_pipeline.id]: run for run in reversed(replayed.runs)}
    pair = pair_body(*reversed(trainings.values())) if len(trainings) == 2 else None
    if pair is None and not replayed.comparisons:
        raise SentinelError(
            f"nothing to compare: of {len(trainings)} runs no two differ in one setting or in the seed alone"
        )
    if format_ is TextOrJson.JSON:
        import orjson

        body: ComparedBody = {
            "schema": 1,
            "pair": pair,
            "comparisons": [comparison_body(comparison) for comparison in replayed.comparisons],
        }
        typer.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
        return
    if pair is not None:
        print_lines(pair_lines(pair))
    for comparison in replayed.comparisons:
        print_lines([(0, title(comparison)), *((2, line) for line in statements(comparison))])
