"""The page rate of healthy runs of other people, where an archive has too few runs to tell.

`public_base_rate.json` holds figures only. **healthy**: for each framework and length how many public runs
that people called healthy there are, and what paged in those that did. **faulty**: by kind how many public
runs page that people called faulty, as they are and with each factor of a stricter detector. `make promises`
writes it.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from sentinel.calibration.page_rates import Rate
from sentinel.calibration.page_statistics import Change, Kind, Pages, Stratum
from sentinel.detectors.strictness import FACTORS

ENOUGH = 50
"""Runs of a stratum that speak for themselves: none of them that pages still allows 7 %."""

DATA = Path(__file__).with_suffix(".json")


class PublicRuns(msgspec.Struct, frozen=True):
    """The healthy public runs of a stratum, and the kinds that paged in each run in which any did."""

    runs: int
    paged: Collection[frozenset[Kind]]

    def rate(self, changes: Collection[Change] = ()) -> Rate:
        """Return how many of the runs page if some kinds only inform, with the detectors as they are."""
        return Rate(sum(not kinds <= {*changes} for kinds in self.paged), self.runs)


@cache
def reference() -> Mapping[Stratum, PublicRuns]:
    """Return the public runs by stratum."""
    return {
        Stratum(row["framework"], row["up_to"] or float("inf")): PublicRuns(
            row["runs"], [frozenset(Kind(*kind) for kind in kinds) for kinds in row["paged"]]
        )
        for row in json.loads(DATA.read_text("utf-8"))["healthy"]
    }


@cache
def faulty() -> Mapping[Kind, Sequence[int]]:
    """Return in how many faulty public runs each kind pages: as it is, then with each of `FACTORS`."""
    rows = json.loads(DATA.read_text("utf-8"))["faulty"]
    return {Kind(row["detector"], row["variant"]): row["runs"] for row in rows}


def faults_lost(change: Change) -> int:
    """Return how many pages of faulty public runs a change costs."""
    kinds = [runs for kind, runs in faulty().items() if change.covers(kind)]
    if isinstance(change, Kind):
        return sum(runs[0] for runs in kinds)
    return sum(runs[0] - runs[1 + FACTORS.index(change.factor)] for runs in kinds)


def written(pages: Pages) -> str:
    """Return the runs of an archive, judged with each factor of paging detectors, as content of `DATA`."""
    healthy = []
    for stratum in pages.by_stratum():
        runs = [run for run in pages.healthy.values() if run.stratum == stratum]
        paged = [run.paged for run in runs if run.paged]
        up_to = stratum.up_to if stratum.up_to < float("inf") else None
        kinds = sorted(sorted((kind.detector, kind.variant) for kind in kinds) for kinds in paged)
        healthy.append({"framework": stratum.framework, "up_to": up_to, "runs": len(runs), "paged": kinds})
    faults = [run for run in pages.others.values() if run.paged]
    counts = []
    for factor in (1.0, *FACTORS):
        count: Counter[Kind] = Counter()
        for run in faults:
            changes = [change for change in run.stricter if change.factor == factor]
            paging_kinds = {kind for unit in run.units(changes, daily=False) for kind in unit}
            count.update(kind for kind in paging_kinds if kind in run.paged)
        counts.append(count)
    faulty = [
        {"detector": kind.detector, "variant": kind.variant, "runs": [count[kind] for count in counts]}
        for kind in sorted(counts[0])
    ]
    lines = {
        name: ",\n".join(f"  {json.dumps(row)}" for row in rows)
        for name, rows in (("healthy", healthy), ("faulty", faulty))
    }
    tables = ",\n".join(f'"{name}": [\n{text}\n]' for name, text in lines.items())
    return f"{{\n{tables}\n}}\n"


def by_stratum(pages: Pages, changes: Collection[Change]) -> Iterable[str]:
    """Return how often healthy runs of each stratum page, in lines for a person.

    Where there are fewer runs than `ENOUGH`, the rate of the public runs follows, if there are more of them.
    """
    for stratum, rate in pages.by_stratum(changes).items():
        public = reference().get(stratum)
        remark = ""
        if rate.unit == "run" and rate.units < ENOUGH:
            remark = "; too few to say"
            if public and public.runs > rate.units:
                remark += f", and of public ones {public.rate(changes)}"
        yield f"{stratum}: {rate}{remark}"
