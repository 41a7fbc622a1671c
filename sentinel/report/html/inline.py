"""Names and times as HTML, for the templates."""

from markupsafe import Markup

from sentinel.incidents.json_body import clock_text

_MAX_PART_CHARACTERS = 32
"""A longer part of a name may break; a phone shows about as many characters on a line."""


def parted(name: str) -> Markup:
    """Return a name or path that breaks after a slash rather than within a part.

    What a reader copies is the same text.
    """
    *folders, file_name = name.split("/")
    path_parts = [*(f"{folder}/" for folder in folders), file_name]
    span = Markup('<span class="part">{}</span>')
    return Markup("<wbr>").join(
        span.format(part) if len(part) <= _MAX_PART_CHARACTERS else part for part in path_parts
    )


def zoned(when: float | str | None, clock_kind: str = "") -> Markup:
    """Return a time that the page's script shows in the zone of its reader.

    ``when`` is in seconds since the epoch, or text in UTC.

    ``clock_kind`` "ago" is for how long ago it was. What is no time stays empty.
    """
    moment_text = when if isinstance(when, str) else clock_text(when)
    stamp = moment_text.replace(" UTC", "Z").replace(" ", "T")
    element = Markup('<time class="{}" datetime="{}">{}</time>')
    return (
        element.format(clock_kind, stamp, moment_text) if stamp.endswith("Z") else Markup.escape(moment_text)
    )
