"""Which incident explains which: one incident a cause.

The rules are data (``inhibition.toml``). An incident silences only what cannot be the worse news: no
more severe than itself, and not a stable detector's where its own is a preview.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from typing import Any

from detectors.api import Maturity
from sentinel.alerts.incident import Incident


class Rules:
    """For each cause the detectors that it silences."""

    def __init__(self, silenced: Mapping[str, Sequence[str]]) -> None:
        """Raises ValueError where the rules go in a circle."""
        self._silenced = silenced
        causes: dict[str, list[str]] = {}
        for cause, effects in silenced.items():
            for effect in effects:
                causes.setdefault(effect, []).append(cause)
        try:
            order = list(TopologicalSorter(causes).static_order())
        except CycleError as error:
            raise ValueError(f"inhibition rules go in a circle: {' -> '.join(error.args[1])}") from None
        self._rank = {detector: rank for rank, detector in enumerate(order)}

    def rank(self, detector: str) -> int:
        """Causes rank before their effects, so that of two that fire at one point the cause is first."""
        return self._rank.get(detector, 0)

    def explains(self, cause: Incident, effect: Incident) -> bool:
        """Whether ``effect`` need not be sent while ``cause`` is open. Never across streams."""
        related = effect.detector in self._silenced.get(cause.detector, ()) or (
            effect.detector == cause.detector and effect.tag != cause.tag
        )
        heard = cause.maturity is Maturity.STABLE or effect.maturity is Maturity.PREVIEW
        return related and heard and effect.stream == cause.stream and effect.severity <= cause.severity


def parse_rules(document: Mapping[str, Any]) -> Rules:
    """The rules of a parsed ``inhibition.toml``. Raises KeyError for a missing field."""
    silenced: dict[str, list[str]] = {}
    for rule in document["rule"]:
        silenced.setdefault(rule["cause"], []).extend(rule["silences"])
    return Rules(silenced)


@cache
def builtin_rules() -> Rules:
    """The rules that ship with sentinel."""
    return parse_rules(tomllib.loads(files("sentinel.alerts").joinpath("inhibition.toml").read_text("utf-8")))
