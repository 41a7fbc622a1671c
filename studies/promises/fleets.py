"""Fleets of simulated healthy runs, written as logs and judged as `sentinel calibrate` judges an archive."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sentinel.calibration.page_statistics import Pages
from sentinel.calibration.thresholds import judge_stricter
from sentinel.config.file import Config
from sentinel.replays.replaying import replay_in_parts
from sentinel.replays.strictness import with_factors
from studies.figures.healthy import policy_of_control, policy_of_language, preferences, supervised
from studies.figures.shapes import Run, drawn

RUNS = 400
SIGNALS = (
    "loss",
    "eval_loss",
    "learning_rate",
    "grad_norm",
    "throughput",
    "gpu_memory",
    "reward",
    "reward_std",
    "entropy",
    "kl",
    "policy_loss",
    "completion_length",
    "policy_entropy",
    "approx_kl",
    "value_loss",
    "explained_variance",
    "preference_loss",
    "preference_margin",
    "preference_accuracy",
)
"""What the runs log; names that mean themselves."""

_FAMILIES = supervised, policy_of_language, policy_of_control, preferences
_BEGIN = 1_767_225_600.0  # of the first run
_BETWEEN = 6 * 3600.0  # the begins of two runs


@dataclass(frozen=True)
class Fleet:
    """Runs that begin one after the other. ``noise`` gives that of a run by its number. The later half logs
    some signals in another ``scale``. A step takes ``seconds``.
    """

    title: str
    noise: Callable[[int, np.random.Generator], float]
    scaled: Sequence[str] = ()
    scale: float = 1.0
    seconds: float = 10.0
    runs: int = RUNS

    def written(self, folder: Path) -> None:
        """Write the logs below a folder."""
        for number in range(self.runs):
            log = folder / f"run-{number:05}" / "metrics.jsonl"
            log.parent.mkdir(parents=True)
            log.write_text("".join(f"{json.dumps(row)}\n" for row in self.rows(number)))

    def judged(self, *, daily: bool = False) -> Pages:
        """Judge the logs."""
        pages = Pages(daily=daily)
        config = Config(signals={name: name for name in SIGNALS})
        with TemporaryDirectory() as folder:
            self.written(Path(folder))
            for part in replay_in_parts([Path(folder)], config, lambda *_: None):
                for run in part.runs:
                    pages.add(run.seen, run.notifications, (), {})
            judge_stricter(pages, with_factors([Path(folder)], config))
        return pages

    def rows(self, number: int) -> Iterator[dict[str, float]]:
        """The rows of the log of a run."""
        random = np.random.default_rng([len(self.title), number])
        points = int(random.choice([30, 60, 120, 240]))
        noise = self.noise(number, random)
        shape = replace(drawn(random, points, noise, each_evaluated=False, resumes=False), every=1)
        run: Run = _FAMILIES[number % len(_FAMILIES)](random, shape)
        rows: dict[int, dict[str, float]] = {}
        for stream in run.streams({*SIGNALS}):
            is_other = stream.signal in self.scaled and number >= self.runs // 2
            values = stream.value * (self.scale if is_other else 1.0)
            for step, value in zip(stream.step.tolist(), values.tolist(), strict=True):
                rows.setdefault(step, {})[str(stream.signal)] = value
        for step, values in sorted(rows.items()):
            yield {"step": step, "timestamp": _BEGIN + number * _BETWEEN + step * self.seconds, **values}


def _usual(_: int, random: np.random.Generator) -> float:
    return float(random.choice([0.01, 0.05, 0.2]))


def _rough(_: int, random: np.random.Generator) -> float:
    return float(random.choice([0.2, 0.5]))


def _rougher_later(number: int, random: np.random.Generator) -> float:
    return _usual(number, random) if number < RUNS // 2 else 1.0


FLEETS = Fleet("usual noise", _usual), Fleet("rough noise", _rough)
DRIFTS = (
    Fleet("losses are a thousand times as large", _usual, ("loss", "eval_loss", "preference_loss"), 1000.0),
    Fleet("the KL is a hundred times as large", _usual, ("kl",), 100.0),
    Fleet("noise of 100 %", _rougher_later),
)
"""What changes in the later half of an archive."""

HOUR = 3600.0
LASTING = tuple(replace(fleet, seconds=HOUR) for fleet in FLEETS)
LARGE = replace(LASTING[1], runs=10 * RUNS)
LASTING_DRIFTS = tuple(replace(fleet, seconds=HOUR) for fleet in DRIFTS[1:])
"""The same with a step an hour, so that runs last from one to ten days."""
