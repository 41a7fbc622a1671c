"""The files of `deploy/fleet` with a real Prometheus and a real pair of Alertmanagers, one of which fails.

Only what a machine must have of its own differs: addresses, places and pauses.
"""

import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE
from tests.sinks.receiver import Receiver
from tests.web.conftest import log

DEPLOY = Path(__file__).parents[1] / "deploy"
PROMETHEUS = shutil.which("prometheus")
ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
PAIR = ("alertmanager-0", "alertmanager-1")

pytestmark = [
    pytest.mark.long,  # four servers, which agree in seconds
    pytest.mark.skipif(
        PROMETHEUS is None or ALERTMANAGER is None,
        reason="needs Debian's packages prometheus and prometheus-alertmanager on the PATH",
    ),
]


class Fleet:
    """The processes by name. ``told`` are the groups of alerts that arrived, in order."""

    def __init__(self, place: Path, receiver: Receiver) -> None:
        self.place = place
        self._receiver = receiver
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        with ExitStack() as held:
            taken = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(7)]
            names = (*PAIR, *(f"gossip of {name}" for name in PAIR), "prometheus", "watch", "second watch")
            self.address = {
                name: f"127.0.0.1:{server.getsockname()[1]}"
                for name, server in zip(names, taken, strict=True)
            }
        (place / "runs").mkdir()
        (place / "targets").mkdir()
        (place / "targets" / "node.json").write_text(json.dumps([{"targets": [self.address["watch"]]}]))
        for file in ("alertmanager.yml", "prometheus.yml", "sentinel.toml"):
            (place / file).write_text(self._of_here((DEPLOY / "fleet" / file).read_text()))
        rules = (DEPLOY / "prometheus-rules.yml").read_text()
        (place / "prometheus-rules.yml").write_text(re.sub(r"for: \w+", "for: 1s", rules))

    def _of_here(self, text: str) -> str:
        for name in PAIR:
            text = text.replace(f"{name}:9093", self.address[name])
        text = text.replace("http://127.0.0.1:9095/", self._receiver.url)
        text = text.replace('paths = ["/runs"]', f'paths = ["{self.place}/runs"]\nhost = "cluster"')
        return re.sub(r"((_interval|group_wait): )(30s|5m)", r"\g<1>1s", text)

    def start(self, *names: str, apart: bool = False) -> None:
        """Start some of the processes. Alertmanagers that are ``apart`` do not look for each other."""
        for name in names:
            with (self.place / f"{name}.log").open("ab") as file:
                self._processes[name] = subprocess.Popen(
                    self._command(name, apart=apart), cwd=self.place, stdout=file, stderr=file
                )
        for name in names:
            until(lambda name=name: self._answers(name))

    def _command(self, name: str, *, apart: bool) -> list[str]:
        address = self.address[name]
        if name in PAIR:
            (other,) = {*PAIR} - {name}
            gossip = self.address[f"gossip of {name}"]
            peer = [] if apart else [f"--cluster.peer={self.address[f'gossip of {other}']}"]
            return [
                *(ALERTMANAGER, "--config.file=alertmanager.yml", f"--storage.path={name}"),
                *(f"--web.listen-address={address}", f"--cluster.listen-address={gossip}", *peer),
                f"--cluster.advertise-address={gossip}",
            ]
        if name == "prometheus":
            return [PROMETHEUS, "--config.file=prometheus.yml", f"--web.listen-address={address}"]
        own = ["--config", "sentinel.toml", "--state-dir", f"state of {name}", "--listen", address]
        return [sys.executable, "-m", "sentinel", "watch", *own]

    def kill(self, *names: str) -> None:
        """End processes at once, as a power failure does."""
        for name in names:
            process = self._processes.pop(name)
            process.kill()
            process.wait()

    def signal(self, what: signal.Signals, *names: str) -> None:
        """Send a signal to processes: a stopped one answers nobody, as one behind a cut cable."""
        for name in names:
            self._processes[name].send_signal(what)

    def close(self) -> None:
        """End all."""
        self.kill(*self._processes)

    def goes_wrong(self, run: str) -> None:
        """Let a new run log NaN."""
        log(self.place / "runs" / run, range(200), loss=math.nan)

    @property
    def told(self) -> list[frozenset[tuple[str, str, str]]]:
        """What each message said: the run (or the name of an alert without one), severity and status."""
        return [
            frozenset(
                (
                    labels.get("run", labels["alertname"]).partition("/")[0],
                    labels["severity"],
                    alert["status"],
                )
                for alert in json.loads(post.body)["alerts"]
                for labels in [alert["labels"]]
            )
            for post in self._receiver.received
        ]

    @property
    def repeated(self) -> Counter[frozenset[tuple[str, str, str]]]:
        """What arrived more than once, word for word."""
        return Counter(self.told) - Counter({*self.told})

    def hears_of(self, what: str) -> None:
        """Wait until somebody is told that it fires."""
        self._receiver.wait_for(lambda: any((what, "critical", "firing") in told for told in self.told))

    def both_have_looked(self) -> None:
        """Wait until each Alertmanager decided about what it holds now: the second gives the first 15 s."""
        before = {name: self._decisions(name) for name in PAIR}
        until(lambda: all(self._decisions(name) >= before[name] + 2 for name in PAIR))

    def _answers(self, name: str) -> bool:
        assert self._processes[name].poll() is None, (self.place / f"{name}.log").read_text()
        with suppress(httpx.TransportError):
            return httpx.get(f"http://{self.address[name]}/metrics", timeout=PATIENCE).is_success
        return False

    def _decisions(self, name: str) -> float:
        (count,) = self.metric(name, r"alertmanager_nflog_queries_total")
        return count

    def metric(self, name: str, pattern: str) -> list[float]:
        """The values of the metrics that a process shows under names and labels of this pattern."""
        text = httpx.get(f"http://{self.address[name]}/metrics", timeout=PATIENCE).text
        return [float(value) for value in re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE)]


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)  # none of these servers tells an event


@pytest.fixture
def fleet(tmp_path):
    with Receiver() as receiver, ExitStack() as ended:
        fleet = Fleet(tmp_path, receiver)
        ended.callback(fleet.close)
        fleet.start(*PAIR, "watch")
        fleet.start("prometheus")  # which would tell of a watch that only begins
        yield fleet


def test_each_incident_arrives_once_from_two_and_from_the_one_that_is_left(fleet):
    fleet.goes_wrong("all-is-well")
    fleet.hears_of("all-is-well")
    fleet.both_have_looked()
    assert not fleet.repeated
    fleet.kill("alertmanager-0")
    fleet.goes_wrong("one-is-dead")
    fleet.hears_of("one-is-dead")
    fleet.start("alertmanager-0")
    fleet.goes_wrong("it-is-back")
    fleet.hears_of("it-is-back")


def test_a_watch_that_is_killed_tells_the_rest_once_it_runs_and_prometheus_tells_that_it_is_down(fleet):
    fleet.goes_wrong("before")
    fleet.hears_of("before")
    fleet.kill("watch")
    fleet.goes_wrong("while-nobody-watched")
    fleet.hears_of("SentinelDown")
    fleet.start("watch")
    fleet.hears_of("while-nobody-watched")
    fleet.both_have_looked()
    # Alertmanager itself repeats what is over before the turn of the second one comes.
    assert {*fleet.repeated} <= {frozenset([("SentinelDown", "critical", "firing")])}


def test_what_happens_while_nobody_can_be_told_arrives_afterwards(fleet):
    fleet.signal(signal.SIGSTOP, *PAIR)
    fleet.goes_wrong("nobody-hears")
    postponed = r'sentinel_deliveries_total\{result="postponed",sink="alertmanager-\d"\}'
    until(lambda: len(fleet.metric("watch", postponed)) == 2)
    fleet.kill("prometheus")
    fleet.signal(signal.SIGCONT, *PAIR)
    fleet.hears_of("nobody-hears")
    fleet.both_have_looked()
    assert not fleet.repeated


def test_two_that_do_not_hear_each_other_tell_of_it_twice_and_no_more(fleet):
    fleet.kill(*PAIR)
    fleet.start(*PAIR, apart=True)
    fleet.goes_wrong("apart")
    fleet.hears_of("apart")
    fleet.both_have_looked()
    assert max(Counter(fleet.told).values()) == 2


def test_what_two_watches_of_the_same_runs_tell_arrives_once(fleet):
    fleet.start("second watch")
    fleet.goes_wrong("seen-by-two")
    fleet.hears_of("seen-by-two")
    fleet.kill("watch")
    fleet.goes_wrong("seen-by-the-second")
    fleet.hears_of("seen-by-the-second")
    fleet.both_have_looked()
    assert not fleet.repeated
