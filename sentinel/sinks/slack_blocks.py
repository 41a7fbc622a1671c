"""Lays out notifications as Slack's blocks.

Text stands in ``plain_text`` and ``rich_text`` elements, which Slack shows literally: no mention, link or
formatting in it has an effect. slack_sdk builds the blocks and holds most of Slack's limits.
"""

import re
from collections.abc import Iterator
from typing import Any

from sentinel.sinks.base import Digest, Notification
from sentinel.sinks.message import MAX_IN_FULL, Message, MessageLine, Summary, message, subject, summary

# Slack's limits: https://docs.slack.dev/reference/block-kit/blocks
_HEADER = 150
_TEXT = 3000
_CODE = re.compile(r"`([^`]+)`")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack_body(told: Notification | Digest) -> dict[str, Any]:
    """Return the message for Slack. Slack shows ``text`` where it shows no blocks, as on a lock screen."""
    blocks = _digest(summary(told)) if isinstance(told, Digest) else _single(message(told))
    return {
        "text": subject(told)[: _TEXT // 5].translate(_ENTITIES),  # an entity takes up to five characters
        "mrkdwn": False,
        "blocks": [block.to_dict() for block in blocks],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _single(shown: Message) -> Iterator[Any]:
    yield _header(shown.headline)
    if len(shown.headline) > _HEADER:
        yield _section(_text(shown.headline))
    parts = [part for line in shown.lines for part in (_text("\n"), *_line(line))][1:]
    yield _section(*parts, *_link(shown.link))
    if shown.commands:
        yield _preformatted("\n".join(line.text for line in shown.commands))


def _digest(shown: Summary) -> Iterator[Any]:
    """Yield the worst incidents, each with the first thing to try, and the number for each detector."""
    yield _header(shown.title)
    yield _section(_text(", ".join(shown.counts)))
    for notice in shown.messages[:MAX_IN_FULL]:
        advice = [part for cause in notice.causes[:1] for part in (_text("\n"), *_catalogue_text(cause.fix))]
        yield _section(_bold(notice.title), _text(f" in {notice.run}\n{notice.headline}"), *advice)
    if len(shown.messages) > MAX_IN_FULL:
        counts = ", ".join(f"{name} {count}" for name, count in shown.detectors)
        yield _section(_bold("All by detector "), _text(counts[:_TEXT]))


def _line(line: MessageLine) -> Iterator[dict[str, Any]]:
    if line.label:
        yield _bold(f"{line.label}: ")
    yield from _catalogue_text(line.text) if line.ours else (_text(line.text),)


def _link(url: str) -> Iterator[dict[str, Any]]:
    if url:
        yield _text("\n")
        yield {"type": "link", "url": url, "text": "Open the run"}


def _catalogue_text(text: str) -> Iterator[dict[str, Any]]:
    """Our own text, where backticks mark code."""
    for number, part in enumerate(_CODE.split(text)):
        if part:
            yield {**_text(part), **({"style": {"code": True}} if number % 2 else {})}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _bold(text: str) -> dict[str, Any]:
    return {**_text(text), "style": {"bold": True}}


def _header(text: str) -> Any:
    from slack_sdk.models.blocks import HeaderBlock, PlainTextObject

    short = text if len(text) <= _HEADER else f"{text[: _HEADER - 1]}…"
    return HeaderBlock(text=PlainTextObject(text=short, emoji=False))


def _section(*parts: dict[str, Any]) -> Any:
    from slack_sdk.models.blocks import RichTextBlock, RichTextSectionElement

    return RichTextBlock(elements=[RichTextSectionElement(elements=list(parts))])


def _preformatted(text: str) -> Any:
    from slack_sdk.models.blocks import RichTextBlock, RichTextPreformattedElement

    return RichTextBlock(elements=[RichTextPreformattedElement(elements=[_text(text)])])
