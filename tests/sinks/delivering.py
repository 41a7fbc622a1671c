"""A process that delivers to a webhook until nothing is left, for tests that kill it."""

import sys
from pathlib import Path

from sentinel.sinks.delivery import Delivery
from sentinel.sinks.webhook import WebhookConfig
from tests.manual_clock import ManualClock


def main(state_dir: str, url: str, start: str) -> None:
    clock = ManualClock(float(start))
    with Delivery(Path(state_dir), [WebhookConfig(url=url, timeout_seconds=0.2).open()], clock) as delivery:
        while not delivery.drain(1e-3):
            clock.advance(0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
