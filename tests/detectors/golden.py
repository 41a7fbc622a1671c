"""The goldens of the detectors of sentinel; `sentinel.testing.golden` says what a golden is.

``golden/<snake_name>.md`` is that of a detector. ``python -m tests.detectors.golden --write`` fills in all
expect blocks; read the difference before you believe it.

Below its title a golden says how the metric of the detector goes wrong; see `tests/detectors/onsets.py`.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.testing import golden
from sentinel.testing.golden import TAG as TAG
from sentinel.testing.golden import Scenario as Scenario
from sentinel.testing.golden import Stream as Stream
from sentinel.testing.golden import judge as judge
from sentinel.testing.golden import message as message
from sentinel.testing.golden import rendered as rendered
from sentinel.testing.golden import series_windows as series_windows
from sentinel.testing.golden import windows as windows

FOLDER = Path(__file__).parent / "golden"


def path_of(detector: Detector) -> Path:
    """Where the detector's golden lies."""
    return FOLDER / f"{detector.name.replace('-', '_')}.md"


@cache
def shipped() -> Mapping[str, Sequence[Scenario]]:
    """The scenarios of every detector, by its name."""
    found = (one for one in all_detectors().values() if isinstance(one, Detector))
    return {detector.name: scenarios(detector) for detector in found}


def scenarios(detector: Detector) -> list[Scenario]:
    """The scenarios that stand in a detector's golden now, none if it has no golden yet."""
    return golden.scenarios(detector, path_of(detector))


def rewrite(detector: Detector) -> None:
    """Fill in the expect blocks of the detector's golden."""
    golden.rewrite(detector, path_of(detector))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.detectors.golden --write")
    for one in all_detectors().values():
        if isinstance(one, Detector) and path_of(one).exists():
            rewrite(one)
