"""The outcomes as a page: measurements/siblings.md."""

from collections.abc import Sequence
from statistics import median

from studies import MEASUREMENTS
from studies.faults.page import table
from studies.fleets.faults import FAULTS, STRENGTHS
from studies.fleets.measure import COUNTS, Outcome
from studies.fleets.programs import PROGRAMS
from studies.fleets.seeds import DRAWS, SIZES, Seeds

PAGE = MEASUREMENTS / "siblings.md"

HEAD = """# What siblings tell

`make fleets` writes this page. It trains twelve small programs in numpy, each with twenty seeds, and twenty
faults of these at three strengths, and judges the logs. `studies/fleets/` holds the trainings. The
strengths were written down before anything was measured, and nothing was tuned on the outcome.

- **Alone**: faults that the run's own log shows, as an incident of severity warning or more of a stable
  detector.
- **Beside N**: faults that `worse-than-siblings` tells beside N healthy runs of the same program.
- **Either**: faults that one of both tells, with 20 siblings.
- **Told at**: the share of the run by which it was certain beside 20 siblings, in the median.
- **Healthy**: of the healthy runs, those that are told although nothing is wrong, each beside the others of
  its program. The rule promises one in 200 at most.

"""

SEEDS = """
## Seeds that end far apart

`replay --compare` says of equal runs if some gain less than half of what the best one gains. Besides the
twelve programs, three learn with some seeds only: two small networks that get stuck, and a policy that
settles too early. These are told with all twenty seeds, and with groups drawn from them. Those of `parity`
get stuck at half of the gain, which is the limit.

"""

LIMITS = """
## What this does not show

All siblings of a fleet are healthy and differ in nothing but the seed, which real archives seldom offer. Most
faults begin with the run. What a fault leaves of the logged numbers as they are, no comparison shows: an
optimizer that forgets its moments costs these small programs nothing that is seen in twenty seeds.
"""


def rendered(outcomes: Sequence[Outcome], seeds: Sequence[Seeds]) -> str:
    """The page."""
    faulty = [one for one in outcomes if one.run.fault is not None]
    healthy = [one for one in outcomes if one.run.fault is None]
    rows = [_row(name, [one for one in faulty if one.run.strength == n]) for n, name in enumerate(STRENGTHS)]
    told = [f"{sum(one.beside[count] is not None for one in healthy)} of {len(healthy)}" for count in COUNTS]
    rang = f"{sum(bool(one.alone) for one in healthy)} of {len(healthy)}"
    rows.append(["healthy", rang, *told, "", ""])
    head = ["Strength", "Alone", *(f"Beside {count}" for count in COUNTS), "Either", "Told at"]
    return f"{HEAD}{table(head, rows)}\n## Every fault\n\n{_faults(faulty)}{SEEDS}{_seeds(seeds)}{LIMITS}"


def _seeds(seeds: Sequence[Seeds]) -> str:
    """A row for all programs that every seed learns, and one for each lottery."""
    learned = [one for one in seeds if one.program.name in PROGRAMS]
    few = {size: sum(one.of_few[size] for one in learned) for size in SIZES}
    told = sum(one.of_all is not None for one in learned)
    rows = [
        [
            f"the {len(learned)} programs",
            f"{told} of {len(learned)}",
            *(f"{few[size]} of {DRAWS * len(learned)}" for size in SIZES),
        ]
    ]
    for one in seeds:
        if one.program.name not in PROGRAMS:
            fell = f"{len(one.of_all.short)} of {one.of_all.runs} fall short" if one.of_all else "no"
            rows.append([one.program.name, fell, *(f"{one.of_few[size]} of {DRAWS}" for size in SIZES)])
    return table(["Seeds of", "All", *(f"Groups of {size}" for size in SIZES)], rows)


def _row(name: str, of_strength: Sequence[Outcome]) -> list[str]:
    most = COUNTS[0]
    total = len(of_strength)
    told = [sum(one.beside[count] is not None for one in of_strength) for count in COUNTS]
    either = sum(bool(one.alone) or one.beside[most] is not None for one in of_strength)
    shares = [beside[1] for one in of_strength if (beside := one.beside[most]) is not None]
    alone = sum(bool(one.alone) for one in of_strength)
    counts = [f"{count} of {total}" for count in (alone, *told, either)]
    return [name, *counts, f"{median(shares):.2f}" if shares else ""]


def _faults(faulty: Sequence[Outcome]) -> str:
    """A row for each fault, with what tells of it at each strength."""
    rows = []
    for fault in FAULTS:
        of_fault = sorted((one for one in faulty if one.run.fault == fault), key=lambda one: one.run.strength)
        rows.append([f"{fault.name}: {fault.title}", fault.program, *(_told(one) for one in of_fault)])
    return table(["Fault", "Program", *STRENGTHS], rows)


def _told(one: Outcome) -> str:
    beside = one.beside[COUNTS[0]]
    by_siblings = [f"{beside[0]} at {beside[1]:.2f}"] if beside else []
    return ", ".join([*([f"`{one.alone}`"] if one.alone else []), *by_siblings]) or "no"
