"""The table of what is told of each silent error."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from studies import MEASUREMENTS
from tests.tools.docs import table

RESULTS = Path(__file__).with_name("results.json")
PAGE = MEASUREMENTS / "silent.md"

_HEAD = """\
# Silent errors in real trainings

`make silent` writes this page. It trains each of these errors on a CPU with PyTorch and TensorBoard, with
three seeds, and each time the same training without the error, the *twin*. Each training writes two logs:
one with the metrics that a trainer logs, and one that holds the numbers of `sentinel.probe` as well. Then it
replays the logs. `studies/silent/` holds the trainings.

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


@dataclass(frozen=True)
class Outcome:
    """What is told of a silent error. Each of the entries of the catalogue is a right cause."""

    name: str
    title: str
    catalogue: Sequence[str]
    is_held_out: bool
    seeds: Sequence[Told]


def read() -> list[Outcome]:
    """What was told last."""
    kept = json.loads(RESULTS.read_text("utf-8"))
    return [Outcome(**{**one, "seeds": [Told(**seed) for seed in one["seeds"]]}) for one in kept]


def write(outcomes: Iterable[Outcome]) -> None:
    """Keep the outcomes, and write the page."""
    kept = list(outcomes)
    RESULTS.write_text(json.dumps([asdict(outcome) for outcome in kept], indent=1) + "\n", "utf-8")
    PAGE.write_text(rendered(kept), "utf-8")


def rendered(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    tuned, held_out = ([one for one in outcomes if one.is_held_out is held] for held in (False, True))
    return f"{_HEAD}\n{_part(tuned)}\n{_HELD_OUT}\n{_part(held_out)}"


def _part(outcomes: Sequence[Outcome]) -> str:
    """A sentence and a table about some of the errors."""
    rows = []
    with_probes = 0
    alone = 0
    rang = 0
    for outcome in outcomes:
        seeds = outcome.seeds
        right = outcome.catalogue
        named = [detectors(seed.broken_with, right) for seed in seeds]
        metrics = [detectors(seed.broken_without, right) for seed in seeds]
        any_warning = sum(bool(seed.broken_without) for seed in seeds)
        twins = sum(bool(seed.healthy_with) for seed in seeds)
        with_probes = with_probes + all(named)
        alone = alone + all(metrics)
        rang = rang + twins
        by = sorted({f"`{detector}`" for names in named for detector in names})
        rows.append(
            [
                f"{outcome.name} ({', '.join(right)}): {outcome.title}",
                f"{sum(map(bool, named))} of {len(seeds)} {', '.join(by)}",
                f"{sum(map(bool, metrics))} of {len(seeds)} ({any_warning})",
                f"{twins} of {len(seeds)}",
            ]
        )
    twins_of_all = sum(len(outcome.seeds) for outcome in outcomes)
    summary = (
        f"Of {len(rows)} errors, {with_probes} are told with the right cause first for every seed, and "
        f"{alone} by metrics alone. Of {twins_of_all} twins, {rang} rang."
    )
    return f"{summary}\n\n{table(['Error', 'With probes', 'Metrics alone', 'Twins'], rows)}\n"


def detectors(incidents: Incidents, right: Sequence[str]) -> list[str]:
    """The detectors of the warnings whose first cause is a right one."""
    return [detector for detector, *causes in incidents if causes and causes[0] in right]
