"""The texts and images that a run logged nearest to the onset of its incidents, read by tbparse."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from sentinel.common.secrets import masked_text
from sentinel.sources.base import Illustrated, Run

_MAX_LOGGED_IMAGES = 4  # for each step
_MAX_LOGGED_TEXTS = 6  # for each step
_MAX_IMAGE_BYTES = 200_000
_MAX_LOGGED_CHARACTERS = 2000  # of a text
_TEXT_ENDING = "/text_summary"  # PyTorch's, behind every name
_IMAGE_KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg"}


class Sample(msgspec.Struct, frozen=True):
    """A text, or an image as a data URI. Both are whatever the run logged, and the text has line breaks."""

    tag: str
    step: int
    text: str = ""
    image: str = ""


def samples_near(run: Run, steps: Sequence[int]) -> tuple[Mapping[int, Sequence[Sample]], Sequence[str]]:
    """Return the samples nearest to each step, and what could not be searched for them."""
    if not isinstance(run.source, Illustrated) or not steps:
        return {}, ()
    samples = run.source.samples(steps)
    return {step: [*_parsed(events)] for step, events in samples.events.items()}, samples.problems


def _parsed(events: bytes) -> Iterator[Sample]:
    from tbparse import SummaryReader  # slow to import

    with TemporaryDirectory() as directory:
        file = Path(directory) / "events.out.tfevents"
        file.write_bytes(events)
        raw = SummaryReader(str(file), event_types={"hparams"}).get_raw_events()
    texts = [
        Sample(tag.removesuffix(_TEXT_ENDING), event.step, text=_logged_text(event.tensor_proto.string_val))
        for tag, entries in raw["text"].items()
        for event in entries
    ]
    pictures = [
        (tag, image.step, image.encoded_image_string)
        for tag, entries in raw["images"].items()
        for image in entries
    ]
    pictures += [
        (tag, event.step, picture)
        for tag, entries in raw["tensors"].items()
        if tag not in raw["text"]
        for event in entries
        for picture in event.tensor_proto.string_val[2:3]  # behind its width and its height
    ]
    yield from texts[:_MAX_LOGGED_TEXTS]
    images = [Sample(tag, step, image=uri) for tag, step, data in pictures if (uri := _uri(data))]
    yield from images[:_MAX_LOGGED_IMAGES]


def _logged_text(text_pieces: Iterable[bytes]) -> str:
    """Return the text without secrets and what a browser would not show; longer ones are cut."""
    masked = masked_text(
        "\n".join(part.decode("utf-8", "replace") for part in text_pieces)[: 2 * _MAX_LOGGED_CHARACTERS]
    )
    plain = "".join(
        character if character == "\n" or character.isprintable() else " "
        for character in masked[: _MAX_LOGGED_CHARACTERS + 1]
    )
    return plain if len(plain) <= _MAX_LOGGED_CHARACTERS else plain[: _MAX_LOGGED_CHARACTERS - 1] + "…"


def _uri(image_bytes: bytes) -> str:
    """Return a data URI; empty for what is too large or no image that browsers show."""
    kind = next((kind for begin, kind in _IMAGE_KINDS.items() if image_bytes.startswith(begin)), "")
    if not kind or len(image_bytes) > _MAX_IMAGE_BYTES:
        return ""
    return f"data:image/{kind};base64,{b64encode(image_bytes).decode()}"
