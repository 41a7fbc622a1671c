"""Logs in a bucket, of an S3 server on loopback."""

import json
import logging

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from sentinel.cli.app import main
from sentinel.clock import ManualClock
from sentinel.sources import mirror, patience, remote
from sentinel.sources.discovery import discover, place
from sentinel.sources.mirror import Mirror
from tests.sources.test_every_source import STEPS, points
from tests.sources.writers import WRITERS

RUNS = place("s3://bucket/runs")


@pytest.fixture(scope="module")
def server():
    """A server, and a client to write with that has nothing in common with the reader's."""
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield fsspec.filesystem("s3", skip_instance_cache=True)
    server.stop()


@pytest.fixture
def bucket(server):
    """Call with a name and bytes."""
    server.mkdir("bucket")
    yield lambda name, data: server.pipe_file(f"bucket/{name}", data)
    server.invalidate_cache()
    server.rm("bucket", recursive=True)


@pytest.fixture
def clock(monkeypatch):
    clock = ManualClock(1e6)
    monkeypatch.setattr(remote, "Mirror", lambda url, root: Mirror(url, root, clock.now))
    remote._mirror.cache_clear()
    yield clock
    remote._mirror.cache_clear()


@pytest.fixture
def fetched(monkeypatch):
    """Name and range of whatever is fetched."""
    fetched = []
    fetch = fsspec.get_filesystem_class("s3")._cat_file

    async def noted(self, path, version_id=None, start=None, end=None):
        fetched.append((path, start, end))
        return await fetch(self, path, version_id=version_id, start=start, end=end)

    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "_cat_file", noted)
    return fetched


class Reader:
    """Polls all runs of a bucket a quarter of a minute after the other."""

    def __init__(self, clock, copies, url=RUNS):
        self.clock, self.copies, self.url = clock, copies, url
        self.cursors, self.points, self.complaints, self.restarts = {}, [], [], 0

    def poll(self, limit=1000):
        self.clock.advance(15)
        found = discover([self.url], self.copies)
        self.complaints += map(str, found.complaints)
        for run in found.runs:
            more = True
            while more:
                batch = run.source.poll(json.loads(self.cursors.get(run.id, "{}")), limit)
                self.cursors[run.id], more = json.dumps(batch.cursor), batch.more
                self.complaints += map(str, batch.complaints)
                for chunk in (chunk.flat for chunk in batch.chunks):
                    self.restarts += chunk.restarted
                    tags = [chunk.tags[i] for i in chunk.tag]
                    self.points += zip(tags, chunk.step.tolist(), map(str, chunk.value.tolist()), strict=True)
        return self


def lines(begin, end):
    return b"".join(b'{"step": %d, "loss": %d.5}\n' % (step, step) for step in range(begin, end))


def losses(begin, end):
    return [("loss", step, f"{step}.5") for step in range(begin, end)]


@pytest.mark.parametrize("name", ["jsonl", "tensorboard", "csv", "wandb"])
def test_a_log_in_a_bucket_is_read_as_it_grows(bucket, clock, tmp_path, name):
    writer = WRITERS[name]()
    (tmp_path / "written").mkdir()
    writer.start(tmp_path / "written")
    for step, values in STEPS:
        writer.log(step, values)
    writer.close()
    reader = Reader(clock, tmp_path / "copies")
    (file,) = (file for file in (tmp_path / "written").rglob("*") if file.is_file())
    data = file.read_bytes()
    for end in (len(data) // 3, len(data) * 2 // 3, len(data)):
        bucket(f"runs/a/{file.name}", data[:end])
        reader.poll()
    assert reader.points == points(STEPS)
    assert reader.restarts == 0
    assert not reader.complaints


def test_only_what_is_new_is_fetched(bucket, clock, tmp_path, fetched):
    reader = Reader(clock, tmp_path)
    bucket("runs/a/metrics.jsonl", lines(0, 1000))
    bucket("runs/a/model.safetensors", bytes(1000))
    reader.poll()
    size = len(lines(0, 1000))
    assert fetched == [("bucket/runs/a/metrics.jsonl", 0, size)]
    reader.poll()
    assert len(fetched) == 1
    bucket("runs/a/metrics.jsonl", lines(0, 1001))
    assert reader.poll().points == losses(0, 1001)
    assert fetched[1:] == [("bucket/runs/a/metrics.jsonl", size - 1024, len(lines(0, 1001)))]


def test_large_files_come_in_pieces(bucket, clock, tmp_path, monkeypatch, fetched):
    monkeypatch.setattr(mirror, "_BATCH_BYTES", 4096)
    monkeypatch.setattr(mirror, "_CHUNK_BYTES", 2048)
    bucket("runs/a/metrics.jsonl", lines(0, 500))
    bucket("runs/b/metrics.jsonl", lines(0, 400))
    bucket("runs/c/metrics.jsonl", lines(0, 1))
    assert sorted(Reader(clock, tmp_path).poll().points) == sorted(
        losses(0, 500) + losses(0, 400) + losses(0, 1)
    )
    assert max(end - start for _, start, end in fetched) <= 4096 + 1024


def test_a_restart_goes_on_with_the_copy(bucket, clock, tmp_path, fetched):
    bucket("runs/a/metrics.jsonl", lines(0, 100))
    reader = Reader(clock, tmp_path).poll()
    remote._mirror.cache_clear()
    fetched.clear()
    reader.poll()
    assert not fetched
    bucket("runs/a/metrics.jsonl", lines(0, 200))
    remote._mirror.cache_clear()
    assert reader.poll().points == losses(0, 200)
    assert reader.restarts == 0


@pytest.mark.parametrize("count", [5, 200, 300])
def test_a_file_that_was_replaced_is_read_again(bucket, clock, tmp_path, count):
    bucket("runs/a/metrics.jsonl", lines(0, 200))
    reader = Reader(clock, tmp_path).poll()
    other = lines(0, count).replace(b".5", b".7")
    bucket("runs/a/metrics.jsonl", other)
    reader.poll()
    assert reader.points[200:] == [("loss", step, f"{step}.7") for step in range(count)]
    assert reader.restarts == 1


def test_runs_that_come_and_go(server, bucket, clock, tmp_path):
    reader = Reader(clock, tmp_path).poll()
    assert reader.complaints == ["s3://bucket/runs: cannot be read (no log lies there)"]
    clock.advance(1000)
    bucket("runs/a/metrics.jsonl", lines(0, 3))
    (run,) = discover([RUNS], tmp_path).runs
    assert (run.id, run.path.name) == ("jsonl:s3://bucket/runs/a/metrics.jsonl", "metrics.jsonl")
    server.rm("bucket/runs/a/metrics.jsonl")
    bucket("runs/b/metrics.jsonl", lines(0, 3))
    clock.advance(15)
    (run,) = discover([RUNS], tmp_path).runs
    assert str(run.path) == "s3://bucket/runs/b/metrics.jsonl"


def test_one_file(bucket, clock, tmp_path):
    bucket("runs/a/metrics.jsonl", lines(0, 3))
    bucket("runs/a/other.jsonl", lines(0, 3))
    url = place("s3://bucket/runs/a/metrics.jsonl")
    assert Reader(clock, tmp_path, url).poll().points == losses(0, 3)
    (run,) = discover([url], tmp_path).runs
    assert run.path == url


def test_names_that_lead_elsewhere(bucket, clock, tmp_path):
    bucket("runs/a/metrics.jsonl", lines(0, 3))
    bucket("runs/a/../../../up.jsonl", lines(0, 3))
    bucket("runs/" + "long" * 100 + ".jsonl", lines(0, 3))
    bucket("runs/a/metrics.jsonl/below.jsonl", lines(0, 3))
    reader = Reader(clock, tmp_path / "copies").poll().poll()
    assert reader.points == losses(0, 3)
    assert [file.name for file in tmp_path.rglob("*.jsonl")] == ["metrics.jsonl"]


def test_complaints_name_the_address(bucket, clock, tmp_path):
    bucket("runs/a/metrics.jsonl", lines(0, 3) + b"broken\n" + lines(3, 6))
    (complaint,) = Reader(clock, tmp_path).poll().complaints
    assert complaint.startswith("s3://bucket/runs/a/metrics.jsonl at line 4: ")


def test_settings_beside_a_log_in_a_bucket(bucket, tmp_path, monkeypatch, capsys, clock):
    monkeypatch.chdir(tmp_path)
    bucket("runs/a/metrics.jsonl", lines(0, 3))
    bucket("runs/a/config.yaml", b"learning_rate: 0.1\n")
    with pytest.raises(SystemExit):
        main(["replay", str(RUNS), "--format", "json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["path"] == "s3://bucket/runs/a/metrics.jsonl"
    assert run["run"] == "bucket/runs/a/metrics.jsonl"
    assert "learning_rate" in json.dumps(run)


def test_an_outage_is_said_once_and_waited_for(bucket, clock, tmp_path, monkeypatch):
    bucket("runs/a/metrics.jsonl", lines(0, 3))
    (run,) = discover([RUNS], tmp_path).runs
    cursor = run.source.poll({}, 1000).cursor
    system = fsspec.get_filesystem_class("s3")
    with monkeypatch.context() as patch:
        patch.setattr(system, "find", lambda *_, **__: (_ for _ in ()).throw(TimeoutError("s3cr3t")))
        clock.advance(15)
        batch = run.source.poll(cursor, 1000)
        (complaint,) = map(str, batch.complaints)
        assert complaint.startswith("s3://bucket/runs/a/metrics.jsonl: cannot be read (no answer")
        assert "s3cr3t" not in complaint
        assert not run.source.poll(batch.cursor, 1000).complaints
    bucket("runs/a/metrics.jsonl", lines(0, 5))
    assert not run.source.poll(batch.cursor, 1000).chunks
    clock.advance(patience.FIRST_PAUSE_SECONDS)
    (chunk,) = run.source.poll(batch.cursor, 1000).chunks
    assert chunk.step.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("s3://", "names no place"),
        ("ssh://me:word@host/runs", "holds a password"),
        ("gs://bucket/runs", "pip install gcsfs"),
    ],
)
def test_addresses_that_cannot_be_used(text, problem, monkeypatch):
    monkeypatch.setitem(remote._PACKAGES, "gs", "gcsfs_that_is_not_there")
    if text.startswith("gs"):
        problem = problem.replace("gcsfs", "gcsfs_that_is_not_there")
    with pytest.raises(ValueError, match=problem) as raised:
        place(text)
    assert "word@" not in str(raised.value)
