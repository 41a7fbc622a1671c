"""One try of a hostile input, and what came of it."""

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sentinel.common.processor_budget import ProcessorBudget, ProcessorTimeExceeded
from sentinel.common.text import clean_text

MAX_SECONDS = 20.0
"""Of the processor, for one input. What is sound takes less than one."""


class Fell(Exception):
    """An input did what none may do."""


@dataclass(frozen=True)
class Attempt:
    """A hostile input: what it is about, such as a reader, how it is harmed, and what tries it in a directory
    of its own, which raises an error unless it holds.
    """

    area: str
    subject: str
    harm: str
    run: Callable[[Path], None]


@dataclass(frozen=True)
class Result:
    """What came of an attempt: ``fell`` says why it did not hold, and is empty if it did."""

    area: str
    subject: str
    harm: str
    fell: str


def tried(attempts: Iterable[Attempt], report: Callable[[Result], None]) -> list[Result]:
    """Try all, and report on each."""
    results = []
    for attempt in attempts:
        with TemporaryDirectory(prefix="hostile-") as place:
            result = Result(attempt.area, attempt.subject, attempt.harm, _why_it_fell(attempt, Path(place)))
        report(result)
        results.append(result)
    return results


def require(holds: object, why: str) -> None:
    """Raise Fell unless something holds."""
    if not holds:
        raise Fell(why)


def _why_it_fell(attempt: Attempt, place: Path) -> str:
    try:
        ProcessorBudget(MAX_SECONDS)(lambda: attempt.run(place))
    except ProcessorTimeExceeded:
        return f"took more than {MAX_SECONDS:.0f} s of the processor"
    except Fell as error:
        return clean_text(str(error))
    except Exception as error:  # noqa: BLE001  any error counts
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return clean_text(f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {error}")
    return ""
