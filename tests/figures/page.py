"""The figures as data, and as the page that people read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.figures.measure import NOISES, Figures, Real

DATA = Path(__file__).with_name("figures.json")
PAGE = Path(__file__).parents[2] / "detectors" / "FIGURES.md"

MOST_AT_WORST = 3.0
"""False alarms of a stable detector for each million healthy points, at noise of 20 %; none at less noise."""

HEAD = """# Figures of the detectors

`make detector-figures` measures every detector on simulated runs and writes this page.
`python -m tests.figures NAME...` measures single detectors again. `tests/figures/healthy.py` and
`tests/figures/sick.py` say how the runs look.

Healthy runs are supervised trainings with any usual schedule, policies of language models and of control
tasks, and preference trainings, each as far as it logs what the detector needs. Every fourth one is resumed
from a checkpoint. A sick run is a healthy one with the fault for which the detector is made. Noise is 1, 5 or
20 % of the level, with an autocorrelation of 0, 0.3 or 0.6 and normal or heavy tails; a point is logged
every 1, 10 or 100 steps. A point of a detector that judges evaluations is an evaluation.

- False alarms: incidents of severity warning or critical on healthy runs, for each million points, at each
  noise. A detector is stable only if it raises none at 1 and 5 %, at most {most:g} at 20 %, and none on real
  logs.
- Real: the same on logs that real frameworks wrote in healthy trainings, as they lie in `tests/frameworks`
  and `sample_logs`.
- Recall: share of sick runs in which an incident is raised, at noise of 1, 5 and 20 %.
- Detectors that are not listed have no figures yet. Those below the standard of a stable detector are named
  in `tests/figures/test_figures.py`.
- Delay: median time from the onset of the fault to the incident, as a share of what is left of the run.

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
    def rates(self) -> Sequence[float]:
        """False alarms for each million of them, by noise."""
        alarms = zip(*(one.alarms for one in self.lengths), strict=True)
        return [1e6 * sum(of_noise) / (self.judged / len(NOISES)) for of_noise in alarms]


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
    return HEAD.format(most=MOST_AT_WORST) + _false_alarms(measured) + "\n" + _faults(measured)


def _false_alarms(measured: Mapping[str, Measured]) -> str:
    text = "## False alarms\n\n"
    text += "| Detector | Healthy points | False alarms per million | Real points | Real false alarms |\n"
    text += "| --- | --- | --- | --- | --- |\n"
    for name, one in measured.items():
        rates = ", ".join(f"{rate:.1f}" for rate in one.rates)
        text += f"| `{name}` | {one.judged:,} | {rates} | {one.real.judged:,} | {one.real.alarms} |\n"
    return text


def _faults(measured: Mapping[str, Measured]) -> str:
    noises = ", ".join(f"{noise:.0%}" for noise in NOISES)
    text = f"## Faults\n\nFalse alarms, recall and delay at noise of {noises}.\n\n"
    text += "| Detector | Points | False alarms | Recall | Delay |\n| --- | --- | --- | --- | --- |\n"
    for name, one in measured.items():
        for length in one.lengths:
            recall = ", ".join(f"{share:.2f}" for share in length.recall)
            delay = ", ".join("-" if late is None else f"{late:.2f}" for late in length.delay)
            alarms = ", ".join(map(str, length.alarms))
            text += f"| `{name}` | {length.points:,} | {alarms} | {recall} | {delay} |\n"
    return text
