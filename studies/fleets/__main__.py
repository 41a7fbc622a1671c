"""`make fleets`: trains the fleets, judges their logs and writes measurements/siblings.md."""

import warnings
from pathlib import Path

from studies.fleets.logs import train_all
from studies.fleets.measure import measure
from studies.fleets.page import PAGE, rendered
from studies.fleets.seeds import measure_seeds

LOGS = Path(__file__).parents[2] / ".venv" / "fleets"

if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)  # some faults overflow, as they should
    train_all(LOGS)
    PAGE.write_text(rendered(measure(LOGS), measure_seeds(LOGS)))
