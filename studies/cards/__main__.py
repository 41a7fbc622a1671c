"""Fits and measures the score cards on labelled logs.

python -m studies.cards fit FOLDER...       writes detectors/reading/claims/*.toml and measurements/cards.md
python -m studies.cards forest FOLDER...    writes detectors/reading/forest.json, from all folders as a whole
python -m studies.cards measure FOLDER...   prints figures of folds that the whole fit had not
python -m studies.cards looks FOLDER...     writes measurements/looks.md: what the cards say while runs go on

Below each FOLDER a directory of logs has a `label.json`. What was read and measured is kept in build/cards,
or in --cache: remove it after a change of the reader or of a measurement.
"""

import argparse
import json
from pathlib import Path

import msgspec
import polars as pl

from sentinel.detectors.reading.card_files import FOLDER
from sentinel.detectors.reading.forest import FOREST
from studies import MEASUREMENTS, ROOT
from studies.cards.figures import left_out, report
from studies.cards.forest import fit_forest
from studies.cards.labels import labels_below
from studies.cards.looks import page as page_of_looks
from studies.cards.looks import table_of_looks
from studies.cards.table import table_of
from studies.cards.verdicts import fit_all
from studies.cards.writing import page, write

PAGE = MEASUREMENTS / "cards.md"
LOOKS = MEASUREMENTS / "looks.md"
PAGING = {"warning", "critical"}

BUDGET = 0.005
"""Share of healthy runs that the cards may page in folds within a fit. New folds have about twice as many."""

NOTES = 0.04
"""The same with notes."""

CONSENT = 0.05
"""A rule needs an outcome that is among so few of the healthy ones."""


def pages_in(files: list[Path], homes: set[str]) -> dict[str, set[str]]:
    """Return the detectors that page, by labelled directory, in what `sentinel replay --format json` gave."""
    pages: dict[str, set[str]] = {}
    for file in files:
        for run in json.loads(file.read_text("utf-8"))["runs"]:
            path = Path(run["path"])
            home = next((str(p) for p in (path, *path.parents) if str(p) in homes), None)
            told = {
                incident["detector"]
                for incident in run["incidents"]
                if incident["severity"] in PAGING
                and not incident["inhibited_by"]
                and incident["maturity"] == "stable"
            }
            if home:
                pages.setdefault(home, set()).update(told)
    return pages


def main() -> None:
    """Run one of the four."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["fit", "forest", "measure", "looks"])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "cards")
    parser.add_argument("--budget", type=float, default=BUDGET)
    parser.add_argument("--until", type=float, default=1.0, help="measure when such a share was logged")
    parser.add_argument("--replays", type=Path, nargs="*", default=[], help="what the rules say, as JSON")
    parser.add_argument("--into", type=Path, default=FOLDER, help="where cards go")
    arguments = parser.parse_args()
    folders = [folder.resolve() for folder in arguments.folders]
    labels = labels_below(folders)
    if arguments.what == "looks":
        seen = [table_of_looks(folder, labels, arguments.cache) for folder in folders]
        LOOKS.write_text(page_of_looks(pl.concat(seen), labels), "utf-8")
        return
    table = pl.concat(
        [table_of(folder, labels, arguments.cache) for folder in folders], how="vertical_relaxed"
    )
    if arguments.what == "forest":
        FOREST.write_bytes(msgspec.json.encode(fit_forest(table, labels)) + b"\n")
        return
    if arguments.what == "measure":
        cut = [table_of(folder, labels, arguments.cache, arguments.until) for folder in folders]
        asked = pl.concat(cut, how="vertical_relaxed")
        told = lambda fold, _: print(f"fold {fold}", flush=True)  # noqa: E731
        found = left_out(table, labels, arguments.budget, NOTES, told, asked)
        print("\n".join(report(found, labels, pages_in(arguments.replays, {*labels}), CONSENT)))
        return
    judged = [home for home, label in labels.items() if label.healthy is not None]
    model = fit_all(table, labels, judged, arguments.budget, NOTES)
    arguments.into.mkdir(parents=True, exist_ok=True)
    for card in write(model, arguments.into):
        print(
            f"{card.claim}: {len(card.lines)} lines, of {card.most} points pages from {card.over.page_from:g}"
        )
    PAGE.write_text(page(model, table, labels), "utf-8")


if __name__ == "__main__":
    main()
