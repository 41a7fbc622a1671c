import json

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.incidents.incident import OVER, Event
from sentinel.sinks.pagerduty import PagerDutyConfig, event
from sentinel.sources.identity import RunIdentity
from tests.sinks.samples import INCIDENT, NOTIFICATION, about, digest

NOW = 1_767_230_000.0


def test_an_incident_triggers_an_alert(receiver, monkeypatch):
    monkeypatch.setenv("KEY", "R0UTING")
    PagerDutyConfig(url=receiver.url, routing_key_env="KEY").open().send(NOTIFICATION, NOW)
    body = json.loads(receiver.received[0].body)
    details = body["payload"].pop("custom_details")
    assert details["checkpoint"] == "/runs/grpo-7b/checkpoint-350"
    assert details["details"].startswith("KL to the reference is 3.2 nats per token, above 2.0.\n")
    assert body == {
        "routing_key": "R0UTING",
        "event_action": "trigger",
        "dedup_key": f"node-7/{INCIDENT.id}",
        "client": "sentinel",
        "payload": {
            "summary": "grpo-7b: KL to the reference is 3.2 nats per token, above 2.0.",
            "source": "node-7",
            "severity": "critical",
            "timestamp": "2026-01-01T00:02:00Z",
            "component": "grpo-7b",
            "class": "kl-blowup",
        },
        "links": [{"href": "https://tensorboard.example/#run=grpo-7b", "text": "Open the run"}],
    }


@pytest.mark.parametrize("name", [e for e in Event if e not in OVER])
def test_all_news_of_an_incident_update_one_alert(name):
    body = event(about(name))
    assert (body["event_action"], body["dedup_key"]) == ("trigger", f"node-7/{INCIDENT.id}")


def test_an_equal_path_on_another_machine_has_an_alert_of_its_own():
    elsewhere = replace(NOTIFICATION, run=msgspec.structs.replace(NOTIFICATION.run, host="node-8"))
    assert event(elsewhere)["dedup_key"] == f"node-8/{INCIDENT.id}"
    anywhere = replace(NOTIFICATION, run=msgspec.structs.replace(NOTIFICATION.run, host=None))
    assert event(anywhere)["dedup_key"] == INCIDENT.id


@pytest.mark.parametrize("name", sorted(OVER))
def test_the_end_resolves_it(name):
    assert event(about(name)) == {"event_action": "resolve", "dedup_key": f"node-7/{INCIDENT.id}"}


@pytest.mark.long
def test_a_digest_is_one_alert():
    body = event(digest(1500, over=3))
    assert body["dedup_key"] == "d1gest"
    assert body["payload"]["severity"] == "critical"
    assert len(json.dumps(body)) < 512_000


def test_limits_hold_for_any_text():
    long = replace(
        NOTIFICATION, incident=INCIDENT.replace(summary="x" * 5000), run=RunIdentity(run="y" * 5000)
    )
    body = event(long)
    assert len(body["payload"]["summary"]) <= 1024
    assert len(json.dumps(body)) < 512_000
