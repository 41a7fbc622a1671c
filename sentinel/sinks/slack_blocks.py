"""Lays out notifications as Slack's blocks.

Text stands in ``plain_text`` and ``rich_text`` elements, which Slack shows literally: no mention, link or
formatting in it has an effect. slack_sdk builds the blocks and holds most of Slack's limits.
"""

from collections.abc import Iterator
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sinks.base import Digest, Notification
from sentinel.sinks.message import MAX_IN_FULL, Message, MessageLine, Summary, message, subject, summary

# Slack's limits: https://docs.slack.dev/reference/block-kit/blocks
_MAX_HEADER_CHARACTERS = 150  # of a header block
_MAX_TEXT_CHARACTERS = 3000  # of a text object
_MAX_ENTITY_CHARACTERS = 5  # of one character of text
_CODE_SPAN = lazy_pattern(r"`([^`]+)`")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack_body(notification: Notification | Digest) -> dict[str, Any]:
    """Return the message for Slack. Slack shows ``text`` where it shows no blocks, as on a lock screen."""
    if isinstance(notification, Digest):
        blocks = _digest(summary(notification))
    else:
        blocks = _single(message(notification))
    text = subject(notification)[: _MAX_TEXT_CHARACTERS // _MAX_ENTITY_CHARACTERS]
    return {
        "text": text.translate(_ENTITIES),
        "mrkdwn": False,
        "blocks": [block.to_dict() for block in blocks],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _single(content: Message) -> Iterator[Any]:
    yield _header(content.headline)
    if len(content.headline) > _MAX_HEADER_CHARACTERS:
        yield _section(_slack_text(content.headline))
    elements = [element for line in content.lines for element in (_slack_text("\n"), *_slack_line(line))][1:]
    yield _section(*elements, *_slack_link(content.link))
    if content.commands:
        yield _preformatted("\n".join(line.text for line in content.commands))


def _digest(content: Summary) -> Iterator[Any]:
    """Yield the worst incidents, each with the first thing to try, and the number for each detector."""
    yield _header(content.title)
    yield _section(_slack_text(", ".join(content.counts)))
    for each in content.messages[:MAX_IN_FULL]:
        advice = [
            part for cause in each.causes[:1] for part in (_slack_text("\n"), *_catalogue_text(cause.fix))
        ]
        yield _section(_bold(each.title), _slack_text(f" in {each.run}\n{each.headline}"), *advice)
    if len(content.messages) > MAX_IN_FULL:
        counts = ", ".join(f"{name} {count}" for name, count in content.detectors)
        yield _section(_bold("All by detector "), _slack_text(counts[:_MAX_TEXT_CHARACTERS]))


def _slack_line(line: MessageLine) -> Iterator[dict[str, Any]]:
    if line.label:
        yield _bold(f"{line.label}: ")
    yield from _catalogue_text(line.text) if line.ours else (_slack_text(line.text),)


def _slack_link(url: str) -> Iterator[dict[str, Any]]:
    if url:
        yield _slack_text("\n")
        yield {"type": "link", "url": url, "text": "Open the run"}


def _catalogue_text(text: str) -> Iterator[dict[str, Any]]:
    """Yield the parts of our own text, where backticks mark code."""
    for number, part in enumerate(_CODE_SPAN.split(text)):
        if part:
            yield {**_slack_text(part), **({"style": {"code": True}} if number % 2 else {})}


def _slack_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _bold(text: str) -> dict[str, Any]:
    return {**_slack_text(text), "style": {"bold": True}}


def _header(text: str) -> Any:
    from slack_sdk.models.blocks import HeaderBlock, PlainTextObject

    is_short = len(text) <= _MAX_HEADER_CHARACTERS
    short = text if is_short else f"{text[: _MAX_HEADER_CHARACTERS - 1]}…"
    return HeaderBlock(text=PlainTextObject(text=short, emoji=False))


def _section(*elements: dict[str, Any]) -> Any:
    from slack_sdk.models.blocks import RichTextBlock, RichTextSectionElement

    return RichTextBlock(elements=[RichTextSectionElement(elements=list(elements))])


def _preformatted(text: str) -> Any:
    from slack_sdk.models.blocks import RichTextBlock, RichTextPreformattedElement

    return RichTextBlock(elements=[RichTextPreformattedElement(elements=[_slack_text(text)])])
