"""Archives in a bucket, with the real client and a server on loopback."""

import pytest

from sentinel.archives.archive import origin_of
from sentinel.archives.engine import Local
from sentinel.archives.parts import parts
from sentinel.common.errors import SentinelError
from sentinel.replays.replaying import replay
from sentinel.report.json import document
from sentinel.sources.discovery import location
from tests.archives.conftest import NOW, archived, as_json, config, reported, whole

pytestmark = pytest.mark.slow

obstore = pytest.importorskip("obstore")
servers = pytest.importorskip("tests.sources.remote.servers_http")


class BusyServer(servers.S3Server):
    """One that answers the next requests for objects with an error."""

    busy = 0
    status = "503 Slow Down"

    def _answer(self, environ, respond):
        if self.busy and environ["REQUEST_METHOD"] == "GET":
            self.busy -= 1
            respond(self.status, [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>s3cr3t</Message></Error>"]
        return super()._answer(environ, respond)


@pytest.fixture
def server(tmp_path, monkeypatch):
    server = BusyServer(tmp_path)
    server.lead_here(monkeypatch)
    yield server
    server.stop()


@pytest.fixture
def bucket(server, tree):
    for file in tree.rglob("*"):
        if file.is_file():
            server.write(str(file.relative_to(tree)), file.read_bytes())
    return server


@pytest.mark.long
def test_a_bucket_gives_what_one_replay_of_it_gives(bucket, tmp_path):
    url = location(bucket.address)
    expected = as_json(document(replay([url], config(url), lambda *_: None), NOW))
    results, judged = archived(tmp_path / "results", url)
    assert reported(results) == expected
    assert judged.runs == len(expected["runs"])
    _, again = archived(tmp_path / "results", url)
    assert again.completed == 0
    bucket.write("kl-blowup/more.txt", b"epoch 1 loss 2\n")
    _, changed = archived(tmp_path / "results", url)
    assert changed.completed == 1
    sharded, _ = archived(tmp_path / "pool", url, Local(2))
    assert {one["run"] for one in reported(sharded)["runs"]} >= {one["run"] for one in expected["runs"]}


def test_settings_above_a_run_are_fetched_with_it(server, tmp_path):
    rows = "".join(f"{step},{2 - step / 100}\n" for step in range(60))
    server.write("a/.hydra/config.yaml", b"lr: 0.1\n")
    server.write("a/version_0/metrics.csv", f"step,loss\n{rows}".encode())
    origin = origin_of([location(server.address)])
    found = {}
    scratch = tmp_path
    for part in parts(origin.listed([]), ""):
        with origin.opened(part) as opened:
            for run, name in opened.runs:
                found[name] = (run.local.parent.parent / ".hydra" / "config.yaml").exists()
            scratch = opened.runs[0][0].local if opened.runs else scratch
    assert found == {"bucket/runs/a/version_0/metrics.csv": True}
    assert not scratch.exists()


@pytest.mark.long
def test_a_server_that_is_busy_for_a_while_costs_nothing(bucket, tmp_path):
    url = location(bucket.address)
    expected, _ = archived(tmp_path / "expected", url)
    bucket.busy = 5
    results, judged = archived(tmp_path / "results", url)
    assert judged.failed == 0
    assert reported(results) == reported(expected)


@pytest.mark.long
def test_what_cannot_be_listed_or_is_gone_is_said_without_secrets(bucket, tmp_path):
    bucket.welcome = False
    with pytest.raises(SentinelError, match="access is denied") as denied:
        archived(tmp_path / "results", location(bucket.address))
    assert servers.SECRET not in str(denied.value)
    bucket.welcome = True
    with pytest.raises(SentinelError, match="nothing lies there"):
        archived(tmp_path / "results", location("s3://bucket/nowhere"))
    with pytest.raises(SentinelError, match="judges paths, or one address"):
        origin_of([location(bucket.address), tmp_path])


@pytest.mark.long
def test_what_cannot_be_fetched_is_a_row_with_its_reason_and_is_tried_again(bucket, tmp_path):
    url = location(bucket.address)

    class Locked:
        """An engine that works once access is denied."""

        def results(self, work, parts):
            for part in parts:
                bucket.welcome = part.folders[0].path.endswith("kl-blowup")
                try:
                    yield part, work(part)
                except SentinelError as error:
                    yield part, str(error)
                finally:
                    bucket.welcome = True

    results, judged = archived(tmp_path / "results", url, Locked())
    assert judged.failed > 0
    assert all("access is denied" in one.failure for one in whole(results).failed)
    results, again = archived(tmp_path / "results", url, retry_failed=True)
    assert again.failed == 0
    assert reported(results) == reported(archived(tmp_path / "whole", url)[0])
