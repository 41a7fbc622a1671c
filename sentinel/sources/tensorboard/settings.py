"""Settings of a run in TensorBoard events: those of the hparams plugin, and texts that state settings.

A text states settings if it is a JSON object, as Hugging Face logs its arguments, or a Markdown table of two
columns, as CleanRL logs them. Other texts are prose or samples.
"""

import json
from collections.abc import Mapping
from typing import Any

from sentinel.sources.readers.plain import Plain, flat

_PLUGINS = (b"hparams", b"text")
_MAX_TEXT = 1 << 20  # bytes
_TEXT_ENDING = "/text_summary"  # PyTorch's, behind every name
_OF_THE_RUN = ("args", "config", "hparams", "hyperparameters", "hyperparams", "training_args")
"""Texts whose settings keep their names. In others, such as ``model_config``, the text's name comes first."""


def settings_in(record: bytes) -> dict[str, Plain]:
    """Return the settings in an event, flat; mostly none. Raises DecodeError for what is no event."""
    settings: dict[str, Plain] = {}
    if not any(plugin in record for plugin in _PLUGINS):
        return settings
    from tensorboard.compat.proto.event_pb2 import Event  # slow to import

    for value in Event.FromString(record).summary.value:
        plugin = value.metadata.plugin_data
        if plugin.plugin_name == "hparams":
            settings |= flat(_hparams(plugin.content))
        elif plugin.plugin_name == "text" and value.tensor.string_val:
            name = value.tag.removesuffix(_TEXT_ENDING)
            table = _markdown_table(value.tensor.string_val[0])
            settings |= flat(table if name in _OF_THE_RUN else {name: table} if table else {})
    return settings


def _hparams(content: bytes) -> Mapping[str, Any]:
    """Return the settings with which a session began. The plugin's other records concern its display."""
    from google.protobuf.message import DecodeError
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    try:
        hparams = HParamsPluginData.FromString(content).session_start_info.hparams
    except DecodeError:
        return {}
    kinds = {name: (value, value.WhichOneof("kind")) for name, value in hparams.items()}
    return {name: getattr(value, kind) for name, (value, kind) in kinds.items() if kind in _VALUE_KINDS}


_VALUE_KINDS = ("number_value", "string_value", "bool_value")


def _markdown_table(text: bytes) -> Mapping[str, Any]:
    if len(text) > _MAX_TEXT:
        return {}
    if text.lstrip().startswith(b"{"):
        try:
            return dict(json.loads(text))
        except (ValueError, RecursionError):
            return {}
    rows = [line.strip().strip("|").split("|") for line in text.decode(errors="replace").splitlines()]
    if len(rows) < 3 or {len(row) for row in rows} != {2} or set("".join(rows[1])) - set("-: "):
        return {}
    return {name.strip(): value.strip() for name, value in rows[2:]}
