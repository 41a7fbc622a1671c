import hashlib
import hmac
import json
import math

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from sentinel.common.errors import ConfigError
from sentinel.incidents.incident import Event
from sentinel.sinks.webhook import SIGNATURE_HEADER, WebhookConfig, webhook_body
from tests.sinks.samples import INCIDENT, NOTIFICATION, about, digest
from tests.tools.schemas import fits

NOW = 1_767_230_000.0


@pytest.mark.parametrize("event", Event)
def test_the_body_is_the_documented_one(event, receiver):
    WebhookConfig(url=receiver.url).open().send(about(event), NOW)
    body = json.loads(receiver.received[0].body)
    fits("webhook", receiver.received[0].body)
    assert body["event"] == event
    assert body["idempotency_key"] == receiver.received[0].headers["Idempotency-Key"]
    assert body["sent_at"] == "2026-01-01T01:13:20Z"
    assert body["run"] == {
        "run": "grpo-7b",
        "display_name": None,
        "project": None,
        "path": "/runs/grpo-7b",
        "framework": "trl-grpo",
        "host": "node-7",
        "owner": None,
    }
    assert body["link"] == "https://tensorboard.example/#run=grpo-7b"
    assert body["checkpoint"] == "/runs/grpo-7b/checkpoint-350"
    assert body["incident"]["resolved_step"] == (440 if event is Event.RESOLVED else None)
    assert body["catalogue"][0] == {"id": "R2", "title": "Policy leaves the reference", "fix": "raise `beta`"}


def test_the_body_is_strict_json_whatever_a_run_logged(receiver):
    odd = INCIDENT.replace(
        tag="a\udcff\x00", evidence={"value": math.nan, "most": math.inf}, fired_time=1e300
    )
    WebhookConfig(url=receiver.url).open().send(replace(NOTIFICATION, incident=odd), NOW)
    body = json.loads(receiver.received[0].body.decode("utf-8"), parse_constant=pytest.fail)
    fits("webhook", receiver.received[0].body)
    assert body["incident"]["fired_time"] is None


def test_the_signature_covers_the_raw_body(receiver, tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "from-env")
    (tmp_path / "key").write_text("from-file\n")
    WebhookConfig(url=receiver.url, secret_env="KEY").open().send(NOTIFICATION, NOW)
    WebhookConfig(url=receiver.url, secret_file=tmp_path / "key").open().send(NOTIFICATION, NOW)
    for request, key in zip(receiver.received, (b"from-env", b"from-file"), strict=True):
        expected = hmac.new(key, request.body, hashlib.sha256).hexdigest()
        assert request.headers[SIGNATURE_HEADER] == f"sha256={expected}"


def test_no_key_no_signature(receiver):
    WebhookConfig(url=receiver.url).open().send(NOTIFICATION, NOW)
    assert SIGNATURE_HEADER not in receiver.received[0].headers


def test_at_most_one_key(monkeypatch):
    with pytest.raises(ValidationError, match="at most one of secret_env and secret_file"):
        WebhookConfig(url="http://a/", secret_env="A", secret_file="b")
    monkeypatch.setenv("KEY", " ")
    with pytest.raises(ConfigError, match="KEY is empty"):
        WebhookConfig(url="http://a/", secret_env="KEY").open()


def test_the_body_of_one_notification_changes_only_in_its_time():
    first = webhook_body(NOTIFICATION, NOW)
    second = webhook_body(NOTIFICATION, NOW + 60)
    assert {key for key in first if first[key] != second[key]} == {"sent_at"}


@pytest.mark.slow
def test_a_digest_is_the_documented_one_and_small(receiver):
    WebhookConfig(url=receiver.url).open().send(digest(1500, over=1), NOW)
    (received,) = receiver.received
    body = json.loads(received.body)
    fits("webhook-digest", received.body)
    assert (body["event"], body["idempotency_key"]) == ("digest", received.headers["Idempotency-Key"])
    first, *_, last = body["notifications"]
    assert first == {
        "event": "firing",
        "idempotency_key": "0:firing",
        "run": {
            "run": "grpo-7b",
            "display_name": None,
            "project": None,
            "path": "/runs/grpo-7b",
            "framework": "trl-grpo",
            "host": "node-7",
            "owner": None,
        },
        "incident": {
            "id": "0",
            "detector": "kl-blowup",
            "severity": "critical",
            "onset_step": 400,
            "fired_step": 412,
            "resolved_step": None,
            "state": "firing",
            "summary": INCIDENT.summary,
        },
    }
    assert last["event"] == "resolved"
    assert len(received.body) < 1_000_000  # what nginx, for one, takes unless told otherwise
