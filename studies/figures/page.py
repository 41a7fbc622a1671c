"""The figures as data, and as the page that people read."""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sentinel.calibration.page_rates import Rate
from sentinel.calibration.public_base_rate import ENOUGH as ENOUGH_RUNS
from sentinel.calibration.public_base_rate import reference
from sentinel.detectors.api import Declaration, Detector
from sentinel.detectors.discovery import all_detectors
from studies import MEASUREMENTS
from studies.figures import by_run
from studies.figures.measure import FAULTY, HEALTHY, NOISES, Figures, Real, simulable

DATA = Path(__file__).with_name("figures.json")
PAGE = MEASUREMENTS / "figures.md"

MIN_RECALL = 0.9
"""Share of the sick runs of `ENOUGH` points that a stable detector finds where the noise is smallest."""

ENOUGH = 1_000

UNSEEN = (
    "dead-activation-growth",
    "loss-scale-collapse",
    "loss-scales-with-padding",
    "update-ratio-out-of-band",
)
"""Stable detectors that have judged no healthy log of other people (`make strangers` counts these)."""

HEAD = """# Figures of the detectors

How often each detector is wrong on healthy runs, how many sick runs it finds, and how soon.

## How to read this page

A **healthy run** is simulated: a supervised training with any usual schedule, a policy of a language model
or of a control task, or a preference training. Every fourth one is resumed from a checkpoint. A **sick run**
is a healthy one with the fault that the detector is made for. The **noise** of what a run logs is 1, 5 or
20 % of its level, with an autocorrelation of 0, 0.3 or 0.6 and with normal or heavy tails. A point is logged
every 1, 10 or 100 steps; for a detector that judges evaluations a point is an evaluation.

- **False alarms** are incidents on healthy runs, for each million points, at noise of 1, 5 and 20 %.
  Incidents of severity warning and critical count, and for a detector that only informs, all.
- **Real logs** are healthy trainings whose logs real frameworks wrote (`tests/frameworks`,
  `tests/detectors/trainings`, `sample_logs/healthy-*`): the false alarms on them, of so many points.
- **Found** is the share of sick runs with an incident, by the points of a run, at noise of 5 %.
- **Delay** is the median time from the onset of the fault to the incident, as a share of what is left of the
  run, for runs of {enough:,} points at noise of 5 %.

## The standard

At most one healthy run in {one_in} may ring a stable detector, at each length from {shortest} to {longest:,}
points. The same holds for each noise of 1, 5 and 20 %, white or correlated (0.6), where chance allows one
more. At most one in {together} may ring any of them. A stable detector also raises no false alarm on real
logs, and finds {recall:.0%} of the sick runs of {enough:,} points at noise of 1 %.
`studies/figures/test_figures.py` holds this for every detector. A **preview** is not there yet, or has
not been seen on enough real runs; where its figures fall short of the standard, the table says how.

**What these figures do not say.** One simulator makes the healthy and the sick runs, so a detector can fit
its shapes better than it fits the world. Healthy runs that rest on a plateau, spike by themselves, change
their data on the way, route tokens to experts, or pass over each batch of a policy many times are not in it.
None in n runs still allows a rate of 3/n (95 %), which the table by run says; at {longest:,} points the runs
are too few to prove the standard. A detector whose pages wait until the run looks ill as a whole, such as
`generalization-gap`, is measured without that second look, so a watch pages less often.

**Found** rests, for each noise, on {faulty} points. What {unseen} judge,
no healthy log of other people shows, only trainings of our own (`tests/detectors/trainings/probed.py`, the
twins of [faults.md](faults.md)) and simulated ones.

{others} judges what the reading of numbers without a meaning tells, which the simulation does not draw;
`tests/series/test_unmapped_shape.py` holds that healthy noise tells nothing.

Run checks judge a run as a whole and have no points: {checks}. `tests/detection/test_run_checks.py` and
`tests/detectors/test_every_run_check.py` hold those; `tests/catalogue/console_lines.toml` shows which console
lines they find and which healthy ones they leave alone.

## How to repeat it

`make detector-figures` measures every detector and writes this page; on two idle cores that takes some twenty
minutes. `python -m studies.figures NAME...` measures single detectors, `python -m
studies.figures.by_run` only the false alarms by run, of all. The runs are drawn from fixed seeds, so the
figures are the same each time. `studies/figures/healthy.py` and `studies/figures/sick.py` say how the
runs look.

"""


@dataclass(frozen=True)
class Measured:
    """All figures of one detector."""

    real: Real
    lengths: Sequence[Figures]

    @property
    def judged(self) -> int:
        """Healthy points of all lengths, a third of them for each noise."""
        return sum(one.judged for one in self.lengths)

    @property
    def alarms(self) -> Sequence[int]:
        """False alarms by noise."""
        return [sum(of_noise) for of_noise in zip(*(one.alarms for one in self.lengths), strict=True)]

    @property
    def rates(self) -> Sequence[float]:
        """The same for each million points."""
        return [1e6 * alarms / (self.judged / len(NOISES)) for alarms in self.alarms]


def shortfalls(name: str, one: Measured) -> list[str]:
    """In which ways a detector with these figures falls short of the standard of a stable one."""
    recall = next(length for length in one.lengths if length.points == ENOUGH).recall[0]
    falls_short = {
        "false alarms on real logs": one.real.alarms > 0,
        f"finds {recall:.0%}": recall < MIN_RECALL,
    }
    return [*by_run.broken(by_run.read()[name]), *(text for text, holds in falls_short.items() if holds)]


def read() -> dict[str, Measured]:
    """The figures by detector, as they were measured last."""
    return {
        name: Measured(Real(**one["real"]), [Figures(**length) for length in one["lengths"]])
        for name, one in json.loads(DATA.read_text()).items()
    }


def write(measured: Mapping[str, Measured]) -> None:
    """Keep the figures and write the page."""
    in_order = dict(sorted(measured.items()))
    rows = [f"  {json.dumps(name)}: {json.dumps(asdict(one))}" for name, one in in_order.items()]
    DATA.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    PAGE.write_text(rendered(in_order))


def rendered(measured: Mapping[str, Measured]) -> str:
    """The page."""
    rules = all_detectors()
    unpointed = sorted(name for name, one in rules.items() if not isinstance(one, Detector))
    faulty = ", ".join(f"{runs} runs of {points:,}" for points, runs in FAULTY.items())
    runs = by_run.read()
    head = HEAD.format(
        enough=ENOUGH,
        recall=MIN_RECALL,
        checks=", ".join(f"`{name}`" for name in unpointed),
        others=", ".join(f"`{name}`" for name in sorted({*rules} - {*simulable()} - {*unpointed})),
        faulty=faulty,
        one_in=by_run.ONE_IN,
        together=by_run.ONE_IN_TOGETHER,
        shortest=min(by_run.RUNS),
        longest=max(by_run.RUNS),
        unseen=", ".join(f"`{name}`" for name in UNSEEN),
    )
    return (
        head
        + _summary(measured, rules)
        + "\n## False alarms by run\n\nHealthy runs that ring a detector, of so many of each length, over "
        "all noises, white and correlated, with the rate that none in so many still allows (95 %). A dash: "
        "not measured since the detector changed last, or not yet.\n\n"
        + _table(("Detector", *(f"{points:,} points" for points in by_run.RUNS)), _of_runs(runs))
        + "\nThe healthy runs of other people, by the points of the metric that has most: of how many a "
        "stable detector rang (`make strangers`).\n\n"
        + _strangers()
        + "\nHow many public runs that people called healthy paged at all, by framework and by the mean "
        "points of their metrics: what `sentinel calibrate` sets beside fewer than "
        f"{ENOUGH_RUNS} runs of one's own (`make promises`). Verdicts have no score that is comparable over "
        "runs, so these are counts and no quantiles. Frameworks with fewer than "
        f"{_MIN_PUBLIC} runs are left out here.\n\n"
        + _table(("Framework", *_PUBLIC_LENGTHS.values()), _public())
        + "".join(
            f"\n## {title} in detail\n\nBy the points of a run, at noise of 1, 5 and 20 %.\n\n"
            + _table(("Detector", *_LENGTHS), _by_length(measured, cell))
            for title, cell in _DETAILS.items()
        )
    )


def _of_runs(rang: Mapping[str, by_run.Lengths]) -> Iterable[Sequence[str]]:
    named = {f"`{name}`": of for name, of in rang.items()}
    for title, of in {"all stable ones that were measured": by_run.together(rang), **named}.items():
        yield (title, *(_a_length(of.get(points, ())) for points in by_run.RUNS))


def _a_length(cells: Sequence[tuple[int, int]]) -> str:
    runs, rang = map(sum, zip(*cells, strict=True)) if cells else (0, 0)
    bound = f", at most {300 / runs:.2g} %" if runs and not rang else ""
    return f"{rang} of {runs:,}{bound}" if runs else "-"


def _strangers() -> str:
    """The table of measurements/strangers.md on healthy runs by length."""
    told = PAGE.with_name("strangers.md").read_text("utf-8")
    lines = told.partition("## Healthy runs flagged, by length")[2].strip().splitlines()
    return "\n".join(itertools.takewhile(lambda line: line.startswith("|"), lines)) + "\n"


_MIN_PUBLIC = 5
_PUBLIC_LENGTHS = {100: "up to 100", 1_000: "up to 1,000", float("inf"): "more"}


def _public() -> Iterable[Sequence[str]]:
    """The reference of `sentinel calibrate`."""
    rates: dict[str, dict[float, Rate]] = {}
    for stratum, public in reference().items():
        rates.setdefault(stratum.framework, {})[stratum.up_to] = public.rate()
    for framework, of in sorted(rates.items()):
        if sum(rate.units for rate in of.values()) >= _MIN_PUBLIC:
            cells = (of.get(up_to, Rate(0, 0)) for up_to in _PUBLIC_LENGTHS)
            yield framework or "not known", *(f"{rate.pages} of {rate.units}" for rate in cells)


_LENGTHS = tuple(f"{points:,} points" for points in HEALTHY)


def _summary(measured: Mapping[str, Measured], rules: Mapping[str, Declaration]) -> str:
    middle = len(NOISES) // 2
    rows = []
    for name, one in measured.items():
        enough = next(length for length in one.lengths if length.points == ENOUGH)
        rows.append(
            (
                f"`{name}`",
                ": ".join((rules[name].maturity, *filter(None, ["; ".join(shortfalls(name, one))]))),
                f"{one.judged:,}",
                " / ".join(f"{rate:.1f}" for rate in one.rates),
                f"{one.real.alarms} of {one.real.judged:,}",
                *(f"{length.recall[middle]:.2f}" for length in one.lengths),
                _delay(enough.delay[middle]),
            )
        )
    titles = ("Detector", "Maturity", "Healthy points", "False alarms", "Real logs")
    return "## The figures\n\n" + _table((*titles, *(f"Found, {n}" for n in _LENGTHS), "Delay"), rows)


def _delay(late: float | None) -> str:
    return "-" if late is None else f"{late:.2f}"


_DETAILS: Mapping[str, Callable[[Figures], str]] = {
    "False alarms": lambda one: " / ".join(map(str, one.alarms)),
    "Recall": lambda one: " / ".join(f"{share:.2f}" for share in one.recall),
    "Delay": lambda one: " / ".join(map(_delay, one.delay)),
}


def _by_length(measured: Mapping[str, Measured], cell: Callable[[Figures], str]) -> Iterable[Sequence[str]]:
    return ((f"`{name}`", *map(cell, one.lengths)) for name, one in measured.items())


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (titles, ["---"] * len(titles), *rows)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
