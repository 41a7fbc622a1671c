"""What a run printed, read once more from its files."""

from collections.abc import Iterator

from sentinel.runs.log import RunLog
from sentinel.sources.base import Line
from sentinel.sources.console.passages import seconds
from sentinel.sources.sidecars.output_files import OutputFiles

_MAX_PRINTED_LINES = 200_000  # of the log itself
_MAX_HISTORY_POLLS = 16  # of one log; each brings a megabyte or some hundred thousand points
_MAX_HISTORY_POINTS = 100_000  # of one poll, about


def printed_lines(log: RunLog) -> dict[str, list[Line]]:
    """Return all lines by the file that they stand in."""
    printed: dict[str, list[Line]] = {}
    if log.console is None or not log.console.origins:
        return printed
    if "" in log.console.origins:
        batch = log.run.source.poll({}, _MAX_HISTORY_POINTS)
        printed[""] = [*batch.lines]
        for _ in range(_MAX_HISTORY_POLLS):
            if not batch.more or len(printed[""]) > _MAX_PRINTED_LINES:
                break
            batch = log.run.source.poll(batch.cursor, _MAX_HISTORY_POINTS)
            printed[""] += batch.lines
    output = OutputFiles(log.run).poll({})
    for _ in range(_MAX_HISTORY_POLLS):
        for name, text in output.text.items():
            printed.setdefault(name, []).extend(_history_lines(text))
        if not output.more:
            break
        output = OutputFiles(log.run).poll(output.cursor)
    return printed


def _history_lines(text: str) -> Iterator[Line]:
    for line in text.split("\n")[:-1]:
        visible = line.rstrip("\r").rpartition("\r")[2]  # a progress bar overwrites what precedes it
        yield Line(seconds(visible), visible)
