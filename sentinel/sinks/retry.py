"""One try to send, and the pause after a try that failed."""

from collections.abc import Callable
from hashlib import blake2b

from sentinel.sinks.base import SinkError, Transient

MAX_PAUSE_SECONDS = 300.0  # between two tries


def attempt(send: Callable[[], str | None]) -> tuple[str | None, SinkError | None]:
    """Call ``send`` once. Return its result, and the error if the message was not delivered. Never raises."""
    try:
        return send(), None
    except SinkError as error:
        return None, error
    except Exception as error:  # noqa: BLE001 - a defect of one sink stops neither it nor the others
        # Its text may hold the address.
        return None, Transient(f"the sink failed with {type(error).__name__}")


def pause_seconds(key: str, failures: int) -> float:
    """Return the pause after this many failed tries: at least half of a limit that doubles with each try.

    The rest depends on the key, so that watches that failed together do not retry together.
    """
    limit = min(2.0 ** min(failures, 30), MAX_PAUSE_SECONDS)
    fraction = int.from_bytes(blake2b(f"{key} {failures}".encode(), digest_size=4).digest()) / 2**32
    return limit * (0.5 + 0.5 * fraction)
