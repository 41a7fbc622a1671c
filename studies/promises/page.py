"""The page of promises, kept and broken."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from sentinel.calibration.e_process import PATIENCE, PROMISED_PAGES
from sentinel.calibration.page_statistics import Pages
from sentinel.calibration.thresholds import drifted
from sentinel.common.text import counted
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.strictness import FACTORS
from studies.promises import delays, fleets
from studies.promises.splits import BUDGETS, SPLITS, drawn, kept, left_out, paged_by, part, row
from tests.tools.docs import table

HEAD = f"""# Promised and realised

What `sentinel calibrate` promises on one half of an archive, and what comes of it on the other half.
`make promises` writes this page from a folder of labelled logs of other people, which is no part of this
project, and from simulated fleets.

- **Promised** is the largest share of healthy runs that keeps the promise: the budget, or the upper end of
  the exact 95 % interval where so few runs prove no less. The rate is that of runs by which the changes were
  not chosen (`cross_fitted` in `sentinel/calibration/thresholds.py`).
- **Realised** is the share of healthy runs of the other half that page.
- **Inside** counts the splits, of {SPLITS}, in which no more runs paged than was promised.
- **Noticed** counts those in which a watch that looks each day says to calibrate again, once every page is
  called false. Its e-detectors are wrong once in {PATIENCE:,.0f} runs, or run-days, and once in
  {PROMISED_PAGES:.0f} pages that were promised, on average at most.
- **Stricter** is the number of detectors that ask for more from then on, and **quiet** that of variants that
  only inform.

Promised, realised, stricter and quiet are means over {SPLITS} random halves.

"""

LEFT_OUT = """## Left-out halves

All logs of a repository are in one half. Each fleet has {runs} simulated healthy runs of four families, at
noise of 1 to 20 % (usual) or 20 to 50 % (rough), and random halves. What pages in one half of a fleet is
missing in the other, so the halves differ more than two archives would.

"""

FACTORED = """## Stricter detectors

In how many runs these detectors page: as they are, and {factors} times as strict. A variant that
only informs pages in none. **Public** are logs that people called faulty or healthy, **fleet** is the one
with rough noise, and **rougher** the one whose noise comes to 100 %.

"""

DRIFT = """## Drift

A fleet that changes in the middle: calibrated on its first half with a budget of 1 %, and followed in the
later one. **In the archive** says whether `sentinel calibrate` on the whole tells that it has changed;
**in the watch** whether a watch that was calibrated on the first half says to calibrate again, and after how
many runs or days of runs.

"""

WITHOUT = """
Rules that ask for the shape of a curve and not for its level page no more often for a new unit, so the
promise holds and nothing has to be noticed.

## Runs without end

The same fleets with a step an hour, so that a run lasts from one to ten days, and with budgets of
`--pages-per-run-day`: what counts are days of runs. Days of one run depend on each other, so the interval is
wider by the design effect (`sentinel/calibration/page_rates.py`).

"""

LONG = """
## In the long run

{runs:,} runs of the fleet with rough noise that last for days, in {splits} archives of {each} runs. Each is
calibrated alone, and **realised** is the share of all other runs that page, or of their days. So it hardly
depends on chance, while a half of a fleet pages the more often by chance the less the other one does.

"""

SOON = f"""
## How soon

{delays.FLEETS} simulated fleets whose runs page independently, looked at each day. **Kept** is the mean
number of runs until chance breaks a promise that is kept to the page, as far as it was simulated, and
**pages** how many were promised until then. The others are medians of the runs until it is noticed that pages
come so many times as often as promised, and how many were promised until then.

"""


def page(strangers: Pages, repositories: Mapping[str, str]) -> str:
    """The page, from judged logs of other people and the repository of each."""
    titles = ["Archive", "Budget", "Stricter", "Quiet", "Promised", "Realised", "Inside", "Noticed"]
    title = f"{len(strangers.healthy)} healthy public logs, {len({*repositories.values()})} repositories"
    rows = [row(title, budget, left_out(strangers, repositories, budget)) for budget in BUDGETS]
    large = fleets.LARGE
    drifts = ["Change", "First half", "Later half", "In the archive", "In the watch"]
    return "".join(
        [
            HEAD,
            LEFT_OUT.format(runs=fleets.RUNS),
            table(titles, [*rows, *_rows(fleets.FLEETS, daily=False)]),
            "\n\n",
            FACTORED.format(factors=", ".join(f"{factor:g}" for factor in FACTORS)),
            table(
                ["Detector", "Public faulty", "Public healthy", "Fleet", "Rougher"], [*_factored(strangers)]
            ),
            "\n\n",
            DRIFT,
            table(drifts, [_drift(fleet, daily=False) for fleet in fleets.DRIFTS]),
            "\n",
            WITHOUT,
            table(titles, [*_rows(fleets.LASTING, daily=True)]),
            "\n\n",
            table(drifts, [_drift(fleet, daily=True) for fleet in fleets.LASTING_DRIFTS]),
            "\n",
            LONG.format(runs=large.runs, splits=SPLITS, each=large.runs // SPLITS),
            table(titles[:-1], [*_long(large.judged(daily=True))]),
            "\n",
            SOON,
            table(
                ["Promised", "Kept", "Pages", *(f"{rise} times" for rise in delays.RISES)],
                [*delays.table_rows()],
            ),
            "\n",
        ]
    )


def _rows(of: Sequence[fleets.Fleet], *, daily: bool) -> Iterator[list[str]]:
    for fleet in of:
        pages = fleet.judged(daily=daily)
        alone = {name: name for name in pages.healthy}
        for budget in BUDGETS:
            yield row(f"fleet, {fleet.title}", budget, left_out(pages, alone, budget))


def _factored(strangers: Pages) -> Iterator[list[str]]:
    healthy = [strangers, *(fleet.judged() for fleet in (fleets.FLEETS[1], fleets.DRIFTS[-1]))]
    archives = [strangers.others, *(pages.healthy for pages in healthy)]
    for name, detector in all_detectors().items():
        if detector.stricter:
            counts = (paged_by(name, runs) for runs in archives)
            yield [f"`{name}`", *(" / ".join(map(str, count)) for count in counts)]


def _long(pages: Pages) -> Iterator[list[str]]:
    for of, daily in ("runs", False), ("run-days", True):
        for budget in BUDGETS:
            yield row(of, budget, drawn(replace(pages, daily=daily), budget))[:-1]


def _drift(fleet: fleets.Fleet, *, daily: bool) -> list[str]:
    pages = fleet.judged(daily=daily)
    names = sorted(pages.healthy)
    halves = [part(pages, names[: len(names) // 2]), part(pages, names[len(names) // 2 :])]
    first, later = pages.halves()
    promised = kept(0.01, *halves)
    said = f"{promised.realised.share:.1%} of {promised.promise.highest:.1%} promised"
    if promised.noticed is None:
        told = f"kept: {said}"
    else:
        told = f"recalibrate after {counted(promised.noticed, first.unit)}: {said}"
    return [
        fleet.title,
        f"{first.pages} of {first.units}",
        f"{later.pages} of {later.units}",
        "changed" if drifted(first, later) else "unchanged",
        told,
    ]
