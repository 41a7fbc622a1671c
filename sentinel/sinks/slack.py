"""Notifications to a Slack incoming webhook.

The post is our own, because slack_sdk's webhook client retries by itself, follows redirects and logs the
address.
"""

import json
from typing import Literal

import msgspec
from pydantic import Field, SecretStr

from sentinel.sinks import http
from sentinel.sinks.base import Digest, Notification, Permanent
from sentinel.sinks.secrets import HttpSinkConfig
from sentinel.sinks.slack_blocks import slack_body

_REFUSALS = {
    "action_prohibited": "an administrator has restricted posting",
    "channel_is_archived": "the channel is archived; make a webhook for another one",
    "channel_not_found": "the channel does not exist any more; make a new webhook",
    "invalid_token": "the address is not valid any more; make a new webhook",
    "no_active_hooks": "the webhook is disabled; enable it or make a new one",
    "no_service": "the webhook was removed or disabled; make a new one",
    "no_service_id": "the address is incomplete; copy it again",
    "no_team": "the workspace does not exist; copy the address again",
    "posting_to_general_channel_denied": "only administrators may post there; choose another channel",
    "team_disabled": "the workspace is not active any more",
}
"""The bodies of Slack's permanent refusals, and what to do about each."""


class SlackSink(msgspec.Struct, frozen=True):
    """Posts to the incoming webhook at ``url``."""

    name: str
    url: SecretStr
    timeout_seconds: float

    def send(self, message: Notification | Digest, now: float) -> None:
        """Post once. Raises Transient or Permanent according to ``http.check`` and Slack's answer."""
        body = json.dumps(slack_body(message)).encode()
        headers = {"Idempotency-Key": message.key}
        answer = http.post(self.url, body, headers, self.timeout_seconds, now)
        for refusal, remedy in _REFUSALS.items():
            if answer.text.strip() == refusal:
                raise Permanent(f"Slack answered {refusal}: {remedy}")
        http.check(answer)


class SlackConfig(HttpSinkConfig):
    """`type = "slack"`."""

    type: Literal["slack"] = Field("slack", description="post to a Slack incoming webhook")

    def open(self) -> SlackSink:
        """Return the sink. Raises ConfigError if its address cannot be read."""
        return SlackSink(self.name or self.type, self.address(), self.timeout_seconds)
