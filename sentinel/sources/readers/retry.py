"""Asks over a network: each wait is bounded, and a pause follows each failure."""

import math
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import NoReturn, TypeVar

FIRST_PAUSE_SECONDS = 15.0  # after a first failure; each further one doubles it
_MAX_PAUSE_SECONDS = 900.0  # however long a server stays away
_ANSWER_SECONDS = 60.0  # for which an answer is waited for

NO_ANSWER = "no answer, or none that makes sense"

_T = TypeVar("_T")


class Unavailable(OSError):
    """The other side cannot be asked now. The text says why, and holds nothing that the other side sent."""


class Patience:
    """Asks one server. ``now`` is a clock that never goes back, and ``reason`` puts an error into words.

    Each question has a thread of its own, because a library may wait as long as a server tells it to. While
    one question waits, no other one is asked.
    """

    def __init__(self, now: Callable[[], float], reason: Callable[[Exception], str]) -> None:
        self._now = now
        self._reason = reason
        self._failures = 0
        self._until = -math.inf
        self._trouble = NO_ANSWER
        self._waiting: threading.Thread | None = None

    @property
    def waiting(self) -> bool:
        """Whether a question is still unanswered after it was given up."""
        return self._waiting is not None and self._waiting.is_alive()

    def ask(self, question: Callable[[], _T]) -> _T:
        """Return the answer. Raises Unavailable; during a pause it does so without asking."""
        if self._now() < self._until or self.waiting:
            raise Unavailable(self._trouble)
        outcomes: SimpleQueue[Callable[[], _T]] = SimpleQueue()
        self._waiting = threading.Thread(target=_answer, args=(question, outcomes), daemon=True)
        self._waiting.start()
        try:
            outcome = outcomes.get(timeout=_ANSWER_SECONDS)
            self._waiting = None
            answer = outcome()
        except Exception as error:  # noqa: BLE001  clients raise their own errors and those of many libraries
            pause = min(FIRST_PAUSE_SECONDS * 2**self._failures, _MAX_PAUSE_SECONDS)
            self._until = self._now() + pause
            self._failures = self._failures + 1
            self._trouble = str(error) if isinstance(error, Unavailable) else self._reason(error)
            raise Unavailable(self._trouble) from None
        self._failures = 0
        return answer


def _answer(question: Callable[[], _T], outcomes: "SimpleQueue[Callable[[], _T]]") -> None:
    """Ask, and put a function into ``outcomes`` that returns the answer or raises the error of asking."""
    try:
        answer = question()
    except Exception as error:  # noqa: BLE001  as above
        outcomes.put(partial(_raise, error))
    else:
        outcomes.put(lambda: answer)


def _raise(error: Exception) -> NoReturn:
    raise error
