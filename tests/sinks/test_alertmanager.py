import json
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Event
from sentinel.sinks.alertmanager import AlertmanagerConfig
from tests.patience import PATIENCE
from tests.sinks.samples import INCIDENT, NOTIFICATION, about, digest

NOW = 1_767_230_000.0
WARNING = replace(NOTIFICATION, incident=INCIDENT.replace(severity=Severity.WARNING))
PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
CONFIG = """
route: {{receiver: here, group_by: [incident], group_wait: 1ms, group_interval: 50ms, repeat_interval: 1h}}
receivers: [{{name: here, webhook_configs: [{{url: "{url}", send_resolved: true}}]}}]
"""


def sent(notification, receiver):
    AlertmanagerConfig(url=receiver.url).open().send(notification, NOW)
    return json.loads(receiver.received[-1].body)


def test_an_incident_is_an_alert_that_lasts_a_day(receiver):
    (alert,) = sent(NOTIFICATION, receiver)
    assert receiver.received[0].path == "/hook/api/v2/alerts"
    assert alert["labels"] == {
        "alertname": "kl-blowup",
        "severity": "critical",
        "run": "grpo-7b",
        "path": "/runs/grpo-7b",
        "host": "node-7",
        "incident": INCIDENT.id,
    }
    assert alert["annotations"]["summary"] == "KL to the reference is 3.2 nats per token, above 2.0."
    assert "Do: raise `beta`" in alert["annotations"]["description"]
    assert (alert["startsAt"], alert["endsAt"]) == ("2026-01-01T00:02:00Z", "2026-01-02T01:13:20Z")
    assert alert["generatorURL"] == NOTIFICATION.link


def test_the_owner_of_the_log_is_a_label(receiver):
    owned = replace(NOTIFICATION, run=msgspec.structs.replace(NOTIFICATION.run, owner="alice"))
    (alert,) = sent(owned, receiver)
    assert alert["labels"]["owner"] == "alice"


def test_the_end_ends_it(receiver):
    (alert,) = sent(about(Event.RESOLVED), receiver)
    assert alert["endsAt"] == "2026-01-01T01:13:20Z"


@pytest.mark.slow
def test_what_got_worse_is_another_alert_and_the_milder_one_ends(receiver):
    assert AlertmanagerConfig(url=receiver.url).open().send(WARNING, NOW) == "WARNING"
    for thread, milder in (("", ["warning"]), ("WARNING", ["warning"]), ("INFO", ["info", "warning"])):
        worse, *ended = sent(replace(about(Event.ESCALATED), thread=thread), receiver)
        assert (worse["labels"]["severity"], worse["endsAt"]) == ("critical", "2026-01-02T01:13:20Z")
        assert [one["labels"]["severity"] for one in ended] == milder
        assert {one["endsAt"] for one in ended} == {"2026-01-01T01:13:20Z"}


def test_a_digest_is_many_alerts_in_one_post(receiver):
    assert len(sent(digest(30, over=3), receiver)) == 30
    assert len(receiver.received) == 1


def test_a_log_whose_clock_is_ahead_begins_now(receiver):
    (alert,) = sent(replace(NOTIFICATION, incident=INCIDENT.replace(fired_time=NOW + 1e6)), receiver)
    assert alert["startsAt"] == "2026-01-01T01:13:20Z"


def test_nothing_open_is_nothing_to_refresh(receiver):
    AlertmanagerConfig(url=receiver.url).open().refresh([], NOW)
    assert receiver.received == []


@contextmanager
def alertmanager(tmp_path, url):
    """The real one, on a port of its own."""
    (tmp_path / "config.yml").write_text(CONFIG.format(url=url))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    command = [
        *(PROGRAM, f"--config.file={tmp_path}/config.yml", f"--storage.path={tmp_path}/data"),
        *(f"--web.listen-address={address}", "--cluster.listen-address=", "--log.level=error"),
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                try:
                    if httpx.get(f"http://{address}/-/ready").is_success:
                        break
                except httpx.TransportError:
                    time.sleep(0.02)  # no event tells that a port is open
            yield f"http://{address}"
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="needs Alertmanager, Debian's package prometheus-alertmanager")
def test_a_real_alertmanager_fires_keeps_and_resolves(tmp_path, receiver):
    """Firing, escalation and end arrive in order; after a restart that loses all, a refresh tells again."""

    def heard(count):
        receiver.wait_for(lambda: len(receiver.received) >= count)
        alerts = json.loads(receiver.received[count - 1].body)
        return [(alert["labels"]["severity"], alert["status"]) for alert in alerts["alerts"]]

    now = time.time()
    with alertmanager(tmp_path, receiver.url) as url:
        sink = AlertmanagerConfig(url=url).open()
        sink.send(WARNING, now)
        assert heard(1) == [("warning", "firing")]
        sink.send(about(Event.ESCALATED), now)
        assert sorted(heard(2)) == [("critical", "firing"), ("warning", "resolved")]
    shutil.rmtree(tmp_path / "data")
    with alertmanager(tmp_path, receiver.url) as url:
        sink = AlertmanagerConfig(url=url).open()
        assert httpx.get(f"{url}/api/v2/alerts", timeout=PATIENCE).json() == []
        sink.refresh([NOTIFICATION], now + 60)
        assert heard(3) == [("critical", "firing")]
        sink.send(about(Event.RESOLVED), time.time())
        assert heard(4) == [("critical", "resolved")]
