"""The table of what is told of each silent error."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.tools.docs import table

if TYPE_CHECKING:
    from tests.tools.silent.error import SilentError

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[3] / "detectors" / "SILENT.md"

_HEAD = """\
# Silent errors in real trainings

`make silent` writes this page. It trains each of these errors on a CPU with PyTorch and TensorBoard, with
three seeds, and each time the same training without the error, the *twin*. Each training writes two logs:
one with the metrics that a trainer logs, and one that holds the numbers of `sentinel.probe` as well. Then it
replays the logs. `tests/tools/silent/` holds the trainings.

The errors are written after published classes of silent errors.

- **With probes**: of how many seeds a warning names a right cause first, and the detectors of those warnings.
- **Metrics alone**: the same of the log without probes. In brackets stand seeds that have a warning of any
  cause.
- **Twins**: warnings on the healthy twins, with probes.
"""

_HELD_OUT = """\
## Errors that nothing was tuned on

The errors above were used while the probes and detectors were written, so they show what is found, and not
how much of what is unknown will be. These are of the same classes, in other models and of other magnitudes.
They were written afterwards. At the first judgement 7 of the 8 were told and no twin rang; the dropout of an
LSTM was missed, because the probe knew only modules that are a dropout and nothing else. It was mended since,
so the table shows it as told.
"""

Incidents = Sequence[Sequence[str]]
"""Of each warning its detector and its causes, the likeliest first."""


@dataclass(frozen=True)
class Told:
    """What is told of one seed."""

    broken_with: Incidents
    broken_without: Incidents
    healthy_with: Incidents
    healthy_without: Incidents


def read() -> dict[str, list[Told]]:
    """What was told last, by error."""
    kept = json.loads(RESULTS.read_text("utf-8"))
    return {name: [Told(**one) for one in seeds] for name, seeds in kept.items()}


def write(results: Mapping[str, Sequence[Told]], errors: "Mapping[str, SilentError]") -> None:
    """Keep the results, and write the page."""
    kept = {name: [asdict(one) for one in seeds] for name, seeds in results.items()}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    PAGE.write_text(rendered(results, errors), "utf-8")


def rendered(results: Mapping[str, Sequence[Told]], errors: "Mapping[str, SilentError]") -> str:
    """The whole page."""
    tuned = {name: seeds for name, seeds in results.items() if not errors[name].is_held_out}
    held_out = {name: seeds for name, seeds in results.items() if name not in tuned}
    return f"{_HEAD}\n{_part(tuned, errors)}\n{_HELD_OUT}\n{_part(held_out, errors)}"


def _part(results: Mapping[str, Sequence[Told]], errors: "Mapping[str, SilentError]") -> str:
    """A sentence and a table about some of the errors."""
    rows, with_probes, alone, rang = [], 0, 0, 0
    for name, seeds in results.items():
        right = errors[name].catalogue
        named = [detectors(one.broken_with, right) for one in seeds]
        metrics = [detectors(one.broken_without, right) for one in seeds]
        any_warning = sum(bool(one.broken_without) for one in seeds)
        twins = sum(bool(one.healthy_with) for one in seeds)
        with_probes, alone, rang = with_probes + all(named), alone + all(metrics), rang + twins
        by = sorted({f"`{detector}`" for of in named for detector in of})
        causes = ", ".join(right)
        rows.append(
            [
                f"{name} ({causes}): {errors[name].title}",
                f"{sum(map(bool, named))} of {len(seeds)} {', '.join(by)}",
                f"{sum(map(bool, metrics))} of {len(seeds)} ({any_warning})",
                f"{twins} of {len(seeds)}",
            ]
        )
    count = len(rows)
    summary = (
        f"Of {count} errors, {with_probes} are told with the right cause first for every seed, and {alone} "
        f"by metrics alone. Of {sum(map(len, results.values()))} twins, {rang} rang."
    )
    return f"{summary}\n\n{table(['Error', 'With probes', 'Metrics alone', 'Twins'], rows)}\n"


def detectors(incidents: Incidents, right: Sequence[str]) -> list[str]:
    """The detectors of the warnings whose first cause is a right one."""
    return [detector for detector, *causes in incidents if causes and causes[0] in right]
