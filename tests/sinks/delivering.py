"""A process that delivers to some sinks until nothing is left, for tests that kill it."""

import json
import sys
from pathlib import Path

from sentinel.sinks.delivery import Delivery
from sentinel.sinks.discovery import sink_types
from tests.manual_clock import ManualClock


def main(state_dir: str, tables: str, start: str) -> None:
    clock = ManualClock(float(start))
    sinks = [sink_types()[table["type"]](**table).open() for table in json.loads(tables)]
    with Delivery(Path(state_dir), sinks, clock) as delivery:
        while not delivery.drain(1e-3):
            clock.advance(0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
