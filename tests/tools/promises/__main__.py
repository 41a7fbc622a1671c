"""`make promises`: what calibrations promise and what comes of it, into detectors/PROMISES.md.

How often public healthy runs page, by framework and length, goes to
sentinel/calibration/public_base_rate.json, and from there into detectors/FIGURES.md.

python -m tests.tools.promises [FOLDER]

FOLDER holds labelled logs (see tests/tools/strangers/labels.py), by default `shared/corpus` beside the
project.
"""

import sys
from pathlib import Path

from sentinel.calibration.public_base_rate import DATA as REFERENCE
from sentinel.calibration.public_base_rate import reference, written
from tests.tools.figures.page import PAGE as FIGURES
from tests.tools.figures.page import read, rendered
from tests.tools.promises.archive import judged
from tests.tools.promises.page import page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "detectors" / "PROMISES.md"


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
