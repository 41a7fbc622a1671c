"""`python -m studies.outcomes FOLDER... [--verbose]`: how often the outcome of a run is found.

Each FOLDER holds logs whose runs are in outcomes.tsv, under the name of the folder. Printed are the shares of
runs whose outcome is found with the right direction and split ("found"), and in which it has a signal that
detectors judge in this way ("judged"), by kind and by part of the table.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentinel.pipeline import Pipeline
from sentinel.runs.log import RunOverview
from sentinel.series.roles.assignment import role_of_signal
from sentinel.series.roles.role import Source
from sentinel.sources.discovery import discover, locations_of
from studies.outcomes.table import KINDS, NOTHING, PARTS, Row, rows

_POINTS = 300_000  # that are read at once


@dataclass(frozen=True)
class _Result:
    row: Row
    overview: RunOverview

    @property
    def is_found(self) -> bool:
        """Whether the product finds this outcome, or rightly none."""
        outcome = self.overview.outcome
        if outcome is None or self.row.kind == NOTHING:
            return outcome is None and self.row.kind == NOTHING
        if outcome.tag != self.row.outcome:
            return outcome.tag in self.row.also_right
        return (outcome.role.direction, outcome.split) == (self.row.direction, self.row.split)

    @property
    def is_judged(self) -> bool:
        """Whether the outcome has a signal of this direction and split."""
        tags = {self.row.outcome, *self.row.also_right}
        signals = self.overview.understanding.signals.items()
        roles = [
            role_of_signal(signal, Source.NAME, "")
            for signal, signal_tags in signals
            if not tags.isdisjoint(signal_tags)
        ]
        return any(
            role is not None
            and role.is_outcome_like
            and (role.direction, role.split) == (self.row.direction, self.row.split)
            for role in roles
        )


def results(folder: Path, truth: Mapping[tuple[str, str], Row]) -> Iterator[_Result]:
    """Read the runs of a folder that stand in the table, and yield what the product says of them."""
    pipeline = Pipeline((), {}, {})
    for run in discover(locations_of([str(folder)])).runs:
        row = truth.get((f"{folder.name}/{Path(str(run.path)).relative_to(folder)}", run.format))
        if row is None:
            continue
        run_pipeline = pipeline.track(run, row.path)
        while True:
            (advance,) = pipeline.advance([run_pipeline], _POINTS)
            if not advance.more:
                break
        yield _Result(row, run_pipeline.log.overview())


def table(judged: Sequence[_Result]) -> Iterator[str]:
    """Yield the table of the shares, line by line."""
    groups: dict[str, list[_Result]] = {}
    for part in PARTS:
        groups[f"{part} part"] = [one for one in judged if one.row.part == part and one.row.kind != NOTHING]
    for kind in KINDS:
        groups[kind] = [one for one in judged if one.row.kind == kind]
    groups["all"] = [one for one in judged if one.row.kind != NOTHING]
    yield f"{'':15}  runs  found  judged"
    for name, members in groups.items():
        count = len(members)
        found = sum(one.is_found for one in members)
        signals = sum(one.is_judged for one in members)
        yield f"{name:15} {count:5} {found / max(count, 1):6.3f} {signals / max(count, 1):7.3f}"
    without = Counter(one.is_found for one in judged if one.row.kind == NOTHING)
    yield f"{'no outcome':15} {without.total():5} {without[True] / max(without.total(), 1):6.3f}"


def main(folders: Sequence[Path], verbose: bool) -> None:
    """Measure the product on the runs of these folders."""
    truth = {(row.path, row.format): row for row in rows()}
    judged = [result for folder in folders for result in results(folder.absolute(), truth)]
    for result in judged if verbose else ():
        if not result.is_found:
            outcome = result.overview.outcome
            choice = f"{outcome.tag} ({outcome.split}, {outcome.why})" if outcome else "none"
            print(f"{result.row.path}: {result.row.outcome} ({result.row.split}), not {choice}")
    print("\n".join(table(judged)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+")
    parser.add_argument("--verbose", action="store_true", help="also the runs whose outcome is not found")
    arguments = parser.parse_args()
    main(arguments.folders, arguments.verbose)
