"""Notifications as alerts to Prometheus' Alertmanager, API v2.

Alertmanager forgets an alert that its client does not send again, and all of them when it restarts. So open
incidents are sent anew each minute (``refresh``). Each time they are said to last for another day: a watch
that stops for a while resolves nothing.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import Field, SecretStr

from sentinel.common.text import clean_text
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import OVER, Event
from sentinel.incidents.json_body import plain, utc_text
from sentinel.sinks import http
from sentinel.sinks.base import Digest, Notification
from sentinel.sinks.message import message, text
from sentinel.sinks.secrets import HttpSinkConfig

_LASTS_SECONDS = 86400.0  # how long an alert lasts unless it is sent again
_TEST_LASTS_SECONDS = 300.0  # how long a test alert lasts
_ALERTS_PATH = "/api/v2/alerts"  # below the address of an Alertmanager


class AlertmanagerSink(msgspec.Struct, frozen=True):
    """Posts alerts to the Alertmanager at ``url``."""

    name: str
    url: SecretStr
    timeout_seconds: float
    refresh_seconds: float

    def send(self, message: Notification | Digest, now: float) -> str | None:
        """Post once. Return the severity, because `alerts` needs to know the first one of an incident.

        Raises Transient or Permanent according to ``http.check``.
        """
        notifications = message.notifications if isinstance(message, Digest) else [message]
        self._post(notifications, {"Idempotency-Key": message.key}, now)
        return None if isinstance(message, Digest) else message.incident.severity.name

    def refresh(self, notifications: Sequence[Notification], now: float) -> None:
        """Post open incidents again. Raises as ``send`` does."""
        if notifications:
            self._post(notifications, {}, now)

    def _post(self, notifications: Sequence[Notification], headers: dict[str, str], now: float) -> None:
        address = SecretStr(self.url.get_secret_value().rstrip("/") + _ALERTS_PATH)
        body = [alert for notification in notifications for alert in alerts(notification, now)]
        http.check(http.post(address, json.dumps(body).encode(), headers, self.timeout_seconds, now))


class AlertmanagerConfig(HttpSinkConfig):
    """`type = "alertmanager"`."""

    type: Literal["alertmanager"] = Field("alertmanager", description="send alerts to an Alertmanager")
    refresh_seconds: float = Field(
        60.0, gt=0, description="how often open incidents are sent again, because Alertmanager forgets them"
    )

    by_incident: ClassVar[bool] = True  # the detector and the incident are labels of an alert

    def open(self) -> AlertmanagerSink:
        """Return the sink. Raises ConfigError if its address cannot be read."""
        return AlertmanagerSink(
            self.name or self.type, self.address(), self.timeout_seconds, self.refresh_seconds
        )


def alerts(notification: Notification, now: float) -> Iterator[dict[str, Any]]:
    """Yield the alert of an incident, and the ends of its milder alerts.

    The severity is a label, so an incident that got worse is another alert, and the milder one ends.
    """
    incident = notification.incident
    over = notification.event in OVER
    lasts = _TEST_LASTS_SECONDS if notification.event is Event.TEST else _LASTS_SECONDS
    yield _alert(notification, incident.severity, now if over else now + lasts, now)
    escalated = notification.event is Event.ESCALATED
    first_severity = Severity[notification.thread] if notification.thread else incident.severity - escalated
    for milder in range(first_severity, incident.severity):
        yield _alert(notification, Severity(milder), now, now)


def _alert(notification: Notification, severity: Severity, ends: float, now: float) -> dict[str, Any]:
    incident = notification.incident
    run = notification.run
    content = message(notification)
    fired_at = now if incident.fired_time is None else min(incident.fired_time, now)
    labels = {
        "alertname": incident.detector,
        "severity": severity.name.lower(),
        "run": clean_text(run.run or incident.run),
        "path": run.where,
        "host": run.host,
        "owner": run.owner,
        "incident": incident.id,
    }
    return {
        "labels": {name: plain(str(value)) for name, value in labels.items() if value},
        "annotations": {"summary": content.headline, "description": text(notification)},
        "startsAt": utc_text(fired_at),
        "endsAt": utc_text(ends),
        "generatorURL": content.link,
    }
