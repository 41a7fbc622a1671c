"""The figures of each detector on simulated runs: `make detector-figures` writes detectors/FIGURES.md.

python -m tests.figures [DETECTOR...]     prints the rows of some detectors
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl

from detectors.api import Detector, Severity
from detectors.discovery import all_detectors
from detectors.schema import INDEX, SERIES, SEVERITY, STEP
from sentinel.frames.windows import frame
from tests.detectors.golden import windows
from tests.figures.streams import SICK, Run, drawn, healthy, streams

PAGE = Path(__file__).parents[2] / "detectors" / "FIGURES.md"
RUNS = {20: 200, 100: 200, 1_000: 40, 100_000: 4}  # points of a run -> runs of each kind and noise
SOURCE = pl.Struct({"run": pl.Int64, "signal": pl.String})
NOISES = 0.01, 0.05, 0.2
HEAD = """# Figures of the detectors

`make detector-figures` writes this page. Each row stands for simulated runs of one length, at noise of 1, 5
and 20 % of the loss (three tenths of that for the held-out loss), with autocorrelation of 0, 0.3 or 0.6,
normal or heavy tails, and a point every 1, 10 or 50 steps. `tests/figures/streams.py` says how healthy and
sick runs look.

- False alarms: incidents of severity warning or critical on healthy runs, for each million points.
- Recall: share of sick runs in which one is raised, at the three levels of noise.
- Delay: median time from the onset to the first incident, as a share of what is left of the run.

| Detector | Points | Healthy points | False alarms per million | Recall at 1, 5, 20 % | Delay |
| --- | --- | --- | --- | --- | --- |
"""


def alarms(detector: Detector, runs: Sequence[Run]) -> list[list[int]]:
    """For each run the steps at which an incident of severity warning or more begins."""
    asked = {*detector.judges, *detector.needs, *(use.signal for use in detector.uses)}
    shown = [windows(detector, streams(run, asked)) for run in runs]
    source = pl.Series(
        [{"run": run, "signal": view.judged} for run, one in enumerate(shown) for view, _ in one],
        dtype=SOURCE,
    )
    found = detector.run(frame(detector, [window for one in shown for window in one]))
    found = found.with_columns(source=source.gather(found[SERIES])).sort("source", INDEX)
    steps: list[list[int]] = [[] for _ in runs]
    for (key,), one in found.group_by("source", maintain_order=True):
        bad = (one[SEVERITY] >= Severity.WARNING).cast(int)
        held = (bad.rolling_sum(detector.hold) == detector.hold).fill_null(False).to_numpy()
        begins = held & ~np.append(False, held[:-1])
        steps[key["run"]] += one[STEP].to_numpy()[begins].tolist()
    return steps


def row(detector: Detector, points: int) -> str:
    """A row of the table."""
    random = np.random.default_rng(points)
    sick, onset = SICK[detector.name]
    false, recalls, delays = 0, [], []
    for noise in NOISES:
        shapes = [drawn(random, points, noise) for _ in range(RUNS[points])]
        false += sum(len(steps) for steps in alarms(detector, [healthy(random, s) for s in shapes]))
        told = alarms(detector, [sick(random, s) for s in shapes])
        recalls.append(f"{sum(map(bool, told)) / len(told):.2f}")
        late = [
            (min(steps) / (s.points * s.every) - onset) / (1 - onset)
            for steps, s in zip(told, shapes, strict=True)
            if steps
        ]
        delays.append(f"{median(late):.2f}" if late else "-")
    judged = len(NOISES) * RUNS[points] * points
    cells = (f"`{detector.name}`", f"{points:,}", f"{judged:,}", f"{1e6 * false / judged:.1f}")
    return "| " + " | ".join([*cells, ", ".join(recalls), ", ".join(delays)]) + " |\n"


def main(names: Sequence[str]) -> None:
    """Print the rows of the named detectors, or write the page with those of all."""
    known = all_detectors()
    text = HEAD
    for name in names or SICK:
        detector = known[name]
        assert isinstance(detector, Detector)
        for points in RUNS:
            text += (line := row(detector, points))
            print(line, end="", flush=True)
    if not names:
        PAGE.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
