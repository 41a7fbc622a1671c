"""A process that delivers to some sinks until nothing is left, for tests that kill it."""

import contextlib
import json
import subprocess
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


@contextlib.contextmanager
def delivering(state_dir, tables, start):
    """Such a process; it is killed at the end of the block."""
    command = [sys.executable, "-m", __name__, str(state_dir), json.dumps(tables), str(start)]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
