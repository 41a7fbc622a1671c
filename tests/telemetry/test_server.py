"""`/metrics`, `/healthz` and the heartbeat, asked over real sockets."""

import json
import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import yaml
from msgspec.structs import replace

from sentinel.calibration.calibration import Calibration
from sentinel.common.address import Address
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError
from sentinel.runs.metadata import RunMetadata
from sentinel.sinks.heartbeat import HeartbeatConfig, beating
from sentinel.storage.store import Store
from sentinel.telemetry.health import SILENT_SECONDS, Health
from sentinel.telemetry.metrics import Metrics
from sentinel.telemetry.server import serving
from tests.cli.test_service import wait_for, watching
from tests.manual_clock import ManualClock
from tests.patience import PATIENCE
from tests.sinks.receiver import Receiver, status
from tests.sinks.samples import NOTIFICATION, enqueue

PROMISE = Calibration(made_at=datetime(2026, 1, 1, tzinfo=UTC), pages_per_run=0.05, runs=1000, pages=0)
DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def health():
    return Health()


@pytest.fixture
def metrics(tmp_path, health):
    Store(tmp_path).close()
    return Metrics(tmp_path, health, SystemClock())


@pytest.fixture
def server(metrics):
    with serving(Address("127.0.0.1", 0), metrics, SystemClock()) as address:
        yield f"http://{address}"


@pytest.mark.slow
def test_health_is_what_every_part_reported(server, health):
    assert get(f"{server}/healthz").status_code == 503
    now = SystemClock().monotonic()
    health.report("watch", "", now)
    answer = get(f"{server}/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")
    health.report("watch wandb://a/b", "reads nothing: the disk is full", now)
    assert get(f"{server}/healthz").text == "watch wandb://a/b: reads nothing: the disk is full\n"
    health.begin()
    health.report("watch", "", now - SILENT_SECONDS - 1)
    assert get(f"{server}/healthz").text.startswith("watch: reported nothing for 5 min")
    assert "sentinel_healthy 0.0" in get(f"{server}/metrics").text


@pytest.mark.slow
def test_a_watch_whom_no_sink_hears_is_not_well(server, health, tmp_path):
    clock = SystemClock()
    health.report("watch", "", clock.monotonic())
    with Store(tmp_path) as store:
        for key, hours in (("old", 3), ("new", 2)):
            enqueue(store, replace(NOTIFICATION, key=key), ("slack",), clock.now() - 3600 * hours)
        assert get(f"{server}/healthz").status_code == 200, "nothing was tried, as over a budget"
        first, second = store.outbox.worst("slack", 1)
        (tried,) = store.outbox.begin([first])
        answer = get(f"{server}/healthz")
        assert answer.status_code == 503
        assert answer.text == "no sink has taken anything for 3 h, and notifications wait\n"
        store.outbox.sent("slack", store.outbox.begin([second]), clock.now() - 60)
        assert get(f"{server}/healthz").status_code == 200, "one of them was taken"
        store.outbox.sent("slack", [tried], clock.now())
    assert get(f"{server}/healthz").status_code == 200


@pytest.mark.slow
def test_what_a_daily_digest_gathers_does_not_wait_for_its_receiver(server, metrics, tmp_path):
    with Store(tmp_path) as store:
        enqueue(store, NOTIFICATION, ("slack", "mail"), SystemClock().now())
    metrics.daily = {"mail"}
    waiting = re.findall(r"^sentinel_waiting_notifications.*", get(f"{server}/metrics").text, re.MULTILINE)
    assert waiting == ['sentinel_waiting_notifications{sink="slack"} 1.0']


@pytest.mark.long  # more connections than may wait at once
def test_clients_that_ask_nothing_keep_nobody_out(server, health, capfd):
    health.report("watch", "", SystemClock().monotonic())
    address = Address.parse(server.removeprefix("http://"))
    with ExitStack() as stack:
        half_open = []
        for _ in range(1500):
            half_open.append(socket.create_connection((address.host, address.port)))
            stack.enter_context(half_open[-1])
            half_open[-1].send(b"GET /healthz HTTP/1.1\r\n")
        assert get(f"{server}/healthz").status_code == 200
        half_open[0].settimeout(PATIENCE)
        with suppress(ConnectionResetError):
            assert half_open[0].recv(1) == b"", "the oldest was ended"
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_request_may_not_take_for_ever(metrics):
    clock = ManualClock()
    with (
        serving(Address("127.0.0.1", 0), metrics, clock) as address,
        socket.create_connection((address.host, address.port)) as slow,
    ):
        slow.settimeout(PATIENCE)
        slow.send(b"GET /healthz HTTP/1.1\r\n")
        assert get(f"http://{address}/").status_code == 404, "by now the other was accepted"
        clock.advance(31)
        with suppress(ConnectionResetError):
            assert slow.recv(1) == b""


@pytest.mark.slow
def test_a_mistake_of_ours_is_logged_once_a_minute(metrics, monkeypatch, caplog):
    def fail():
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(metrics, "problems", fail)
    clock = ManualClock()
    with serving(Address("127.0.0.1", 0), metrics, clock) as address:
        for at, times in ((0, 1), (59, 1), (60, 2)):
            clock.advance(at - clock.monotonic())
            assert get(f"http://{address}/healthz").status_code == 500
            assert len(caplog.records) == times


@pytest.mark.slow
def test_a_state_that_cannot_be_read_is_a_line_and_no_traceback(server, tmp_path, capfd):
    (tmp_path / "sentinel.sqlite").write_bytes(b"this was a database once" * 100)
    answer = get(f"{server}/metrics")
    assert answer.status_code == 503
    assert "sentinel.sqlite" in answer.text
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_other_pages_are_not_found(server):
    assert get(f"{server}/").status_code == 404


@pytest.mark.slow
def test_an_address_in_use_is_one_line(server, metrics):
    address = Address.parse(server.removeprefix("http://"))
    with pytest.raises(SentinelError, match=f"cannot listen on {address}: Address already in use"):
        serving(address, metrics, SystemClock()).__enter__()


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9464", "127.0.0.1", 9464),
        (":9464", "127.0.0.1", 9464),
        ("0.0.0.0:1", "0.0.0.0", 1),
        ("[::1]:80", "::1", 80),
    ],
)
def test_an_address(text, host, port):
    assert Address.parse(text) == Address(host, port)
    assert Address.parse(str(Address(host, port))) == Address(host, port)


@pytest.mark.parametrize("text", ["", "host", "::1", "h:-1", "h:65536", "h:²"])
def test_no_address(text):
    with pytest.raises(ValueError, match="should be a port or HOST:PORT"):
        Address.parse(text)


@pytest.mark.slow
def test_the_heart_beats_only_while_all_is_well(health, caplog):
    with Receiver() as receiver:
        receiver.answers.append(status(500))
        often = {"every_seconds": 0.02}  # more often than one may configure
        config = HeartbeatConfig(url=receiver.url).model_copy(update=often)
        with beating(config, lambda: health.problems(SystemClock().monotonic()), SystemClock()):
            with receiver.changed:
                assert not receiver.changed.wait_for(lambda: receiver.received, timeout=0.2)
            health.report("watch", "", SystemClock().monotonic())
            receiver.wait_for(lambda: len(receiver.received) >= 2)
    assert "heartbeat: the receiver answered 500" in caplog.text
    assert receiver.url not in caplog.text


@pytest.mark.slow  # a watch and a Prometheus, both real
def test_prometheus_scrapes_a_watch(tmp_path):
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no `prometheus` here: apt-get install prometheus")
    (tmp_path / "runs").mkdir()
    log = [f'{{"step": {i}, "loss": {"NaN" if i >= 100 else 1.0}}}\n' for i in range(200)]
    (tmp_path / "runs" / "metrics.jsonl").write_text("".join(log))
    words = (tmp_path / "runs", "--state-dir", tmp_path / "state", "--listen", "0")
    with watching(*words) as process:
        address = wait_for(process, "answering /metrics and /healthz on ").split()[-1]
        config = {
            "global": {"scrape_interval": "1s"},
            "rule_files": [str(DEPLOY / "prometheus-rules.yml")],
            "scrape_configs": [{"job_name": "sentinel", "static_configs": [{"targets": [address]}]}],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        command = [
            program,
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as prometheus:
            try:
                line = wait_for(prometheus, "Listening on")
                port = re.search(r"address=127\.0\.0\.1:(\d+)", line)[1]
                values = until_found(f"http://127.0.0.1:{port}/api/v1/query", "sentinel_open_incidents")
            finally:
                prometheus.kill()
        assert values["detector"] == "non-finite-metric"
        assert values["instance"] == address


def get(url):
    return httpx.get(url, timeout=PATIENCE, verify=False)  # certificates take 50 ms to load


def until_found(api, query):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        result = httpx.get(api, params={"query": query}, timeout=PATIENCE).json()["data"]["result"]
        if result:
            return result[0]["metric"]
        time.sleep(0.2)  # Prometheus sends no event
    raise AssertionError(f"Prometheus never had {query}")


@pytest.mark.slow
def test_what_came_of_a_promise_is_counted(server, metrics, tmp_path):
    assert "sentinel_promise_broken" not in names(server)
    metrics.calibration = PROMISE
    metrics.logs = lambda: [
        SimpleNamespace(run=SimpleNamespace(id="r"), metadata=RunMetadata(), ending=None, stopped="")
    ]
    exposed = get(f"{server}/metrics").text
    assert "sentinel_promised_share 0.05\n" in exposed
    assert "sentinel_calibrated_runs 1.0\n" in exposed
    assert "sentinel_promise_broken 0.0\n" in exposed


def names(server):
    return set(re.findall(r"^# TYPE (\S+)", get(f"{server}/metrics").text, re.MULTILINE))


@pytest.mark.slow
def test_the_rules_and_the_dashboard_name_metrics_that_exist(server, metrics):
    metrics.calibration = PROMISE
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())
    queries += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    used = {name for expr in queries for name in re.findall(r"(?:sentinel|process)_\w+", expr)}
    assert {name.removesuffix("_bucket") for name in used} <= names(server)


@pytest.mark.slow
def test_prometheus_takes_the_rules_and_the_metrics(server, metrics):
    metrics.calibration = PROMISE
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no `promtool` here: apt-get install prometheus")
    subprocess.run(
        [program, "check", "rules", DEPLOY / "prometheus-rules.yml"], check=True, capture_output=True
    )
    exposed = get(f"{server}/metrics").text
    lint = [program, "check", "metrics"]
    checked = subprocess.run(lint, input=exposed, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr
