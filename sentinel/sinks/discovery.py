"""The types of sinks that there are: those of sentinel, and those of plugins.

A plugin is a module with a ``SinkConfig`` whose ``type`` is a ``Literal``, or that class
(`sentinel.plugins`).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

from sentinel.plugins import Group, Plugin, use_plugins
from sentinel.sinks.base import SinkConfig

BUILT_IN_SINKS: Mapping[str, str] = {
    "alertmanager": "sentinel.sinks.alertmanager:AlertmanagerConfig",
    "apprise": "sentinel.sinks.apprise:AppriseConfig",
    "command": "sentinel.sinks.command:CommandConfig",
    "pagerduty": "sentinel.sinks.pagerduty:PagerDutyConfig",
    "slack": "sentinel.sinks.slack:SlackConfig",
    "slack-bot": "sentinel.sinks.slack_bot:SlackBotConfig",
    "terminal": "sentinel.sinks.terminal:TerminalConfig",
    "webhook": "sentinel.sinks.webhook:WebhookConfig",
}
"""The module and the class of each ``type``."""


@cache
def sink_types() -> Mapping[str, type[SinkConfig]]:
    """Return every sink's configuration by its ``type``, in alphabetical order.

    Only modules that define one are imported: a replay reads their configuration and delivers nothing. Raises
    ValueError if a class of sentinel has another type than its own.
    """
    kinds = {kind: _built_in(kind) for kind in BUILT_IN_SINKS}

    def use(plugin: Plugin) -> None:
        brought = {name: config for config in _configs(plugin.thing) if (name := type_of(config))}
        if not brought:
            raise ValueError("it has no SinkConfig whose `type` is a Literal")
        for name in brought.keys() & kinds.keys():
            raise ValueError(f"two sinks have the type {name}")
        kinds.update(brought)

    use_plugins(Group.SINKS, use)
    return dict(sorted(kinds.items()))


def type_of(config: type[SinkConfig]) -> str:
    """Return the name of a sink in the configuration; empty for a class that several sinks share."""
    kind = config.model_fields["type"].annotation
    return str(get_args(kind)[0]) if get_origin(kind) is Literal else ""


def _built_in(kind: str) -> type[SinkConfig]:
    module, _, name = BUILT_IN_SINKS[kind].partition(":")
    config: type[SinkConfig] = getattr(import_module(module), name)
    if kind != type_of(config):
        raise ValueError(f"{module}.{name} has the type {type_of(config)}, and the table says {kind}")
    return config


def _configs(module_or_class: Any) -> Iterator[type[SinkConfig]]:
    """Yield the configurations of a plugin, but not those that it only imports from sentinel."""
    is_class = isinstance(module_or_class, type)
    for sink_config in [module_or_class] if is_class else vars(module_or_class).values():
        if not (isinstance(sink_config, type) and issubclass(sink_config, SinkConfig)):
            continue
        if not sink_config.__module__.startswith("sentinel."):
            yield sink_config


def named(configs: Sequence[SinkConfig]) -> list[SinkConfig]:
    """Return the same sinks, each with a name. A sink without one gets its type, then type-2, type-3.

    Raises ValueError if two sinks have the same name.
    """
    names = [config.name for config in configs if config.name]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two sinks are called {twice[0]}; give each a name of its own")
    sinks = []
    for config in configs:
        name = config.name or config.type
        number = 1
        while not config.name and name in names:
            number += 1
            name = f"{config.type}-{number}"
        names.append(name)
        sinks.append(config.model_copy(update={"name": name}))
    return sinks
