"""Text in UTF-16, as PowerShell writes it, becomes UTF-8."""

import codecs
import re

_LITTLE = re.compile(rb"\xff\xfe|[^\0]\0[^\0]\0", re.DOTALL)
_BIG = re.compile(rb"\xfe\xff|\0[^\0]\0[^\0]", re.DOTALL)
"""How UTF-16 begins: with a byte order mark, or with two characters of ASCII."""


def utf_16(head: bytes) -> str:
    """The name of the form of UTF-16 in which a text begins with ``head``; empty if it is not UTF-16."""
    return "utf-16-le" if _LITTLE.match(head) else "utf-16-be" if _BIG.match(head) else ""


def as_utf_8(data: bytes, encoding: str) -> bytes:
    """The text that ``data`` holds in UTF-16, without a torn character at its end.

    A broken character becomes a replacement character, so that the text has as many bytes in UTF-16 as
    before.
    """
    return codecs.getincrementaldecoder(encoding)("replace").decode(data).encode()


def plain_utf_8(data: bytes) -> bytes:
    """A whole text, or its beginning, in UTF-8 whether it is UTF-16 or UTF-8."""
    encoding = utf_16(data)
    return as_utf_8(data, encoding) if encoding else data
