"""A training that is judged from within, and that nothing of sentinel can stop."""

import json
import os
import random
import tempfile
import threading

import numpy as np
import pytest

import sentinel
import sentinel.callbacks.monitor as monitor_module
from sentinel.callbacks.monitor import Monitor
from sentinel.common.errors import ConfigError
from sentinel.detectors.severity import Severity
from tests.sinks.receiver import Receiver

pytestmark = pytest.mark.slow


def train(monitor=None, steps=300):
    """A loop whose loss is drawn from both usual generators and becomes NaN at step 200. Gives its losses."""
    random.seed(1)
    np.random.seed(1)
    losses = []
    for step in range(steps):
        loss = 1.0 + 0.1 * np.random.normal() + 0.1 * random.random() if step < 200 else float("nan")
        losses.append(loss)
        if monitor is not None:
            monitor.log(step, {"loss": loss, "note": "text", "many": np.zeros(3)})
            monitor.news()
    return [loss for loss in losses if loss == loss]


def roots(incidents):
    """Those that no other incident explains."""
    return [incident for incident in incidents if not incident.explained_by]


@pytest.mark.long  # a long run
def test_a_loop_hears_of_an_incident_and_can_act():
    notified = threading.Event()
    with Monitor(every_seconds=0.01) as monitor:
        step = 0
        while not notified.is_set() and step < 1_000_000:
            monitor.log(step, {"loss": 1.0 + step % 7 / 10 if step < 200 else float("nan")})
            notified.set() if any(one.severity is Severity.CRITICAL for one in monitor.news()) else None
            step += 1
            notified.wait(1e-4)
    assert notified.is_set()
    (incident,) = roots(monitor.incidents)
    assert (incident.detector, incident.fired_step) == ("non-finite-metric", 200)
    assert monitor.failure is None


def test_a_short_training_hears_of_an_incident_before_its_time_is_over():
    looked = threading.Event()
    with Monitor(every_seconds=1e6, every_rows=20) as monitor:
        for step in range(20):
            monitor.log(step, {"loss": 1.0 if step < 10 else float("nan")})
        for _ in range(1000):
            if news := monitor.news():
                break
            looked.wait(0.01)
    assert {incident.detector for incident in news} == {"non-finite-metric"}


def test_what_is_left_is_judged_at_the_end():
    monitor = Monitor({"max_steps": 300}, every_seconds=1e6)
    train(monitor)
    (incident,) = roots(monitor.close())
    assert incident.detector == "non-finite-metric"
    assert monitor.news()[-1].id == incident.id


@pytest.mark.long
def test_an_incident_of_a_monitor_is_as_that_of_a_report(tmp_path):
    losses = [1.0 + n % 7 / 10 for n in range(50)] + [float("nan")] * 50
    (tmp_path / "log.jsonl").write_text(
        "".join(f'{{"step": {s}, "loss": {v}}}\n' for s, v in enumerate(losses))
    )
    with Monitor(every_seconds=1e6) as monitor:
        for step, loss in enumerate(losses):
            monitor.log(step, {"loss": loss})
    (incident,) = roots(monitor.incidents)
    (reported,) = sentinel.replay(tmp_path).incidents
    assert type(incident) is type(reported) is sentinel.IncidentReport
    assert incident.headline == reported.headline == "Loss is NaN."
    assert [cause.entry.id for cause in incident.causes] == [cause.entry.id for cause in reported.causes]


def test_a_training_that_is_judged_has_the_same_losses():
    alone = train()
    with Monitor(every_seconds=0.001) as monitor:
        assert train(monitor) == alone


@pytest.mark.parametrize("broken", ["Pipeline", "advance", "record"])
def test_a_defect_stops_the_judging_and_not_the_training(monkeypatch, tmp_path, broken, caplog):
    def fail(*_, **__):
        raise MemoryError("no room")

    alone = train()
    (tmp_path / "sentinel.toml").write_text('[[sinks]]\ntype = "terminal"\n')
    match broken:
        case "Pipeline":
            monkeypatch.setattr(monitor_module, "Pipeline", fail)
        case "advance":
            monkeypatch.setattr(monitor_module.Pipeline, "advance", fail)
        case "record":
            monkeypatch.setattr(monitor_module.Recorder, "record", fail)
    with Monitor(every_seconds=0.001, config=tmp_path / "sentinel.toml") as monitor:
        assert train(monitor) == alone
    assert monitor.failure == "MemoryError: no room"
    assert "not judged any more: MemoryError: no room" in caplog.text


def test_its_incidents_go_to_the_sinks_of_a_configuration(tmp_path):
    with Receiver() as receiver:
        (tmp_path / "sentinel.toml").write_text(f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n')
        monitor = Monitor(every_seconds=1e6, config=tmp_path / "sentinel.toml", name="mine")
        train(monitor)
        monitor.close()
    (body,) = (json.loads(request.body) for request in receiver.received)
    incident = body["incident"]
    assert (body["event"], incident["detector"], incident["severity"]) == (
        "firing",
        "non-finite-metric",
        "critical",
    )
    assert body["run"]["run"] == "mine"


def test_a_receiver_that_is_gone_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(monitor_module, "_DELIVER_SECONDS", 0.1)
    (tmp_path / "sentinel.toml").write_text('[[sinks]]\ntype = "webhook"\nurl = "http://127.0.0.1:9"\n')
    alone = train()
    with Monitor(every_seconds=0.001, config=tmp_path / "sentinel.toml") as monitor:
        assert train(monitor) == alone
    assert monitor.failure is None


def test_a_full_disk_changes_nothing(tmp_path, monkeypatch, small_disk):
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    free = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_bsize))
    (tmp_path / "sentinel.toml").write_text('[[sinks]]\ntype = "terminal"\n')
    alone = train()
    with Monitor(every_seconds=0.001, config=tmp_path / "sentinel.toml") as monitor:
        assert train(monitor) == alone
    assert "the disk is full; free some space" in monitor.failure


def test_a_wrong_configuration_is_said_before_the_training(tmp_path):
    (tmp_path / "sentinel.toml").write_text("pols = 1\n")
    with pytest.raises(ConfigError, match="pols"):
        Monitor(config=tmp_path / "sentinel.toml")
