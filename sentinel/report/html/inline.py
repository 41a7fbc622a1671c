"""Names and times as HTML, for the templates."""

from markupsafe import Markup

from sentinel.incidents.json_body import clock_text

_UNBROKEN = 32
"""The longest part of a name that stays on one line; a phone shows about as many characters."""


def parted(name: str) -> Markup:
    """Return a name or path that breaks after a slash rather than within a part.

    What a reader copies is the same text.
    """
    *folders, last = name.split("/")
    parts = [*(f"{folder}/" for folder in folders), last]
    span = Markup('<span class="part">{}</span>')
    return Markup("<wbr>").join(span.format(part) if len(part) <= _UNBROKEN else part for part in parts)


def zoned(when: float | str | None, kind: str = "") -> Markup:
    """Return a time that the page's script shows in the zone of its reader.

    ``when`` is in seconds since the epoch, or text in UTC.

    ``kind`` "ago" is for how long ago it was. What is no time stays empty.
    """
    text = when if isinstance(when, str) else clock_text(when)
    stamp = text.replace(" UTC", "Z").replace(" ", "T")
    element = Markup('<time class="{}" datetime="{}">{}</time>')
    return element.format(kind, stamp, text) if stamp.endswith("Z") else Markup.escape(text)
