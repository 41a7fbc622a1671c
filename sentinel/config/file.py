"""`sentinel.toml`: its keys, and how it is read and checked.

The detectors' own parameters are part of the model, so a threshold that does not exist is an error
like any other unknown key, and the JSON Schema holds them all.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from msgspec.structs import replace
from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from sentinel.calibration.calibration import Calibration
from sentinel.common.address import Address
from sentinel.common.config_table import ConfigTable, Lazily, LocalPath, beside_the_file
from sentinel.common.errors import ConfigError
from sentinel.common.shard import Shard
from sentinel.common.state_dir import default_state_dir
from sentinel.common.text import clean_text
from sentinel.config import CONFIG_FILE
from sentinel.config.errors import describe
from sentinel.config.lines import Lines
from sentinel.config.rules import Duration, Rule, WrittenRule, unique
from sentinel.detectors.api import Declaration
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.signals import Signal
from sentinel.notifications.decide import SinkPolicy
from sentinel.series.naming import IGNORE
from sentinel.sinks.base import SinkConfig
from sentinel.sinks.budget import BudgetConfig
from sentinel.sinks.discovery import named, sink_types
from sentinel.sinks.heartbeat import HeartbeatConfig
from sentinel.sinks.terminal import TerminalConfig
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.discovery import location
from sentinel.sources.location import Location


def _detector_table(detector: Declaration) -> Any:
    parameters: dict[str, Any] = {
        name: (parameter.type, Field(parameter.default, description=parameter.meaning))
        for name, parameter in detector.parameters.items()
    }
    enabled = (bool, Field(detector.enabled, description="whether the detector judges runs"))
    variants: Any = Literal[(*detector.variants,)]
    informs: Any = (
        list[variants],
        Field([], description="variants that only inform: reports show them, and nobody is paged"),
    )
    shared: dict[str, Any] = {"enabled": enabled, "informs": informs}
    if detector.stricter:
        factor = Field(1.0, ge=1, description="factor of its thresholds by which it pages less")
        shared["stricter"] = float, factor
    return create_model(detector.name, __base__=ConfigTable, **shared, **parameters)


def _parameters(detector: Declaration, table: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in table.items() if name in detector.parameters}
    if detector.stricter is None or "stricter" not in table:
        return values
    usual = {name: parameter.default for name, parameter in detector.parameters.items()} | values
    return values | detector.stricter.of(table["stricter"], usual)


def _all_settings() -> Any:
    tables: dict[str, Any] = {}
    for name, detector in all_detectors().items():
        table = _detector_table(detector)
        tables[name.replace("-", "_")] = (table, Field(default_factory=table, alias=name))
    return create_model("Detectors", __base__=ConfigTable, **tables)


def _any_sink() -> Any:
    return Annotated[Union[tuple(sink_types().values())], Field(discriminator="type")]  # noqa: UP007


if TYPE_CHECKING:
    TagMeaning = str
else:
    TagMeaning = Literal[(*map(str, Signal), IGNORE)]

DetectorTables = Annotated[
    dict[str, dict[str, Any]],
    Lazily(_all_settings),
    AfterValidator(lambda tables: tables.model_dump(by_alias=True, exclude_unset=True)),
]
SinkTables = Annotated[list[Annotated[SinkConfig, Lazily(_any_sink)]], AfterValidator(named)]


def _beside_config(text: Any, info: ValidationInfo) -> Location:
    if not isinstance(text, str):
        raise ValueError("should be a string")
    path = location(text)
    return beside_the_file(path, info) if isinstance(path, Path) else path


def _address(text: Any) -> Address:
    if not isinstance(text, str | int) or isinstance(text, bool):
        raise ValueError('should be a port, or a string such as "0.0.0.0:9464"')
    return Address.parse(str(text))


def _checked_link(text: str) -> str:
    if text and not text.startswith(("http://", "https://")):
        raise ValueError("should begin with http:// or https://")
    return text


def _shard(text: Any) -> Shard:
    if not isinstance(text, str):
        raise ValueError('should be a string such as "0/4"')
    return Shard.parse(text)


LinkTemplate = Annotated[str, AfterValidator(_checked_link)]
ShardOfRuns = Annotated[Shard, PlainValidator(_shard, json_schema_input_type=str)]
ListenAddress = Annotated[Address, PlainValidator(_address, json_schema_input_type=int | str)]
RuleTables = Annotated[list[Rule], AfterValidator(lambda rules: unique(rules, {*all_detectors()}))]
NamedPlace = Annotated[Location, PlainValidator(_beside_config, json_schema_input_type=str)]


class ProcessConfig(ConfigTable):
    """What a watch may learn of the processes that write its logs."""

    stacks: bool | None = None
    devices: bool = False


class ConsoleConfig(ConfigTable):
    """A form of the lines that a training prints."""

    line: str = Field(
        description="the line, with the name of each number in braces: `{loss}`; what counts, such as "
        "`{step}` or `{epoch}`, gives the step, `{time}` the time, and `{*}` is any text"
    )

    @field_validator("line")
    @classmethod
    def _is_a_form(cls, line: str) -> str:
        LineForm(line)
        return line


class Config(ConfigTable):
    """The whole file."""

    include: list[LocalPath] = Field(
        default=[],
        description="other configurations whose `[detectors]` and `[calibration]` hold here, too, such as "
        "what `sentinel calibrate` wrote; this file comes first",
    )
    paths: list[NamedPlace] = Field(
        default=[],
        description="log files, run directories, directories of runs, globs of these, or addresses "
        "(`wandb://ENTITY/PROJECT`)",
    )
    state_dir: LocalPath = Field(
        default_factory=default_state_dir,
        description="directory that keeps incidents, cursors and undelivered notifications; by default "
        "$STATE_DIRECTORY, else a directory for each thing that is watched below $XDG_STATE_HOME/sentinel or "
        "~/.local/state/sentinel",
    )
    state_group: str = Field(
        default="",
        description="group whose members may read the state, with `sentinel status`, `show`, `wait`, `serve` "
        "and `mcp`; by default only the user of the watch may",
    )
    poll_seconds: float = Field(
        default=2.0,
        gt=0,
        description="longest pause between two rounds of reading; up to 30 s if they take more "
        "than a fifth of a core",
    )
    gone_after: Duration = Field(
        default=3600.0,
        description="a run whose log was removed is let go of after so long, and its incidents end as lost "
        '("30m", "2h", "1d")',
    )
    poll: bool = Field(
        default=False, description="poll instead of waiting for file system events; NFS and FUSE send none"
    )
    shard: ShardOfRuns = Field(
        default_factory=Shard,
        json_schema_extra={"default": str(Shard())},
        description="the share of the runs that this watch follows, where several share a tree, such as "
        '"0/4"; each needs its own `state_dir`',
    )
    host: str = Field(
        default="",
        description="what messages call the machine on which logs lie; by default the name of the one that "
        "first read a log. Two watches of the same logs have the same",
    )
    sinks: SinkTables = Field(
        default_factory=lambda: named([TerminalConfig()]),
        description="where notifications go; by default the terminal, to which a watch on a terminal always "
        "writes, too",
    )
    link: LinkTemplate = Field(
        default="",
        description="link to a page about a run, with {run}, {path} and {step} where they belong; runs on "
        "a W&B server have a link by themselves",
    )
    listen: ListenAddress | None = Field(
        default=None,
        description="where to answer `/metrics` and `/healthz`: a port on this machine, or HOST:PORT",
    )
    heartbeat: HeartbeatConfig | None = Field(
        default=None, description="address to ping while the watch is well; keys as below"
    )
    budget: BudgetConfig | None = Field(
        default=None, description="`pages_per_run_day`: messages a day to each sink, for each run under watch"
    )
    calibration: Calibration | None = Field(
        default=None,
        description="what `sentinel calibrate` promised, as it wrote it: `made_at`, `pages_per_run` or "
        "`pages_per_run_day`, and `runs`, `run_days`, `pages`, `design_effect`, `variants` and "
        "`design_effects` of the archive",
    )
    process: ProcessConfig = Field(
        default_factory=ProcessConfig,
        description="`stacks`: whether py-spy shows at which line the processes of a silent run stand; by "
        "default only those of the watch's own user; `devices`: whether the evidence of a stall says what "
        "NVML, Xid, NCCL's RAS and PyTorch's flight recorder tell; off by default, not proved with several "
        "GPUs yet",
    )
    detectors: DetectorTables = Field(
        default_factory=dict, description="whether a detector is enabled, and its thresholds, by name"
    )
    rules: RuleTables = Field(default_factory=list, description="thresholds of your own")
    console: list[ConsoleConfig] = Field(
        default=[],
        description="forms of lines for consoles that are not read: a line of such a form is read as it says",
    )
    signals: dict[str, TagMeaning] = Field(
        default={},
        description="the signal that each of your own tags means, or `ignore`; overrides built-in names",
    )

    @model_validator(mode="after")
    def _with_included(self, info: ValidationInfo) -> Self:
        if self.include and (info.context or {}).get("included"):
            raise ValueError("a file that is included cannot include others; name them all in one file")
        promise = self.calibration
        for file in self.include:
            included = _load(file, included=True)
            promise = promise or included.calibration
            for name, table in included.detectors.items():
                self.detectors[name] = table | self.detectors.get(name, {})
        # Pydantic takes another instance only from here, and only where a file is read.
        return self if promise is self.calibration else self.model_copy(update={"calibration": promise})

    @property
    def enabled_detectors(self) -> list[Declaration]:
        """The enabled detectors in alphabetical order, then the rules of one's own."""
        tables = {name: self.detectors.get(name, {}) for name in all_detectors()}
        built_in = [
            replace(detector, informs=frozenset(tables[name].get("informs", ())))
            for name, detector in all_detectors().items()
            if tables[name].get("enabled", detector.enabled)
        ]
        return [*built_in, *(rule.detector() for rule in self.rules)]

    @property
    def forms(self) -> tuple[LineForm, ...]:
        """The forms of lines of consoles."""
        return tuple(LineForm(table.line) for table in self.console)

    @property
    def policies(self) -> list[SinkPolicy]:
        """What each sink asks for."""
        return [sink.policy() for sink in self.sinks]

    @property
    def daily(self) -> frozenset[str]:
        """The names of the sinks that get one digest a day."""
        return frozenset(sink.name for sink in self.sinks if sink.digest)

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The thresholds that the file sets, by detector. Other thresholds keep their defaults."""
        return {name: _parameters(all_detectors()[name], table) for name, table in self.detectors.items()}


def load(path: Path) -> Config:
    """Read a configuration.

    Raises ConfigError with a line for each mistake: the file, the line, the key, and how to correct it.
    """
    return _load(path, included=False)


def _load(path: Path, *, included: bool) -> Config:
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: not UTF-8 at byte {error.start}"]) from None
    except (ValueError, RecursionError) as error:  # also for a number of thousands of digits
        raise ConfigError([f"{path}: not TOML: {clean_text(str(error))}"]) from None
    try:
        return Config.model_validate(tables, context={"directory": path.parent, "included": included})
    except ValidationError as error:
        raise ConfigError(describe(path, text, error, json_schema())) from None


def written_rules(path: Path) -> list[WrittenRule]:
    """Return the rules of one's own in a configuration, in order. Raises ConfigError as `load` does."""
    rules = load(path).rules
    text = path.read_text(encoding="utf-8")
    tables = tomllib.loads(text).get("rules", [])
    where = Lines(text)
    lines = (where.of(("rules", number, "name")) for number in range(len(rules)))
    return [
        WrittenRule(rule, keys, path.absolute(), line)
        for rule, keys, line in zip(rules, tables, lines, strict=True)
    ]


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file, for editors. It takes a tenth of a second to make."""
    return {**Config.model_json_schema(), "title": CONFIG_FILE}
