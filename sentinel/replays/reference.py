"""How often healthy runs of other people page, where an archive has too few of its own to tell.

`reference.json` holds figures only: for each framework and length how many public runs that people called
healthy there are, and what paged in those that did. `make promises` writes it.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sentinel.alerts.rates import Rate
from sentinel.replays.calibrating import Kind, Pages, Stratum

ENOUGH = 50
"""Runs of a stratum that speak for themselves: none of them that pages still allows 7 %."""

DATA = Path(__file__).with_name("reference.json")


@dataclass(frozen=True)
class PublicRuns:
    """The healthy public runs of a stratum, and the kinds that paged in each run in which any did."""

    runs: int
    paged: Collection[frozenset[Kind]]

    def rate(self, informing: Collection[Kind] = ()) -> Rate:
        """How many of them page if some kinds only inform."""
        return Rate(sum(not kinds <= {*informing} for kinds in self.paged), self.runs)


@cache
def reference() -> Mapping[Stratum, PublicRuns]:
    """The public runs by stratum."""
    return {
        Stratum(row["framework"], row["up_to"] or float("inf")): PublicRuns(
            row["runs"], [frozenset(Kind(*kind) for kind in kinds) for kinds in row["paged"]]
        )
        for row in json.loads(DATA.read_text("utf-8"))
    }


def written(pages: Pages) -> str:
    """The healthy runs of an archive as the content of `DATA`."""
    rows = []
    for stratum in pages.by_stratum():
        runs = [run for run in pages.healthy.values() if run.stratum == stratum]
        paged = [run.paged for run in runs if run.paged]
        up_to = stratum.up_to if stratum.up_to < float("inf") else None
        kinds = sorted(sorted((kind.detector, kind.variant) for kind in of) for of in paged)
        rows.append({"framework": stratum.framework, "up_to": up_to, "runs": len(runs), "paged": kinds})
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n"


def by_stratum(pages: Pages, informing: Collection[Kind]) -> Iterable[str]:
    """How often healthy runs of each stratum page, in lines for a person.

    Where there are fewer runs than `ENOUGH`, the reference stands beside them, if it has more.
    """
    for stratum, rate in pages.by_stratum(informing).items():
        public = reference().get(stratum)
        aside = ""
        if rate.unit == "run" and rate.units < ENOUGH:
            aside = "; too few to say"
            if public and public.runs > rate.units:
                aside += f", and of public ones {public.rate(informing)}"
        yield f"{stratum}: {rate}{aside}"
