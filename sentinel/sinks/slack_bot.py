"""Notifications by a Slack bot: a thread for each incident, with its plot.

The first message about an incident opens a thread; reminders, changes and the end go under it. The posts are
our own, because slack_sdk's client retries by itself and logs what it sends.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import Field, SecretStr

from sentinel.common.config_table import LocalPath
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sinks import http
from sentinel.sinks.base import Digest, Notification, Permanent, SinkError, Transient
from sentinel.sinks.plot import PlottingSinkConfig, png
from sentinel.sinks.secrets import HttpSinkConfig, check_all, read_secret
from sentinel.sinks.slack_blocks import slack_body

_TRANSIENT_ERRORS = frozenset(
    ("ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout")
)
_SLACK_REMEDIES = {
    "account_inactive": "the bot was removed; install it again",
    "channel_not_found": "name another channel, or invite the bot to it",
    "invalid_auth": "the token is not valid; copy it again",
    "is_archived": "the channel is archived; name another one",
    "missing_scope": "give the bot the scopes chat:write and files:write",
    "not_authed": "the token is empty; copy it again",
    "not_in_channel": "invite the bot to the channel",
    "token_expired": "make a new token",
    "token_revoked": "make a new token",
}
"""What to do about Slack's permanent refusals."""
_PLOT_FILE_NAME = "signals.png"  # of a plot
_SLACK_ERROR = lazy_pattern(r"[a-z_]{1,60}")

_log = logging.getLogger(__name__)


class SlackBotSink(msgspec.Struct, frozen=True):
    """Posts to ``channel`` through Slack's Web API at ``url``."""

    name: str
    url: SecretStr
    token: SecretStr
    channel: str
    timeout_seconds: float  # for each request; a plot takes three more
    plots: bool

    def send(self, message: Notification | Digest, now: float) -> str | None:
        """Post once, into the incident's thread if it has one. Return the channel and time of the message.

        Raises Transient or Permanent according to ``http.check`` and Slack's answer.
        """
        body = {**slack_body(message), "channel": self.channel, "parse": "none"}
        if isinstance(message, Notification) and message.thread:
            body["channel"], body["thread_ts"] = message.thread.split()
        answer = self._call("chat.postMessage", body, {"Idempotency-Key": message.key}, now)
        channel = answer.get("channel")
        timestamp = answer.get("ts")
        if not channel or not timestamp:
            return None
        picture = png(message) if self.plots else None
        if picture is not None:
            try:
                self._upload(picture, channel, body.get("thread_ts", timestamp), now)
            except SinkError as error:  # the message itself has arrived
                _log.warning("sink %s: the plot was not uploaded: %s", self.name, error)
        return f"{channel} {timestamp}"

    def _upload(self, picture: bytes, channel: str, thread: str, now: float) -> None:
        """Put the picture into a thread: https://docs.slack.dev/messaging/working-with-files."""
        file = {"filename": _PLOT_FILE_NAME, "length": len(picture)}
        upload = self._call("files.getUploadURLExternal", file, {}, now)
        address = SecretStr(str(upload.get("upload_url")))
        binary = {"Content-Type": "application/octet-stream"}
        http.check(http.post(address, picture, binary, self.timeout_seconds, now))
        share = {
            "files": [{"id": upload.get("file_id"), "title": _PLOT_FILE_NAME}],
            "channel_id": channel,
            "thread_ts": thread,
        }
        self._call("files.completeUploadExternal", share, {}, now)

    def _call(
        self, method: str, body: Mapping[str, Any], headers: http.Headers, now: float
    ) -> Mapping[str, Any]:
        """Return the fields of Slack's answer; empty if it took the post but its answer is unreadable."""
        address = SecretStr(f"{self.url.get_secret_value().rstrip('/')}/{method}")
        authorization = SecretStr(f"Bearer {self.token.get_secret_value()}")
        all_headers: http.Headers = {"Authorization": authorization, **headers}
        answer = http.post(address, json.dumps(body).encode(), all_headers, self.timeout_seconds, now)
        http.check(answer)
        try:
            fields = json.loads(answer.text)
        except ValueError:
            return {}
        if not isinstance(fields, dict):
            return {}
        if fields.get("ok", True):
            return fields
        error = str(fields.get("error"))
        if error in _TRANSIENT_ERRORS:
            raise Transient(f"Slack answered {error}", answer.retry_after_seconds)
        reason = error if _SLACK_ERROR.fullmatch(error) else "with an error"
        remedy = _SLACK_REMEDIES.get(error, "see the page of that error at Slack")
        raise Permanent(f"Slack answered {reason}: {remedy}")


class SlackBotConfig(HttpSinkConfig, PlottingSinkConfig):
    """`type = "slack-bot"`."""

    type: Literal["slack-bot"] = Field(
        "slack-bot", description="post as a Slack bot, with a thread for each incident"
    )
    channel: str = Field(min_length=1, description="the channel's id or its name")
    token_env: str | None = Field(None, description="environment variable that holds the bot's token")
    token_file: LocalPath | None = Field(None, description="file that holds the bot's token")

    default_address: ClassVar[str] = "https://slack.com/api"
    secrets: ClassVar[tuple[str, ...]] = ("token_env", "token_file")

    def open(self) -> SlackBotSink:
        """Return the sink. Raises ConfigError if its address or its token cannot be read."""
        check_all(self.address, self._token, self.check_plots)
        name = self.name or self.type
        seconds = self.timeout_seconds
        return SlackBotSink(name, self.address(), self._token(), self.channel, seconds, self.plots)

    def _token(self) -> SecretStr:
        return read_secret(self.token_env, self.token_file)
