"""What a detector says of simulated runs: how often it is wrong, how much it finds and how soon."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from sentinel.config.file import Config
from sentinel.detectors.api import Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import INDEX, SERIES, SEVERITY, STEP
from sentinel.replays.replaying import replay
from sentinel.series.windows import frame
from studies import ROOT
from studies.figures.healthy import FAMILIES
from studies.figures.shapes import ONSET, Kind, Run, drawn
from studies.figures.sick import SICK, of_onset
from tests.detectors.golden import series_windows
from tests.detectors.onsets import onset

NOISES = 0.01, 0.05, 0.2
HEALTHY = {20: 40_000, 100: 200_000, 1_000: 500_000, 100_000: 1_200_000}
"""By points of a run: how many points of healthy runs are judged at least, over all noises."""

FAULTY = {20: 40, 100: 40, 1_000: 20, 100_000: 2}
"""By points of a run: the sick runs of each noise."""

TESTS = ROOT / "tests"
REAL = sorted(
    [
        *TESTS.glob("frameworks/*/log"),
        *TESTS.glob("detectors/trainings/*-healthy.*"),
        *ROOT.glob("sample_logs/healthy-*"),
    ]
)
POINTS_AT_ONCE = 400_000
EVALUATED = (
    "eval_loss",
    "eval_accuracy",
    "eval_perplexity",
    "eval_reward",
    "mean_average_precision",
    "mean_intersection_over_union",
    "frechet_inception_distance",
)


@dataclass(frozen=True)
class Figures:
    """The figures of a detector on runs of one length.

    What has several values has one for each of `NOISES`: the incidents of `counted` severity on healthy runs,
    the share of sick runs in which one is raised, and the median time from the onset to it, as a share of
    what is left of the run.
    """

    points: int
    judged: int  # healthy points, a third of them for each noise
    alarms: Sequence[int]
    recall: Sequence[float]
    delay: Sequence[float | None]


@dataclass(frozen=True)
class Real:
    """The same on healthy logs that frameworks wrote."""

    judged: int
    alarms: int


def real_figures(detectors: Collection[Detector]) -> dict[str, Real]:
    """What the detectors say of the healthy logs of the project, by name, where nothing else explains it."""
    judged = Counter[str]()
    raised = Counter[str]()
    least = {one.name: counted(one) for one in detectors}
    for log in REAL:
        for run in replay([log], Config(), lambda *_: None).runs:
            raised.update(
                one.detector
                for one in run.incidents.values()
                if one.severity >= least.get(one.detector, 0) and one.inhibited_by is None
            )
            for stream in run.run_pipeline.log.streams.values():
                rows = {key: sum(s.count for s in of.values()) for key, of in stream.attempt.series.items()}
                for view in stream.specs:
                    judged.update({one.name: rows.get(view.key, 0) for one in view.detectors})
    return {one.name: Real(judged[one.name], raised[one.name]) for one in detectors}


def kinds(detector: Detector) -> list[Kind]:
    """The families of healthy runs that log what the detector needs; all points of others tell nothing."""
    random = np.random.default_rng(0)
    shape = drawn(random, 20, 0.01, each_evaluated=False, resumes=False)
    logs = {family: {name.partition(":")[0] for name in family(random, shape).logged} for family in FAMILIES}
    return [family for family, signals in logs.items() if not detector.demand.missing(signals)]


def counted(detector: Detector) -> Severity:
    """The least severity that counts: warning, or info for a detector that does no more than inform."""
    return min(detector.severities[0], Severity.WARNING)


def alarms(detector: Detector, runs: Sequence[Run]) -> tuple[int, list[list[int]]]:
    """How many points are judged, and for each run the steps at which an incident begins.

    An incident of `counted` severity counts, also if it is raised at the run's end.
    """
    asked = {*detector.judges, *detector.needs, *(use.signal for use in detector.uses)}
    shown = []
    numbers = []
    points = 0
    for number, run in enumerate(runs):
        streams = run.streams(asked)
        points += sum(len(stream.step) for stream in streams if stream.signal in detector.judges)
        series: dict[tuple[int, str], int] = {}
        for key, judged in series_windows(detector, streams, settings=run.settings):
            shown.append(judged)
            numbers.append((number, series.setdefault(key, len(series))))
    if not shown:
        return points, [[] for _ in runs]
    found = detector.run(frame(detector, shown)).select(SERIES, INDEX, STEP, SEVERITY)
    window = found[SERIES].to_numpy()
    owner, series_of = np.array(numbers)[window].T
    ended = np.array([one.ended for _, one in shown])[window]
    order = np.lexsort((found[INDEX].to_numpy(), window, series_of, owner))
    owner = owner[order]
    series_of = series_of[order]
    ended = ended[order]
    bad = found[SEVERITY].to_numpy()[order] >= counted(detector)
    place = np.arange(len(bad))
    begins = np.append(True, np.diff(owner) | np.diff(series_of))[: len(bad)]
    in_series = place - np.maximum.accumulate(np.where(begins, place, 0)) + 1
    in_stretch = np.minimum(in_series, place - np.maximum.accumulate(np.where(bad, -1, place)))
    raised = (in_stretch == detector.hold) | (bad & ended & (in_stretch < detector.hold))
    steps: list[list[int]] = [[] for _ in runs]
    for at, run_number in zip(found[STEP].to_numpy()[order][raised], owner[raised], strict=True):
        steps[run_number].append(int(at))
    return points, steps


def simulable() -> dict[str, Detector]:
    """The detectors that judge points which a simulation can draw, by name."""
    rules = {name: one for name, one in all_detectors().items() if isinstance(one, Detector)}
    return {name: one for name, one in rules.items() if one.demand.judges}


def fault_of(detector: Detector) -> tuple[Kind, float] | None:
    """The simulated fault of a detector, if there is one, and the share of the run at which it begins.

    Without a simulation of its own it is the onset in the detector's golden.
    """
    if detector.name in SICK:
        return SICK[detector.name]
    case = onset(detector)
    return None if case is None else (of_onset(case, evaluated=case.signal in EVALUATED), ONSET)


def figures(detector: Detector, points: int) -> Figures:
    """Measure a detector on runs of this length."""
    random = np.random.default_rng(points)
    each_evaluated = any(name in EVALUATED for name in detector.judges)
    families = kinds(detector)
    fault = fault_of(detector)
    if fault is None:
        raise ValueError(f"no fault is simulated for {detector.name}; see studies/figures/sick.py")
    sick, onset_share = fault

    def simulated(kind: Kind, noise: float, count: int, resumes: bool) -> list[Run]:
        shapes = (
            drawn(random, points, noise, each_evaluated=each_evaluated, resumes=resumes) for _ in range(count)
        )
        return [kind(random, shape) for shape in shapes]

    least = HEALTHY[points] // (len(NOISES) * len(families))
    judged = 0
    false = []
    recalls = []
    delays = []
    for noise in NOISES:
        raised = 0
        for family in families:
            left = least
            while left > 0:
                runs = simulated(family, noise, -(-min(POINTS_AT_ONCE, left) // points), True)
                seen, steps = alarms(detector, runs)
                left = left - seen
                judged = judged + seen
                raised = raised + sum(map(len, steps))
        false.append(raised)
        runs = simulated(sick, noise, FAULTY[points], False)
        late = [
            max(0.0, (min(steps) / run.shape.steps - onset_share) / (1 - onset_share))
            for run, steps in zip(runs, alarms(detector, runs)[1], strict=True)
            if steps
        ]
        recalls.append(round(len(late) / len(runs), 2))
        delays.append(round(median(late), 2) if late else None)
    return Figures(points, judged, false, recalls, delays)
