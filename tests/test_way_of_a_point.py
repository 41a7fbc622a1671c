"""How much of sentinel one must read to follow a point from its log to the decision about a notification."""

import json
import sys
from pathlib import Path

import pytest

from sentinel.detection.duplicates import known_incidents, traces_of
from sentinel.detectors.discovery import all_detectors
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext
from sentinel.pipeline import Pipeline
from sentinel.sources.discovery import discover

pytestmark = pytest.mark.slow

PACKAGE = Path(sys.modules["sentinel"].__file__).parent
DETECTORS = (PACKAGE / "detectors").resolve()
ROOMS = {"sources", "series", "runs", "detection", "detectors", "incidents", "notifications", "catalogue"}
"""Beside them it passes only the page of the pipeline, that of one run, and the guard."""


def line(step: int, loss: float) -> bytes:
    return json.dumps({"step": step, "loss": loss}).encode() + b"\n"


def passed(work) -> tuple[set[str], object]:
    """The modules of sentinel of which the work calls functions, and its result."""
    modules = set()

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>":
            for home, name in ((PACKAGE, ""), (DETECTORS, "detectors/")):
                if file.is_relative_to(home):
                    modules.add(name + file.relative_to(home).with_suffix("").as_posix())

    sys.setprofile(note)
    try:
        return modules, work()
    finally:
        sys.setprofile(None)


def test_one_point_passes_few_modules(tmp_path):
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(b"".join(line(step, 1.0 + step % 7 / 10) for step in range(300)))
    rules = [all_detectors()["non-finite-metric"]]
    pipeline = Pipeline(rules, {}, {})
    run_pipeline = pipeline.track(discover([tmp_path]).runs[0], "run")
    pipeline.advance([run_pipeline])
    with log.open("ab") as file:
        file.write(line(300, float("nan")) + line(301, 1.0))

    judged, advances = passed(lambda: pipeline.advance([run_pipeline]))
    (change,) = advances[0].changes
    audience = RoutingContext(
        [SinkPolicy("pager")],
        (),
        {},
        known_incidents([change.incident], [run_pipeline], traces_of([run_pipeline])),
    )
    told, outcomes = passed(lambda: run_pipeline.route([change], audience, 0.0))

    assert [one.decision.event for one in outcomes] == ["firing"]
    modules = judged | told
    assert {module.partition("/")[0] for module in modules} - {"pipeline", "run_pipeline", "common"} == ROOMS
