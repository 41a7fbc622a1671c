"""Notifications as JSON to any HTTP receiver, signed where a secret is set.

The body is ``WebhookBody``, or ``DigestBody`` if many notifications had to wait; their JSON Schemas lie in
`deploy/schema/`. ``Idempotency-Key`` is the same for every try of one notification.
``X-Sentinel-Signature`` is `sha256=` and the hexadecimal HMAC-SHA256 of the raw body.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from pydantic import Field, SecretStr, field_validator
from typing_extensions import TypedDict

from sentinel.common.config_table import LocalPath
from sentinel.common.errors import ConfigError
from sentinel.common.text import clean_text
from sentinel.incidents.json_body import IncidentBody, incident_body, plain, utc_text
from sentinel.sinks import http
from sentinel.sinks.base import Digest, Notification
from sentinel.sinks.secrets import HttpSinkConfig, check_all, read_secret

SIGNATURE_HEADER = "X-Sentinel-Signature"


EventName = Literal[
    "firing", "escalated", "repeat", "resolved", "ended", "reopened", "flapping", "lost", "test"
]


class WebhookRun(TypedDict):
    """The run that an incident belongs to. ``path`` is absolute; ``host`` is null for a run elsewhere, and
    ``owner``, the user who owns the log, where it is not known. ``display_name`` and ``project`` are what a
    tracker such as W&B calls the run, null without one.
    """

    run: str
    display_name: str | None
    project: str | None
    path: str
    framework: str | None
    host: str | None
    owner: str | None


class CatalogueBody(TypedDict):
    """A catalogue entry that the incident cites, with the first thing to try."""

    id: str
    title: str
    fix: str


class WebhookBody(TypedDict):
    """The body of one notification. ``schema`` increases when a field changes its meaning or is removed."""

    schema: Literal[1]
    event: EventName
    idempotency_key: str
    sent_at: str
    run: WebhookRun
    incident: IncidentBody
    catalogue: list[CatalogueBody]
    cause: str
    consequences: list[str]
    link: str
    checkpoint: str


class DigestIncidentBody(TypedDict):
    """An incident in a digest: the fields of ``IncidentBody`` that identify it and give its state."""

    id: str
    detector: str
    severity: str
    onset_step: int
    fired_step: int
    resolved_step: int | None
    state: str
    summary: str


class DigestedBody(TypedDict):
    """One notification in a digest: the latest of its incident, with its own idempotency key."""

    event: EventName
    idempotency_key: str
    run: WebhookRun
    incident: DigestIncidentBody


class DigestBody(TypedDict):
    """The body of a digest. The worst incident comes first."""

    schema: Literal[1]
    event: Literal["digest"]
    idempotency_key: str
    sent_at: str
    notifications: list[DigestedBody]


def webhook_body(notification: Notification, now: float) -> WebhookBody:
    """Return the body for a notification that is sent ``now``."""
    return {
        "schema": 1,
        "event": notification.event.value,
        "idempotency_key": notification.key,
        "sent_at": utc_text(now) or "",
        "run": _run_body(notification),
        "incident": incident_body(notification.incident),
        "catalogue": [
            {"id": entry["id"], "title": entry["title"], "fix": entry["fix"]}
            for entry in notification.catalogue
        ],
        "cause": plain(notification.cause),
        "consequences": [plain(text) for text in notification.consequences],
        "link": plain(notification.link),
        "checkpoint": plain(notification.checkpoint),
    }


def digest_body(digest: Digest, now: float) -> DigestBody:
    """Return the body for a digest that is sent ``now``."""
    return {
        "schema": 1,
        "event": "digest",
        "idempotency_key": digest.key,
        "sent_at": utc_text(now) or "",
        "notifications": [_digest_entry(notification) for notification in digest.notifications],
    }


def _digest_entry(notification: Notification) -> DigestedBody:
    incident = incident_body(notification.incident)
    return {
        "event": notification.event.value,
        "idempotency_key": notification.key,
        "run": _run_body(notification),
        "incident": {
            "id": incident["id"],
            "detector": incident["detector"],
            "severity": incident["severity"],
            "onset_step": incident["onset_step"],
            "fired_step": incident["fired_step"],
            "resolved_step": incident["resolved_step"],
            "state": incident["state"],
            "summary": clean_text(incident["summary"]),
        },
    }


def _run_body(notification: Notification) -> WebhookRun:
    run = notification.run
    return {
        "run": plain(run.run),
        "display_name": run.label.name or None,
        "project": run.label.project or None,
        "path": plain(run.where),
        "framework": plain(run.framework),
        "host": plain(run.host),
        "owner": plain(run.owner),
    }


class WebhookSink(msgspec.Struct, frozen=True):
    """Posts ``WebhookBody`` or ``DigestBody`` to ``url``, signed if there is a ``secret``."""

    name: str
    url: SecretStr
    secret: SecretStr | None
    timeout_seconds: float

    def send(self, message: Notification | Digest, now: float) -> None:
        """Post once. Raises Transient or Permanent according to ``http.check``."""
        body = digest_body(message, now) if isinstance(message, Digest) else webhook_body(message, now)
        raw_body = json.dumps(body, allow_nan=False).encode()
        headers = {"Idempotency-Key": message.key}
        if self.secret is not None:
            headers[SIGNATURE_HEADER] = signature(self.secret, raw_body)
        http.check(http.post(self.url, raw_body, headers, self.timeout_seconds, now))


def signature(secret: SecretStr, body: bytes) -> str:
    """Return the value of the signature header for a raw body."""
    return "sha256=" + hmac.new(secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()


_RECEIVERS = {
    "hooks.slack.com": 'type = "slack"',
    "discord.com": 'type = "apprise" and an address such as discord://ID/TOKEN',
    "discordapp.com": 'type = "apprise" and an address such as discord://ID/TOKEN',
}
"""Receivers that refuse sentinel's own JSON, and what a sink for them is."""


def _check_receiver(address: SecretStr) -> None:
    """Raise ValueError for the address of a service that takes another form of messages."""
    host = urlsplit(address.get_secret_value()).hostname or ""
    if host in _RECEIVERS:
        raise ValueError(f"{host} does not take this JSON; use {_RECEIVERS[host]}")


class WebhookConfig(HttpSinkConfig):
    """`type = "webhook"`."""

    type: Literal["webhook"] = Field("webhook", description="post JSON to an HTTP receiver")
    secret_env: str | None = Field(None, description="environment variable that holds the signing key")
    secret_file: LocalPath | None = Field(None, description="file that holds the signing key")

    @field_validator("url")
    @classmethod
    def _takes_json(cls, address: SecretStr | None) -> SecretStr | None:
        if address is not None:
            _check_receiver(address)
        return address

    @classmethod
    def mistakes_between(cls, table: Mapping[str, Any]) -> Iterator[str]:
        """Yield also that the signing key is named twice."""
        yield from super().mistakes_between(table)
        if None not in (table.get("secret_env"), table.get("secret_file")):
            yield "give at most one of secret_env and secret_file"

    def address(self) -> SecretStr:
        """Return the address to post to. Raises ConfigError also for one that takes other messages."""
        address = super().address()
        try:
            _check_receiver(address)
        except ValueError as error:
            raise ConfigError([f"{self.url_env or self.url_file}: {error}"]) from None
        return address

    def open(self) -> WebhookSink:
        """Return the sink. Raises ConfigError if its address or its key cannot be read."""
        check_all(self.address, self._secret)
        return WebhookSink(self.name or self.type, self.address(), self._secret(), self.timeout_seconds)

    def _secret(self) -> SecretStr | None:
        signed = self.secret_env is not None or self.secret_file is not None
        return read_secret(self.secret_env, self.secret_file) if signed else None
