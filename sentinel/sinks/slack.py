"""Notifications as Block Kit messages to a Slack incoming webhook.

slack_sdk builds the blocks. The post is our own, because slack_sdk's webhook client retries by itself,
follows redirects and logs the address.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from pydantic import Field, SecretStr

from sentinel.sinks import http
from sentinel.sinks.base import Digest, Notification, Permanent
from sentinel.sinks.message import MOST_IN_FULL, Message, Summary, message, summary
from sentinel.sinks.secrets import HttpSinkConfig

# Slack's limits: https://docs.slack.dev/reference/block-kit/blocks
_HEADER, _FIELD, _TEXT = 150, 2000, 3000

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

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LOOSE_MARKER = re.compile(r"(?<![A-Za-z0-9])[*_~`]+|[*_~`]+(?![A-Za-z0-9])|`+")


@dataclass(frozen=True)
class SlackSink:
    """Posts to the incoming webhook at ``url``."""

    name: str
    url: SecretStr
    timeout_seconds: float

    def send(self, message: Notification | Digest, now: float) -> None:
        """Post once. Raises Transient or Permanent according to ``http.check`` and Slack's answer."""
        body = json.dumps(slack_body(message)).encode()
        headers = {"Idempotency-Key": message.key}
        answer = http.post(self.url, body, headers, self.timeout_seconds, now)
        for refusal, mend in _REFUSALS.items():
            if answer.text.strip() == refusal:
                raise Permanent(f"Slack answered {refusal}: {mend}")
        http.check(answer)


class SlackConfig(HttpSinkConfig):
    """`type = "slack"`."""

    type: Literal["slack"] = Field("slack", description="post to a Slack incoming webhook")

    def open(self) -> SlackSink:
        """The sink. Raises ConfigError if its address cannot be read."""
        return SlackSink(self.name or self.type, self.address(), self.timeout_seconds)


def slack_body(told: Notification | Digest) -> dict[str, Any]:
    """The message for Slack. Slack shows ``text`` where it cannot show blocks."""
    if isinstance(told, Digest):
        all_of_it = summary(told)
        text, blocks = f"{all_of_it.title}: {', '.join(all_of_it.counts)}", _digest_blocks(all_of_it)
    else:
        shown = message(told)
        text, blocks = f"{shown.title} in {shown.run}: {shown.summary}", _blocks(shown)
    return {
        "text": escaped(text, _TEXT),
        "blocks": [block.to_dict() for block in blocks],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def escaped(text: str, limit: int) -> str:
    """``text`` escaped so that Slack shows it literally, without mentions, links or formatting.

    Slack has no escape for its formatting characters, but a zero-width space on either side disables them.
    Inside a word they have no effect and stay as they are, so that names of tags can be copied.
    """
    inert = _LOOSE_MARKER.sub("\u200b\\g<0>\u200b", text)
    pieces = [_ENTITIES.get(character, character) for character in inert]
    lengths = list(accumulate(len(piece) for piece in pieces))
    if not lengths or lengths[-1] <= limit:
        return "".join(pieces)
    return "".join(pieces[: sum(length < limit for length in lengths)]) + "…"


def _blocks(shown: Message) -> Iterator[Any]:
    from slack_sdk.models.blocks import ContextBlock, HeaderBlock, PlainTextObject, SectionBlock

    yield HeaderBlock(text=PlainTextObject(text=escaped(shown.title, _HEADER), emoji=False))
    yield SectionBlock(text=_text(escaped(shown.summary, _TEXT)))
    origin = f"run {escaped(shown.run, _FIELD)}"
    yield ContextBlock(elements=[_text(origin), _text(escaped(shown.since, _FIELD))])
    if shown.evidence:
        rows = [f"*{escaped(name, 200)}*\n{escaped(value, 500)}" for name, value in shown.evidence]
        yield SectionBlock(fields=[_text(row) for row in rows])
    for cause in shown.causes:
        lines = [f"*{escaped(cause.id, 50)}* {cause.share} {escaped(cause.title, 500)}"]
        if cause.because:
            lines.append(escaped(cause.because, 500))
        lines.append(escaped(cause.fix, 1000))
        if cause.check:
            lines.append(f"To tell: {escaped(cause.check, 1000)}")
        yield SectionBlock(text=_text("\n".join(lines)))
    if shown.also_open:
        others = "\n".join(escaped(summary, 500) for summary in shown.also_open)
        yield ContextBlock(elements=[_text(f"*Also open*\n{others}")])
    if shown.cost:
        yield ContextBlock(elements=[_text(f"*Cost so far* {escaped(shown.cost, _FIELD)}")])


def _digest_blocks(shown: Summary) -> Iterator[Any]:
    """The worst incidents, each with the first thing to try, and the number for each detector."""
    from slack_sdk.models.blocks import ContextBlock, HeaderBlock, PlainTextObject, SectionBlock

    yield HeaderBlock(text=PlainTextObject(text=escaped(shown.title, _HEADER), emoji=False))
    yield SectionBlock(text=_text(escaped(", ".join(shown.counts), _TEXT)))
    for one in shown.messages[:MOST_IN_FULL]:
        lines = [f"*{escaped(one.title, 200)}* in {escaped(one.run, 500)}", escaped(one.summary, 1000)]
        lines.extend(f"{escaped(cause.id, 50)}: {escaped(cause.fix, 1000)}" for cause in one.causes[:1])
        yield SectionBlock(text=_text("\n".join(lines)))
    if len(shown.messages) > MOST_IN_FULL:
        told = ", ".join(f"{name} {count}" for name, count in shown.detectors)
        yield ContextBlock(elements=[_text(f"*All by detector* {escaped(told, _FIELD)}")])


def _text(mrkdwn: str) -> Any:
    from slack_sdk.models.blocks import MarkdownTextObject

    return MarkdownTextObject(text=mrkdwn, verbatim=True)
