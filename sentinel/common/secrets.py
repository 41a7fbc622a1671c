"""Masks the secrets that people leave in settings, command lines and printed lines.

A secret is recognised by its name, such as ``hf_token`` or ``db.password``, or by its form, such as
``hf_...`` or an address with a password. What is masked where it is read cannot appear in any report.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from sentinel.common.lazy_pattern import lazy_pattern

_Value = TypeVar("_Value")

MASK = "***"
"""Stands where a secret stood."""

_MAX_SECRET_NAMES = 10_000  # that are remembered

_NAME_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = {
    "secret", "secrets", "credential", "credentials", "cookie", "cookies", "dsn", "apikey", "authtoken",
    "passphrase", "pwd", "jwt", "authorization", "webhook",
}  # fmt: skip
_PASSWORD = "passw"  # noqa: S105  begins "password", "passwd" and "passwords"
_KEYS = {
    "api", "access", "secret", "private", "auth", "account", "signing", "encryption", "ssh", "deploy",
    "service", "subscription", "license", "hf", "huggingface", "openai", "wandb", "anthropic", "azure",
    "aws", "gcp", "google", "gemini", "cohere", "mistral", "replicate", "comet", "neptune", "clearml",
    "swanlab",
}  # fmt: skip
"""Words before "key" that make it a secret."""

_TOKENS_OF_TEXT = {
    "pad", "eos", "bos", "unk", "sep", "cls", "mask", "bot", "eot", "eod", "sot", "stop", "start", "end",
    "special", "additional", "image", "video", "audio", "vision", "speech", "user", "assistant", "system",
    "bad", "prefix", "suffix", "middle", "think", "per", "next", "first", "last", "new", "line", "padding",
    "boundary", "separator", "control", "placeholder", "newline", "trigger", "target", "label", "rare",
    "fake", "each",
}  # fmt: skip
"""Words before "token" that make it one of a vocabulary."""

_NO_SECRET = lazy_pattern(
    r"\s*|none|null|true|false|no|yes|[<\[(].*[>\])]|\$\{?\w+\}?|%\w+%|\*+|x+", re.I | re.S
)
"""Values that hold no secret whatever their name: special tokens, placeholders and names of variables."""

_PLAIN_NUMBER = lazy_pattern(r"[-+]?[\d.,]+(?:e[-+]?\d+)?%?", re.I)

_SECRET_FORMS = lazy_pattern(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9])(?:"
    r"hf_(?=[A-Za-z]{0,60}[A-Z0-9])[A-Za-z0-9]{8,}"
    r"|sk-(?=[\w-]{0,60}\d)[\w-]{12,}"
    r"|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{8,}"
    r"|xox[a-z]-[\w-]{6,}|xapp-[\w-]{8,}"
    r"|AIza[\w-]{20,}|ya29\.[\w-]{8,}"
    r"|eyJ[\w-]{8,256}\.[\w-]{4,}(?:\.[\w-]*)?"
    r"|r8_[A-Za-z0-9]{12,}|pypi-[\w-]{16,}|npm_[A-Za-z0-9]{12,}|nvapi-[\w-]{12,}|gsk_[A-Za-z0-9]{12,}"
    r")",
    re.S,
)
_LED = lazy_pattern(
    r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:)[^\s/@]+(?=@)"  # an address with a password
    r"|([?&](?:[\w-]{0,40}(?:token|key|sig|signature|secret|password|auth))=)[^&\s#\"']+"
    r"|(\b(?:hooks\.slack\.com/\w+|discord(?:app)?\.com/api/webhooks)/)[^\s\"']+"
    r"|(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{8,}",
    re.I,
)
_NAMED_SECRET = lazy_pattern(
    r"(?<![\w.-])(?:--?(?P<flag>[A-Za-z][\w.-]{0,80})(?:=|\s{1,3}(?!-))|"
    r"(?P<name>[A-Za-z][\w.-]{1,80})(?:\\?[\"'])?\s{0,3}[=:]\s{0,3})(?:\\?[\"'])?"
)
"""A name and what stands between it and its value."""

_SECRET_VALUE = lazy_pattern(r"[^\s\"',;&{}()\[\]\\]+")
_MIN_CHARACTERS = 6  # of the value of a pair within a text


def is_secret_name(name: str) -> bool:
    """Return whether a setting of this name holds a secret."""
    return _secret_word(name) != ""


@lru_cache(_MAX_SECRET_NAMES)
def _secret_word(name: str) -> str:
    """Return the word that makes a name that of a secret; empty if it is none."""
    parts = [part for part in re.split(r"[./]", name) if part and not part.isdecimal()]
    for part in parts:
        for word in map(str.lower, _NAME_WORD.findall(part)):
            if word in _SECRET_WORDS or word.startswith(_PASSWORD):
                return _PASSWORD if word.startswith(_PASSWORD) else word
    words = [*map(str.lower, _NAME_WORD.findall(parts[-1]))] if parts else []
    *earlier_words, last_word = words or [""]
    if last_word == "token" and not (earlier_words and earlier_words[-1] in _TOKENS_OF_TEXT):
        return last_word
    is_key = any(first in _KEYS and second == "key" for first, second in pairwise(words))
    is_connection = words[-2:] in (["connection", "string"], ["conn", "str"])
    return "key" if is_key or is_connection else ""


def masked_settings(settings: Mapping[str, _Value]) -> dict[str, _Value | str]:
    """Return settings with a mask for each secret. What follows a flag such as ``--password`` is one, too."""
    masked: dict[str, _Value | str] = {}
    flag = ""
    for name, value in settings.items():
        if isinstance(value, str):
            is_argument = is_secret_name(flag) and name.rpartition(".")[2].isdecimal()
            is_secret = (is_secret_name(name) or is_argument) and not _NO_SECRET.fullmatch(value)
            masked[name] = MASK if is_secret else masked_text(value)
            flag = value.lstrip("-") if value.startswith("-") and "=" not in value else ""
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            masked[name] = MASK if is_number and _secret_word(name) == _PASSWORD else value
            flag = ""
    return masked


def masked_text(text: str) -> str:
    """Return a text with a mask for each secret in it, known by its form or by the name before it."""
    if len(text) < _MIN_CHARACTERS:
        return text
    return _without_named(_LED.sub(_masked_rest, _SECRET_FORMS.sub(MASK, text)))


def _masked_rest(match: re.Match[str]) -> str:
    lead: str = next(filter(None, match.groups()))
    return lead + MASK


def _without_named(text: str) -> str:
    """Return the text with a mask for each value that stands behind the name of a secret."""
    parts = []
    end = 0
    for match in _NAMED_SECRET.finditer(text):
        value = _SECRET_VALUE.match(text, match.end())
        if value is not None and match.end() >= end and _is_secret_value(match, value[0]):
            parts += [text[end : match.end()], MASK]
            end = value.end()
    return "".join([*parts, text[end:]])


def _is_secret_value(match: re.Match[str], value: str) -> bool:
    meaning = _secret_word(match["flag"] or match["name"])
    if not meaning or _NO_SECRET.fullmatch(value):
        return False
    if meaning == _PASSWORD or (match["flag"] and match[0].endswith("=")):
        return True
    is_sure = match["flag"] or len(_NAME_WORD.findall(match["name"])) > 1
    return bool(is_sure) and len(value) >= _MIN_CHARACTERS and not _PLAIN_NUMBER.fullmatch(value)
