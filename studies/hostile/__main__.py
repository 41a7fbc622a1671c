"""Tries all hostile inputs and writes the page: ``python -m studies.hostile [AREA...]``."""

import logging
import sys
from datetime import UTC, datetime
from itertools import chain

from studies.hostile import lines, logs, others, receivers, states
from studies.hostile.attempt import Attempt, Result, tried
from studies.hostile.page import RESULTS, read, write

_AREAS = [logs.AREA, lines.AREA, receivers.AREA, states.STATES, states.ARCHIVES, others.USERS, others.NUMBERS]


def main() -> None:
    """Try the inputs of the areas that are named, or all; the others keep their results."""
    logging.disable(logging.CRITICAL)  # what is said of each input is not the measurement
    areas = {*sys.argv[1:]}
    everything = chain(*(part.attempts() for part in (logs, lines, receivers, states, others)))
    chosen: list[Attempt] = [attempt for attempt in everything if not areas or attempt.area in areas]
    results = tried(chosen, _report)
    if areas and RESULTS.exists():
        earlier = [one for one in read()[1] if one.area not in areas]
        results = sorted([*earlier, *results], key=lambda result: _AREAS.index(result.area))
    write(datetime.now(UTC).date().isoformat(), results)
    print(f"{sum(not result.fell for result in results)} of {len(results)} held")


def _report(result: Result) -> None:
    if result.fell:
        print(f"{result.area}, {result.subject}, {result.harm}: {result.fell}", flush=True)


main()
