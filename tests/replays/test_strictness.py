"""Runs that paged are judged once more with stricter detectors, and page for them no more often."""

from pathlib import Path

import pytest

from sentinel.calibration.page_statistics import Kind, Pages, Stricter
from sentinel.calibration.thresholds import judge_stricter
from sentinel.config.file import Config
from sentinel.detectors.strictness import FACTORS
from sentinel.replays.replaying import replay_in_parts
from sentinel.replays.strictness import with_factors

ROOT = Path(__file__).parents[2]
FAULTS = ROOT / "sample_logs"
FOLDERS = FAULTS, ROOT / "tests" / "detectors" / "trainings"


def judged(folder):
    """The runs below a folder, each judged with each factor of what paged in it."""
    pages = Pages()
    config = Config()
    for part in replay_in_parts([folder], config, lambda *_: None):
        for run in part.runs:
            pages.add(run.seen, run.notifications, (), {})
    judge_stricter(pages, with_factors([folder], config))
    return {**pages.healthy, **pages.others}


@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_stricter_detector_pages_in_no_run_where_a_milder_one_does_not(folder):
    strict = [run for run in judged(folder).values() if run.stricter]
    assert strict
    for run in strict:
        for detector in {change.detector for change in run.stricter}:
            paged = [
                any(kind.detector == detector for kind in run.stricter[Stricter(detector, factor)].kinds)
                for factor in FACTORS
            ]
            assert paged == sorted(paged, reverse=True)


@pytest.mark.long
def test_other_detectors_page_as_before():
    run = judged(FAULTS)["kl-blowup"]
    assert Kind("kl-blowup", "far") in run.kinds
    assert {change.detector for change in run.stricter} <= {kind.detector for kind in run.kinds}
    beside = {kind for kind in run.kinds if kind.detector != "kl-blowup"}
    assert all(beside <= run.stricter[Stricter("kl-blowup", factor)].kinds for factor in FACTORS)


def test_nothing_is_searched_unless_something_is_judged(tmp_path):
    judge = with_factors([tmp_path / "missing"], Config())
    judge_stricter(Pages(), judge)
