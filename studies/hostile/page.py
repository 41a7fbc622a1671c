"""The page of what held and what fell."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from studies import MEASUREMENTS
from studies.hostile.attempt import Result
from tests.tools.docs import table

RESULTS = Path(__file__).with_name("results.json")
PAGE = MEASUREMENTS / "hostile.md"

_HEAD = """\
# Hostile inputs

`make hostile` writes this page. It gives sentinel logs that are damaged or made to harm it, receivers that
misbehave, states and archives that are damaged, full, locked or of another version, logs that another user
closed, processes that have the number of a training which is over, and a clock that is set while a watch
rests. Each input is tried alone, beside a sick run that is sound. `studies/hostile/` holds the inputs.

An input **holds** if all of these are true:

- Nothing ends with a traceback, and no command takes more than 20 seconds of the processor.
- The sick run beside it is found as without it.
- Nothing is read outside the given paths, and nothing is written beside a log.
- No control character of a log reaches the terminal, and no secret an error.
- A receiver that misbehaves is an error of that sink within its time.
- A damaged state or archive is one line, and an archive gives the same report after it was judged again.
- What was judged at other paths stays in an archive, and a clock that is set costs no notification.
- A log that may not be read is named, and a state or an archive that may not be read or written is one line.
- A process is not taken for the training because it has the number that a file, a log or a rank had.
- What a pattern of printed lines nearly matches takes at most 20 times as long as an ordinary log.

A cell says how many inputs hold, of how many.
"""


def read() -> tuple[str, list[Result]]:
    """Return the day of the last measurement, and what came of it."""
    kept = json.loads(RESULTS.read_text("utf-8"))
    return kept["date"], [Result(**one) for one in kept["results"]]


def write(date: str, results: Iterable[Result]) -> None:
    """Keep the results of a day, and write the page."""
    kept = [*results]
    content = {"date": date, "results": [asdict(result) for result in kept]}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    PAGE.write_text(rendered(date, kept), "utf-8")


def rendered(date: str, results: Sequence[Result]) -> str:
    """Return the whole page."""
    held = sum(not result.fell for result in results)
    parts = [f"{_HEAD}\nOn {date}, {held} of {len(results)} inputs held."]
    areas = dict.fromkeys(result.area for result in results)
    parts += [f"## {area}\n\n{_table([one for one in results if one.area == area])}" for area in areas]
    if held < len(results):
        fell = [[r.area, r.subject, r.harm, r.fell] for r in results if r.fell]
        parts.append(f"## What fell\n\n{table(['Area', 'What', 'How', 'Why'], fell)}")
    return "\n\n".join(parts) + "\n"


def _table(results: Sequence[Result]) -> str:
    """Return how many inputs of an area held: by harm, over all its subjects."""
    rows = []
    for harm in dict.fromkeys(result.harm for result in results):
        of_harm = [result for result in results if result.harm == harm]
        held = sum(not result.fell for result in of_harm)
        subjects = ", ".join(dict.fromkeys(result.subject for result in of_harm))
        rows.append([harm, f"{held} of {len(of_harm)}", subjects])
    return table(["Harm", "Held", "Tried on"], rows)
