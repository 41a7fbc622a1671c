"""Logs behind addresses: one suite for all schemes, each with its real client and a server on loopback."""

import itertools
import json
import random
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sentinel.cli.app import main
from sentinel.sources import discovery
from sentinel.sources.discovery import discover, location
from sentinel.sources.readers import retry
from sentinel.sources.remote import clients, mirror
from sentinel.sources.remote import directories as remote
from sentinel.sources.remote.mirror import Mirror
from sentinel.storage.store import Store
from tests.manual_clock import ManualClock
from tests.sinks.receiver import Receiver
from tests.sources.reader import Reader
from tests.sources.remote.servers import SECRET, SshServer
from tests.sources.remote.servers_http import GsServer, HfServer, S3Server
from tests.sources.runs import STEPS, points
from tests.sources.writers import WRITERS
from tests.tools.survival import rows

pytestmark = pytest.mark.slow

SERVERS = {"s3": S3Server, "gs": GsServer, "hf": HfServer, "ssh": SshServer}


@pytest.fixture(params=SERVERS)
def server(request, tmp_path_factory, monkeypatch):
    """One for each scheme in turn, that the clients of this process and its children find."""
    server = SERVERS[request.param](tmp_path_factory.mktemp(request.param))
    server.lead_here(monkeypatch)
    yield server
    server.stop()


@pytest.fixture
def clock(monkeypatch, tmp_path):
    """Of the mirrors, whose copies lie in ``tmp_path / "copies"``."""
    clock = ManualClock(1e6)
    monkeypatch.setattr(remote, "Mirror", lambda url, root: Mirror(url, root, clock.now))
    monkeypatch.setattr(discovery, "_scratch", lambda: SimpleNamespace(name=tmp_path / "copies"))
    remote._mirror.cache_clear()
    yield clock
    remote._mirror.cache_clear()


@pytest.fixture
def reader(server, clock):
    return Reader(location(server.address), clock)


def lines(begin, end):
    return b"".join(b'{"step": %d, "loss": %d.5}\n' % (step, step) for step in range(begin, end))


def losses(begin, end):
    return [("loss", step, f"{step}.5") for step in range(begin, end)]


@pytest.mark.parametrize("name", ["jsonl", "tensorboard", "csv", "wandb"])
def test_a_log_is_read_as_it_grows(server, reader, tmp_path, name):
    writer = WRITERS[name]()
    (tmp_path / "written").mkdir()
    writer.start(tmp_path / "written")
    for step, values in STEPS:
        writer.log(step, values)
    writer.close()
    (file,) = (file for file in (tmp_path / "written").rglob("*") if file.is_file())
    data = file.read_bytes()
    for end in (len(data) // 3, len(data) * 2 // 3, len(data)):
        server.write(f"a/{file.name}", data[:end])
        reader.poll()
    assert reader.points == points(STEPS)
    assert reader.restarts == 0
    assert not reader.read_issues


def test_only_what_is_new_is_fetched(server, reader):
    name = "a/metrics.jsonl"
    size = len(lines(0, 1000))
    server.write(name, lines(0, 1000))
    server.write("a/empty.jsonl", b"")
    server.write("a/model.safetensors", bytes(1000))
    reader.poll()
    assert {name for name, begin, end in server.fetched if end > begin} == {name}
    assert server.extent() == (0, size)
    assert reader.poll().points == losses(0, 1000)
    assert server.extent() is None
    server.write(name, lines(0, 1001))
    assert reader.poll().points == losses(0, 1001)
    assert server.extent() == (size - 1024, len(lines(0, 1001)))


def test_large_files_come_in_pieces(server, reader, monkeypatch):
    monkeypatch.setattr(mirror, "_BATCH_BYTES", 4096)
    monkeypatch.setattr(mirror, "_CHUNK_BYTES", 2048)
    sizes = {"a": 500, "b": 400, "c": 1}
    for name, size in sizes.items():
        server.write(f"{name}/metrics.jsonl", lines(0, size))
    expected = [point for size in sizes.values() for point in losses(0, size)]
    assert sorted(reader.poll().points) == sorted(expected)
    assert max(end - begin for _, begin, end in server.fetched) <= 4096 + 1024 + 1


def test_a_restart_goes_on_with_the_copy(server, reader):
    server.write("a/metrics.jsonl", lines(0, 100))
    reader.poll()
    remote._mirror.cache_clear()
    server.fetched.clear()
    reader.poll()
    assert not server.fetched or not server.tells_times
    server.write("a/metrics.jsonl", lines(0, 200))
    remote._mirror.cache_clear()
    assert reader.poll().points == losses(0, 200)
    assert reader.restarts == 0


@pytest.mark.parametrize("count", [5, 200, 300])
def test_a_file_that_was_replaced_is_read_again(server, reader, count):
    server.write("a/metrics.jsonl", lines(0, 200))
    reader.poll()
    server.write("a/metrics.jsonl", lines(0, count).replace(b".5", b".7"))
    reader.poll()
    assert reader.points[200:] == [("loss", step, f"{step}.7") for step in range(count)]
    assert reader.restarts == 1


def test_runs_that_come_and_go(server, clock):
    url = location(server.address)
    (complaint,) = map(str, discover([url]).read_issues)
    assert complaint == f"{url}: cannot be read (no log lies there, or none that may be seen)"
    clock.advance(1000)
    server.write("a/metrics.jsonl", lines(0, 3))
    (run,) = discover([url]).runs
    assert (run.id, run.path.name) == (f"jsonl:{url}/a/metrics.jsonl", "metrics.jsonl")
    server.remove("a/metrics.jsonl")
    server.write("b/metrics.jsonl", lines(0, 3))
    clock.advance(15)
    (run,) = discover([url]).runs
    assert str(run.path) == f"{url}/b/metrics.jsonl"


def test_one_file(server, clock):
    server.write("a/metrics.jsonl", lines(0, 3))
    server.write("a/other.jsonl", lines(0, 3))
    reader = Reader(location(f"{server.address}/a/metrics.jsonl"), clock).poll()
    server.write("a/metrics.jsonl", lines(0, 5))
    assert reader.poll().points == losses(0, 5)
    (run,) = reader.runs.values()
    assert run.path == reader.path


@pytest.mark.long
@pytest.mark.parametrize("server", ["s3"], indirect=True)
def test_names_that_lead_elsewhere(server, reader, tmp_path):
    server.write("a/metrics.jsonl", lines(0, 3))
    server.write("a/../../../up.jsonl", lines(0, 3))
    server.write("long" * 100 + ".jsonl", lines(0, 3))
    server.write("a/metrics.jsonl/below.jsonl", lines(0, 3))
    assert reader.poll().poll().points == losses(0, 3)
    assert [file.name for file in tmp_path.rglob("*.jsonl")] == ["metrics.jsonl"]


def test_odd_names(server, reader):
    server.write("with space/Größe %20#?&+.jsonl", lines(0, 3))
    assert reader.poll().points == losses(0, 3)
    (run,) = reader.runs.values()
    assert str(run.path) == f"{server.address}/with space/Größe %20#?&+.jsonl"


def test_complaints_name_the_address(server, reader):
    server.write("a/metrics.jsonl", lines(0, 3) + b"broken\n" + lines(3, 6))
    (complaint,) = reader.poll().read_issues
    assert complaint.startswith(f"{server.address}/a/metrics.jsonl at line 4: ")


def test_an_outage_is_said_once_and_waited_for(server, reader):
    server.write("a/metrics.jsonl", lines(0, 3))
    (run,) = discover([reader.path]).runs
    cursor = run.source.poll({}, 1000).cursor
    server.stop()
    reader.clock.advance(mirror._REFRESH_SECONDS)
    batch = run.source.poll(cursor, 1000)
    (complaint,) = map(str, batch.read_issues)
    assert complaint.startswith(f"{server.address}/a/metrics.jsonl: cannot be read (no answer")
    assert SECRET not in complaint
    assert not run.source.poll(batch.cursor, 1000).read_issues
    server.start()
    server.write("a/metrics.jsonl", lines(0, 5))
    assert not run.source.poll(batch.cursor, 1000).chunks
    reader.clock.advance(retry.FIRST_PAUSE_SECONDS)
    (chunk,) = run.source.poll(batch.cursor, 1000).chunks
    assert chunk.flat.step.tolist() == [3, 4]


@pytest.mark.parametrize("welcome", [True, False])
def test_what_cannot_be_read_is_one_line(server, clock, capfd, caplog, welcome):
    server.write("a/metrics.jsonl", lines(0, 3))
    server.welcome = welcome
    address = server.elsewhere if welcome else server.address
    with pytest.raises(SystemExit) as ended:
        main(["replay", address])
    assert ended.value.code == 2
    reason = "no log lies there" if welcome else "access is denied"
    said = capfd.readouterr().err
    assert said.startswith(f"sentinel: {address}: cannot be read ({reason}")
    assert said.count("\n") == 1
    assert SECRET not in said
    assert not caplog.text
    assert not server.fetched


def test_settings_beside_a_log(server, clock, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    server.write("a/metrics.jsonl", lines(0, 3))
    server.write("a/config.yaml", b"learning_rate: 0.1\n")
    with pytest.raises(SystemExit):
        main(["replay", server.address, "--format", "json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["path"] == f"{server.address}/a/metrics.jsonl"
    assert run["run"] == run["path"].partition("//")[2]
    assert "learning_rate" in json.dumps(run)


@pytest.mark.long
def test_a_watch_that_is_killed_says_nothing_twice(server, clock, tmp_path, capsys):
    def log(count):
        steps = itertools.islice(rows(random.Random(7)), count)
        return b"".join(json.dumps({"step": i, **row}).encode() + b"\n" for i, row in enumerate(steps))

    def sentinel(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments)])
        assert not ended.value.code
        return capsys.readouterr().out

    config = tmp_path / "sentinel.toml"
    watch = ("watch", "--config", config)
    with Receiver() as receiver:
        sink = f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n'
        config.write_text(f'paths = ["{server.address}"]\nstate_dir = "state"\n{sink}')
        server.write("a/metrics.jsonl", log(120))
        life = subprocess.Popen([sys.executable, "-m", "sentinel", *watch], stderr=subprocess.DEVNULL)
        try:
            receiver.wait_for(lambda: receiver.received)
        finally:
            life.kill()
            life.wait()
        server.write("a/metrics.jsonl", log(240))
        sentinel(*watch, "--once")
        bodies = [json.loads(request.body) for request in receiver.received]
    (run,) = json.loads(sentinel("replay", server.address, "--format", "json"))["runs"]
    with Store(tmp_path / "state") as store:
        recorded = {incident.id for incident in store.incidents()}
    assert recorded == {incident["id"] for incident in run["incidents"]}
    told = {(b["incident"]["id"], b["idempotency_key"]) for b in bodies if b["event"] == "firing"}
    assert sorted(id_ for id_, _ in told) == sorted(
        i["id"] for i in run["incidents"] if i["severity"] != "info" and not i["inhibited_by"]
    )
    assert len(told) > 1


@pytest.mark.parametrize("server", ["ssh"], indirect=True)
def test_a_host_that_is_not_known_is_not_asked(server, clock):
    server.write("a/metrics.jsonl", lines(0, 3))
    server.known_hosts.write_text("")
    (complaint,) = map(str, discover([location(server.address)]).read_issues)
    assert "the host's key is not known" in complaint
    assert not server.users


@pytest.mark.parametrize("server", ["ssh"], indirect=True)
def test_directories_that_cannot_be_looked_into(server, reader):
    server.write("a/metrics.jsonl", lines(0, 3))
    server.write("private/metrics.jsonl", lines(0, 3))
    (server.files / "runs/link.jsonl").symlink_to("a/metrics.jsonl")
    (server.files / "runs/loop").symlink_to(".")
    assert reader.poll().points == losses(0, 3)
    assert not reader.read_issues


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("s3://", "names no place"),
        ("ssh://me:word@host/runs", "holds a password"),
        ("gs://bucket/runs", r"training-sentinel\[gs\]"),
    ],
)
def test_addresses_that_cannot_be_used(text, problem, monkeypatch):
    monkeypatch.setitem(clients.PACKAGES, "gs", "not_there")
    with pytest.raises(ValueError, match=problem) as raised:
        location(text)
    assert "word@" not in str(raised.value)
