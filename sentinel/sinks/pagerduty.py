"""Notifications to PagerDuty's Events API v2: an incident triggers an alert, and its end resolves it.

The machine of the log and the id of the trouble are the ``dedup_key``, so escalations and reminders update
the alert, a second delivery changes nothing, and an equal path on another machine has an alert of its own.
"""

import json
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import Field, SecretBytes, SecretStr

from sentinel.common.config_table import LocalPath
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import OVER
from sentinel.incidents.json_body import plain, utc_text
from sentinel.notifications.decide import FirstLook
from sentinel.sinks import http
from sentinel.sinks.base import FIRST_LOOK, Digest, Notification
from sentinel.sinks.message import message, subject, summary, text
from sentinel.sinks.secrets import HttpSinkConfig, check_all, read_secret

# PagerDuty's limits: https://developer.pagerduty.com/docs/send-alert-event
_MAX_SUMMARY_CHARACTERS = 1024  # of the title of an alert
_MAX_KEY_CHARACTERS = 255  # of `dedup_key`
_MAX_INCIDENTS = 100  # of a digest; an event of more than 512 kB is refused


class PagerDutySink(msgspec.Struct, frozen=True):
    """Posts events to ``url`` for the integration that ``routing_key`` belongs to."""

    name: str
    url: SecretStr
    routing_key: SecretStr
    timeout_seconds: float

    def send(self, message: Notification | Digest, now: float) -> None:
        """Post once. Raises Transient or Permanent according to ``http.check``."""
        headers = {"Idempotency-Key": message.key}
        http.check(http.post(self.url, self._body(event(message)), headers, self.timeout_seconds, now))

    def _body(self, event: dict[str, Any]) -> SecretBytes:
        return SecretBytes(json.dumps({"routing_key": self.routing_key.get_secret_value(), **event}).encode())


class PagerDutyConfig(HttpSinkConfig):
    """`type = "pagerduty"`."""

    type: Literal["pagerduty"] = Field("pagerduty", description="alert through PagerDuty's Events API v2")
    routing_key_env: str | None = Field(
        None, description="environment variable that holds the integration key"
    )
    routing_key_file: LocalPath | None = Field(None, description="file that holds the integration key")

    first_look: FirstLook = Field(FirstLook.NONE, description=FIRST_LOOK)

    default_address: ClassVar[str] = "https://events.pagerduty.com/v2/enqueue"
    secrets: ClassVar[tuple[str, ...]] = ("routing_key_env", "routing_key_file")

    def open(self) -> PagerDutySink:
        """Return the sink. Raises ConfigError if its address or its key cannot be read."""
        check_all(self.address, self._key)
        return PagerDutySink(self.name or self.type, self.address(), self._key(), self.timeout_seconds)

    def _key(self) -> SecretStr:
        return read_secret(self.routing_key_env, self.routing_key_file)


def event(notification: Notification | Digest) -> dict[str, Any]:
    """Return the event, but for the routing key. A digest is one alert, which a person resolves."""
    if isinstance(notification, Digest):
        return _digest_event(notification)
    incident = notification.incident
    run = notification.run
    key = "/".join(filter(None, (run.host, incident.trouble)))[-_MAX_KEY_CHARACTERS:]
    if notification.event in OVER:
        return {"event_action": "resolve", "dedup_key": key}
    content = message(notification)
    return plain(  # type: ignore[no-any-return]
        {
            "event_action": "trigger",
            "dedup_key": key,
            "client": "sentinel",
            "payload": {
                "summary": subject(notification)[:_MAX_SUMMARY_CHARACTERS],
                "source": str(run.host or run.location or content.run),
                "severity": incident.severity.name.lower(),
                "timestamp": utc_text(incident.fired_time),
                "component": content.run,
                "class": incident.detector,
                "custom_details": {**dict(content.facts), "details": text(notification)},
            },
            "links": [{"href": content.link, "text": "Open the run"}] if content.link else [],
        }
    )


def _digest_event(digest: Digest) -> dict[str, Any]:
    worst = max(
        (notification.incident.severity for notification in digest.notifications), default=Severity.INFO
    )
    messages = summary(digest).messages[:_MAX_INCIDENTS]
    headlines = [f"{message.run}: {message.headline}" for message in messages]
    return {
        "event_action": "trigger",
        "dedup_key": digest.key,
        "client": "sentinel",
        "payload": {
            "summary": subject(digest)[:_MAX_SUMMARY_CHARACTERS],
            "source": "sentinel",
            "severity": worst.name.lower(),
            "custom_details": {"incidents": headlines},
        },
    }
