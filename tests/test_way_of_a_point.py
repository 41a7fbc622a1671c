"""The way of one point, from its log to the message that Slack would get; ``pytest -s`` prints it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel import catalogue
from sentinel.detection.duplicates import known_incidents, traces_of
from sentinel.detectors.discovery import all_detectors
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext
from sentinel.pipeline import Pipeline
from sentinel.sinks.batching import notification
from sentinel.sinks.slack_blocks import slack_body
from sentinel.sources.discovery import discover

pytestmark = pytest.mark.slow

PACKAGE = Path(sys.modules["sentinel"].__file__).parent
DETECTORS = (PACKAGE / "detectors").resolve()
ROOMS = {
    *("sources", "series", "runs", "detection", "detectors"),
    *("incidents", "notifications", "catalogue", "sinks"),
}
"""Beside them it passes only the page of the pipeline, that of one run, and the guard."""


def line(step: int, loss: float) -> bytes:
    return json.dumps({"step": step, "loss": loss}).encode() + b"\n"


def followed(work: Callable[[], Any], way: list[str]) -> Any:
    """The result of the work; the modules of sentinel whose functions it calls join the way, in order."""

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>":
            for home, name in ((PACKAGE, ""), (DETECTORS, "detectors/")):
                if file.is_relative_to(home):
                    module = name + file.relative_to(home).with_suffix("").as_posix()
                    if module not in way:
                        way.append(module)

    sys.setprofile(note)
    try:
        return work()
    finally:
        sys.setprofile(None)


def test_a_point_goes_through_few_rooms_to_the_bytes_that_slack_gets(tmp_path):
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(b"".join(line(step, 1.0 + step % 7 / 10) for step in range(300)))
    rules = [all_detectors()["non-finite-metric"]]
    catalogue.load()  # which a process reads once, with those of plugins
    pipeline = Pipeline(rules, {}, {})
    run_pipeline = pipeline.track(discover([tmp_path]).runs[0], "run")
    pipeline.advance([run_pipeline])
    with log.open("ab") as file:
        file.write(line(300, float("nan")) + line(301, 1.0))

    way = []
    (advance,) = followed(lambda: pipeline.advance([run_pipeline]), way)
    (change,) = advance.changes
    context = RoutingContext(
        [SinkPolicy("slack")],
        (),
        {},
        known_incidents([change.incident], [run_pipeline], traces_of([run_pipeline])),
    )
    (sent,) = followed(lambda: run_pipeline.route([change], context, 0.0), way)
    # as the outbox holds it between two processes
    stored = json.dumps(sent.body)
    content = followed(lambda: json.dumps(slack_body(notification(stored))).encode(), way)

    print("", *way, sep="\n")
    assert sent.decision.event == "firing"
    assert json.loads(content)["text"] == "run: Loss is NaN."
    assert way[0] == "pipeline"
    rooms = {module.partition("/")[0] for module in way}
    assert rooms - {"pipeline", "run_pipeline", "common"} == ROOMS
