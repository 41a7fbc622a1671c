"""Turns pydantic's errors about a TOML file into lines for a person: file, line, key and correction."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sentinel.common.errors import did_you_mean
from sentinel.common.text import clean_text, counted
from sentinel.config.lines import Keys, Lines

_MAX_MISTAKES = 50  # that are described; nobody corrects more of them at once
_MAX_KEYS_NAMED = 25  # in a message; there are more detectors than anybody reads


def describe(path: Path, text: str, error: ValidationError, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line for each of the first mistakes.

    ``schema`` is the JSON Schema of the file, which holds the valid keys. A line quotes a value only if the
    valid values form a closed list, because any other value may be a secret.
    """
    lines = Lines(text)
    defects = error.errors(include_url=False)
    for defect in defects[:_MAX_MISTAKES]:
        keys, table = _locate(schema, defect["loc"])
        problem = _problem(defect["type"], defect["msg"], defect["input"], defect.get("ctx", {}), keys, table)
        dotted = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")
        yield f"{path}:{lines.of(keys)}: {clean_text(dotted) or 'the file'}: {problem}"
    if len(defects) > _MAX_MISTAKES:
        yield f"{path}: {counted(len(defects) - _MAX_MISTAKES, 'more mistake')}"


def _problem(
    kind: str, message: str, value: Any, context: Mapping[str, Any], keys: Keys, table: Mapping[str, Any]
) -> str:
    match kind:
        case "extra_forbidden":
            valid = [key for key in table.get("properties", ()) if key != "type"]
            keys_text = f"; the keys are {', '.join(valid)}" if len(valid) <= _MAX_KEYS_NAMED else ""
            return f"unknown key{did_you_mean(str(keys[-1]), valid) or keys_text}"
        case "missing":
            return "missing"
        case "enum" | "literal_error":
            expected = str(context["expected"])
            nearest = did_you_mean(str(value), expected.split("'")[1::2])
            return f"{_shown(value)} is unknown{nearest or f'; one of {expected}'}"
        case "union_tag_invalid":
            expected = str(context["expected_tags"])
            return f"type {_shown(context['tag'])} is unknown; one of {expected}"
        case "union_tag_not_found":
            return "type is missing"
        case "value_error":
            return str(context["error"])
        case _:
            return message.removeprefix("Input ")


def _shown(value: Any) -> str:
    return repr(clean_text(value)) if isinstance(value, str) else clean_text(repr(value))


def _locate(schema: Mapping[str, Any], location: Keys) -> tuple[Keys, Mapping[str, Any]]:
    """Return the keys in the file for pydantic's location, and the schema of the table with the last key."""
    keys: list[str | int] = []
    table: Mapping[str, Any] = schema
    node: Any = schema
    for part in location:
        node = _resolved(schema, node)
        variants = node.get("discriminator", {}).get("mapping", {})
        if part in variants:  # which kind of table it is, not a key of the file
            node = {"$ref": variants[part]}
            continue
        keys.append(part)
        table = node
        node = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
        node = node or table.get("additionalProperties") or {}
    return tuple(keys), table


def _resolved(schema: Mapping[str, Any], node: Any) -> Mapping[str, Any]:
    for choice in node.get("anyOf", ()):
        if choice.get("type") != "null":
            return _resolved(schema, choice)
    if reference := node.get("$ref"):
        return _resolved(schema, schema["$defs"][reference.rsplit("/", 1)[-1]])
    return dict(node)
