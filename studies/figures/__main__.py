"""The figures of the detectors: `make detector-figures` writes measurements/figures.md and its data.

python -m studies.figures [DETECTOR...]     measures some detectors again, the others keep their figures

Without names all are measured, and the healthy runs that ring them counted as well (by_run.py).
"""

import sys
from collections.abc import Sequence

from studies.figures import by_run
from studies.figures.measure import HEALTHY, fault_of, figures, real_figures, simulable
from studies.figures.page import Measured, read, write


def main(names: Sequence[str]) -> None:
    """Measure the named detectors, or all that have a simulated fault, and write as each is done."""
    known = simulable()
    simulated = sorted(name for name, one in known.items() if fault_of(one))
    if unknown := {*names} - {*simulated}:
        sys.exit(f"no fault is simulated for {', '.join(sorted(unknown))}; see studies/figures/sick.py")
    if not names:
        by_run.keep(by_run.measured({*known}))
    real = real_figures(known.values())
    for name in names or simulated:
        measured = Measured(real[name], [figures(known[name], points) for points in HEALTHY])
        write({**read(), name: measured})
        rates = ", ".join(f"{rate:.2f}" for rate in measured.rates)
        print(f"{name}: {rates} false alarms per million healthy points", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
