"""What is worth a look in a run by itself: settings that catalogue entries warn of, and lines it printed."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from sentinel import catalogue
from sentinel.catalogue.rules import Clues
from sentinel.common.text import clean_text
from sentinel.runs.log import RunLog
from sentinel.series.plan import meant, planned


class Advisory(msgspec.Struct, frozen=True):
    """What in a run gives reason to read some entries. It is no incident, and nobody is notified."""

    catalogue: tuple[str, ...]  # ids of the entries
    reason: str
    settings: Mapping[str, float | str | bool]  # those that the reason rests on, by `Setting`

    def __str__(self) -> str:
        stated = ", ".join(f"{name} = {_setting_text(value)}" for name, value in self.settings.items())
        return f"{self.reason} ({stated})" if stated else self.reason


def advisories(log: RunLog) -> list[Advisory]:
    """Return what the settings of a run, wherever they stand, and its console lines give reason to check.

    One reason may lead to several entries.
    """
    by_reason: dict[str, Advisory] = {}
    for advisory in (*_from_settings(log), *_from_console(log)):
        same = by_reason.get(advisory.reason)
        if same is not None:
            advisory = replace(same, catalogue=same.catalogue + advisory.catalogue)
        by_reason[advisory.reason] = advisory
    return [*by_reason.values()]


def _from_settings(log: RunLog) -> Iterator[Advisory]:
    plan = planned({name: setting.value for name, setting in log.metadata.config.items()})
    settings = {name: meant(name, value) for name, value in plan.items()}
    clues = Clues({}, log=_AllSettings(log.understanding().framework, settings))
    for entry in catalogue.load().values():
        for rule in entry.checks:
            if rule.holds(clues):
                others = (other for bounds in rule.settings.values() for other in (bounds.per, bounds.modulo))
                names = [name for name in (*rule.settings, *others) if name in settings]
                yield Advisory((entry.id,), rule.because, {name: settings[name] for name in names})


def _from_console(log: RunLog) -> Iterator[Advisory]:
    remarks = () if log.console is None else log.console.remarks.values()
    for remark in remarks:
        where = f"line {remark.line} of {remark.origin}" if remark.origin else "in its console"
        yield Advisory((remark.entry,), f'it printed "{clean_text(remark.text.strip(), 200)}", {where}', {})


class _AllSettings(msgspec.Struct, frozen=True):
    """A `Known` of a whole run, which has no position."""

    framework: str | None
    settings: Mapping[str, float | str | bool]

    def shows(self, word: str) -> bool:  # noqa: ARG002
        return False

    def logs(self, signal: str, position: int) -> bool:  # noqa: ARG002
        return False

    def setting(self, name: str, position: int, step: int) -> float | str | bool | None:  # noqa: ARG002
        return self.settings.get(name)


def _setting_text(value: float | str | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else f"{value:g}"
