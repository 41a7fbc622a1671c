"""`make fleets`: trains the fleets, judges their logs and writes detectors/SIBLINGS.md."""

import warnings
from pathlib import Path

from tests.tools.fleets.logs import train_all
from tests.tools.fleets.measure import measure
from tests.tools.fleets.page import PAGE, rendered
from tests.tools.fleets.seeds import measure_seeds

LOGS = Path(__file__).parents[3] / ".venv" / "fleets"

if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)  # some faults overflow, as they should
    train_all(LOGS)
    PAGE.write_text(rendered(measure(LOGS), measure_seeds(LOGS)))
