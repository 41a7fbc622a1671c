"""One try to send, and the pause after a try that failed."""

from collections.abc import Callable
from hashlib import blake2b

from sentinel.sinks.base import SinkError, Transient

MAX_PAUSE_SECONDS = 300.0


def attempt(send: Callable[[], str | None]) -> tuple[str | None, SinkError | None]:
    """Call ``send`` once. Gives what it gave, and the error if the sink did not take it. Never raises."""
    try:
        return send(), None
    except SinkError as error:
        return None, error
    except Exception as error:  # noqa: BLE001 - a defect of one sink stops neither it nor the others
        return None, Transient(
            f"the sink failed with {type(error).__name__}"
        )  # its text may hold the address


def pause_seconds(key: str, failures: int) -> float:
    """Return the pause after this many failed tries: at least half of a limit that doubles with each try.

    The share depends on the key, so that watches that failed together do not retry together.
    """
    longest = min(2.0 ** min(failures, 30), MAX_PAUSE_SECONDS)
    share = int.from_bytes(blake2b(f"{key} {failures}".encode(), digest_size=4).digest()) / 2**32
    return longest * (0.5 + 0.5 * share)
