"""Two watches of the same runs, each on a machine of its own, such that one may die."""

import json

import pytest

from tests.sinks.receiver import Receiver

CONFIG = """
paths = ["runs"]
{host}
[signals]
"my/odd/kl" = "kl"
[[sinks]]
type = "webhook"
url = "{url}/webhook"
[[sinks]]
type = "alertmanager"
url = "{url}/alertmanager"
"""


@pytest.fixture
def told_by(sentinel, sick_run, tmp_path, monkeypatch):
    """Call to let a watch on a machine of that name read all runs: what a webhook and Alertmanager got."""

    def watch(machine, host=""):
        monkeypatch.setattr("sentinel.pipeline.gethostname", lambda: machine)
        with Receiver() as receiver:
            (tmp_path / "sentinel.toml").write_text(CONFIG.format(url=receiver.url, host=host))
            assert sentinel("watch", "--once", "--state-dir", tmp_path / machine).status == 0
            bodies = {post.path: json.loads(post.body) for post in receiver.received}
        return bodies["/hook/webhook"], bodies["/hook/alertmanager/api/v2/alerts"]

    return watch


@pytest.mark.long  # two watches
def test_a_webhook_can_drop_the_second_and_alertmanager_sees_one_alert(told_by):
    same = 'host = "cluster"'
    (first, alerts) = told_by("node-1", same)
    (second, again) = told_by("node-2", same)
    assert first["idempotency_key"] == second["idempotency_key"]
    assert first["run"] == second["run"]
    assert first["run"]["host"] == "cluster"
    assert [alert["labels"] for alert in alerts] == [alert["labels"] for alert in again]


@pytest.mark.long  # two watches
def test_without_a_common_name_they_are_two_machines(told_by):
    (first, alerts) = told_by("node-1")
    (second, again) = told_by("node-2")
    assert (first["run"]["host"], second["run"]["host"]) == ("node-1", "node-2")
    assert first["idempotency_key"] != second["idempotency_key"]
    assert [alert["labels"] for alert in alerts] != [alert["labels"] for alert in again]
