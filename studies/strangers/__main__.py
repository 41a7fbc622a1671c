"""`make strangers`: judges strangers' labelled logs, by detector, variant, fold and repository.

python -m studies.strangers [FOLDER] [--left-out FOLD]

Below FOLDER, by default `shared` beside the project, each directory of logs has a `label.json` (labels.py).
The tables that name no log go to measurements/strangers.md, all of them to build/strangers/, with the
outcomes as JSON.
How likely catalogue entries are goes to sentinel/incidents/likelihoods.toml, which sentinel reads.
The runs of the fold that is left out are counted, but not named: who sets a threshold by the other folds
does not see them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from msgspec import structs

from studies import MEASUREMENTS, ROOT
from studies.strangers.judge import Outcome, judged
from studies.strangers.labels import read
from studies.strangers.likelihoods import cases, fitted, text
from studies.strangers.page import details, page

FOLDER = ROOT.parent / "shared"
PAGE = MEASUREMENTS / "strangers.md"
LIKELIHOODS = ROOT / "sentinel" / "incidents" / "likelihoods.toml"
DETAILS = ROOT / "build" / "strangers"


def main(folder: Path, left_out: int | None) -> None:
    """Judge all logs and write the tables."""
    labels = [*read(folder)]
    if not labels:
        sys.exit(f"{folder}: no label.json below; make strangers FOLDER=<folder of labelled logs> names one")
    outcomes = judged(folder, labels)
    PAGE.write_text(page(outcomes) + "\n", "utf-8")
    if named := cases(outcomes):
        LIKELIHOODS.write_text(text(fitted(named)), "utf-8")
    DETAILS.mkdir(parents=True, exist_ok=True)
    (DETAILS / "strangers.md").write_text(details(outcomes, left_out), "utf-8")
    (DETAILS / "strangers.json").write_text(data(outcomes), "utf-8")
    print(page(outcomes).partition("## By detector")[0].partition("\n## ")[2])
    print(f"Each variant, repository, miss and false alarm: {DETAILS / 'strangers.md'}")


def data(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as JSON."""
    rows = [
        {**asdict(one), "found": one.found, "wanted": one.wanted, "hits": one.hits, "wrong": one.wrong}
        for one in outcomes
    ]
    return json.dumps(
        rows, indent=1, default=lambda one: sorted(one) if isinstance(one, frozenset) else structs.asdict(one)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--left-out", type=int, metavar="FOLD")
    arguments = parser.parse_args()
    main(arguments.folder.resolve(), arguments.left_out)
