"""Lays out notifications as Slack's blocks.

Text stands in ``plain_text`` and ``rich_text`` elements, which Slack shows literally: no mention, link or
formatting in it has an effect. slack_sdk builds the blocks and holds most of Slack's limits.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sentinel.sinks.base import Digest, Notification
from sentinel.sinks.message import MOST_IN_FULL, Cause, Message, Summary, message, subject, summary

# Slack's limits: https://docs.slack.dev/reference/block-kit/blocks
_HEADER, _TEXT = 150, 3000
_CODE = re.compile(r"`([^`]+)`")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack_body(told: Notification | Digest) -> dict[str, Any]:
    """The message for Slack. Slack shows ``text`` where it shows no blocks, as on a lock screen."""
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
    yield _section(*_rows([("severity", shown.title), *shown.facts]), *_link(shown.link))
    for number, cause in enumerate(shown.causes):
        yield _section(*_cause("Or" if number else "Likely", cause))
    if shown.evidence:
        width = max(len(label) for label, _ in shown.evidence)
        yield _preformatted("\n".join(f"{label:{width}}  {value}" for label, value in shown.evidence))
    if shown.also_open:
        yield _section(_bold("Also open\n"), _text("\n".join(shown.also_open)))
    if shown.silence:
        yield _section(_bold("To silence it"))
        yield _preformatted(shown.silence)


def _digest(shown: Summary) -> Iterator[Any]:
    """The worst incidents, each with the first thing to try, and the number for each detector."""
    yield _header(shown.title)
    yield _section(_text(", ".join(shown.counts)))
    for one in shown.messages[:MOST_IN_FULL]:
        advice = [part for cause in one.causes[:1] for part in (_text("\n"), *_catalogue_text(cause.fix))]
        yield _section(_bold(one.title), _text(f" in {one.run}\n{one.headline}"), *advice)
    if len(shown.messages) > MOST_IN_FULL:
        counts = ", ".join(f"{name} {count}" for name, count in shown.detectors)
        yield _section(_bold("All by detector "), _text(counts[:_TEXT]))


def _rows(rows: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    for number, (label, value) in enumerate(rows):
        yield _bold(f"{label}  " if number == 0 else f"\n{label}  ")
        yield _text(value)


def _link(url: str) -> Iterator[dict[str, Any]]:
    if url:
        yield _text("\n")
        yield {"type": "link", "url": url, "text": "Open the run"}


def _cause(word: str, cause: Cause) -> Iterator[dict[str, Any]]:
    yield _bold(f"{word}: ")
    yield from _catalogue_text(cause.title)
    yield _text(f" ({cause.id}, {cause.share})")
    if cause.because:
        yield _text(f"\nWhy: {cause.because}")
    yield _bold("\nDo: ")
    yield from _catalogue_text(cause.fix)
    if cause.check:
        yield _bold("\nCheck: ")
        yield from _catalogue_text(cause.check)


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
