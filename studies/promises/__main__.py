"""`make promises`: what calibrations promise and what comes of it, into measurements/promises.md.

How often public healthy runs page, by framework and length, goes to
sentinel/calibration/public_base_rate.json, and from there into measurements/figures.md.

python -m studies.promises [FOLDER]

FOLDER holds labelled logs (see studies/strangers/labels.py), by default `shared/corpus` beside the
project.
"""

import sys
from pathlib import Path

from sentinel.calibration.public_base_rate import DATA as REFERENCE
from sentinel.calibration.public_base_rate import reference, written
from studies import MEASUREMENTS, ROOT
from studies.figures.page import PAGE as FIGURES
from studies.figures.page import read, rendered
from studies.promises.archive import judged
from studies.promises.page import page

PAGE = MEASUREMENTS / "promises.md"


def main(folder: Path) -> None:
    """Judge the logs and the fleets, and write the page."""
    archive = judged(folder)
    REFERENCE.write_text(written(archive.pages), "utf-8")
    reference.cache_clear()
    FIGURES.write_text(rendered(read()), "utf-8")
    PAGE.write_text(page(archive.pages, archive.repositories), "utf-8")
    print(PAGE.read_text("utf-8"))


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]).resolve() if sys.argv[1:] else ROOT.parent / "shared" / "corpus")
