"""Reads the settings that a training leaves in files beside its log.

The files lie in the directory of the run or, if a framework nests its log, in the directories above. They are
found by their names. Pickles such as ``training_args.bin`` are never read.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from stat import S_ISREG
from typing import Any

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import exists, is_directory
from sentinel.sources.base import ReadIssue, Run
from sentinel.sources.readers.files import open_log
from sentinel.sources.readers.plain import Plain, flat

_MAX_SETTINGS_BYTES = 1 << 20  # of a file with settings
_MAX_LISTED_BYTES = 1 << 12  # of a directory itself; one with so few entries is listed as a whole
_LONG = 86_400  # seconds after the first point, after which nobody writes down its settings
_AT_ONCE = 60  # seconds between the times of two files that were copied together
_UNREADABLE = (0, 0, 0)  # stamp of a file that could not be opened
_WANDBS_OWN = ("_wandb", "wandb_version")
_ARGUMENTS = ("args", "training_args", "train_args", "hparams", "hyperparameters", "hyperparams")
_CONFIGS = ("train_config", "training_config", "llamaboard_config", "configuration", "config")
_CONFIG_NAMES = (
    ".hydra/config.yaml",
    *(f"{stem}{ending}" for stem in _ARGUMENTS for ending in (".json", ".yaml", ".yml")),
    *(f"{stem}{ending}" for stem in _CONFIGS for ending in (".yaml", ".yml")),
    *("train_config.json", "training_config.json", "params.json"),
    *("ds_config.json", "deepspeed_config.json", "deepspeed.json"),
    *("adapter_config.json", "config.json"),  # of PEFT, and of anybody
    "opt.yaml",  # of YOLOv5
    "files/config.yaml",  # of W&B and SwanLab, below a run directory
)
"""File names, in order of precedence: if two files have the same setting, that of the first counts."""

_WRITTEN_AT_START = frozenset(
    (
        ".hydra/config.yaml",
        *(f"{stem}{ending}" for stem in _ARGUMENTS for ending in (".json", ".yaml", ".yml")),
        *(f"{stem}{ending}" for stem in _CONFIGS for ending in (".yaml", ".yml")),
        "opt.yaml",
        "adapter_config.json",
    )
)
"""Names of files with the arguments of a training, which are there before its first point and do not change.
Others, such as ``config.json``, appear when a model is saved. So does that of an adapter, which says the same
from the first step to the last."""

_CONFIG = "config.json"
"""The name of a file that describes a model, of one with the arguments of a training, or of one with both."""

_OF_A_TRAINING = frozenset(
    (
        *("lr", "learning_rate", "batch_size", "epochs", "num_epochs", "max_epochs", "train_epochs"),
        *("max_steps", "total_steps", "train_steps", "num_steps", "max_iters"),
    )
)
"""Keys of ``config.json`` that only the arguments of a training have."""

_OF_A_MODEL = frozenset(("architectures", "model_type", "transformers_version", "_class_name"))
"""Keys that libraries write where they save a model."""

_ADAPTER = "adapter_config.json"

_ABOVE = (".hydra/config.yaml", "configuration.yaml", "torchtune_config.yaml")
"""Files that hold settings of all runs in the directories below: Hydra's, ML-Agents' and torchtune's."""

_INNER = lazy_pattern(r"checkpoint-\d+|vis_data|tensorboard|tb|tb_logs|run_\d+_\d+\.\d+")
"""Names of directories that belong to the run in the directory above."""

_HUGGING_FACE = lazy_pattern(r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.+")  # below runs/, in the output directory


class ConfigFile(msgspec.Struct, frozen=True):
    """``name`` is relative to the run's directory; ``modified`` is in seconds since the epoch."""

    name: str
    modified: float
    settings: Mapping[str, Plain]

    def precedes(self, begin: float) -> bool:
        """Return whether it was there when the first point was logged, and says the same since.

        Nothing but its name tells of a log without times, whose ``begin`` is NaN.
        """
        return self.modified < begin or (isnan(begin) and self.is_of_start)

    @property
    def is_of_start(self) -> bool:
        """Whether its name says that it is written at the start of a training."""
        return self.name.removeprefix("../") in _WRITTEN_AT_START


class ConfigFiles(msgspec.Struct):
    """The settings beside one run. A file is read again only if it changed."""

    run: Run
    _files: dict[str, tuple[tuple[int, int, int], ConfigFile | None]] = msgspec.field(default_factory=dict)

    def read(self) -> tuple[list[ConfigFile], list[ReadIssue]]:
        """Return the files that are there now, in order of precedence, and complaints that are new."""
        if self.run.local is None:
            return [], []
        directory = self.run.local if is_directory(self.run.local) else self.run.local.parent
        complaints: list[ReadIssue] = []
        files = [self._read_config(path, directory, complaints) for path in self._candidates(directory)]
        return [
            file for file in files if file is not None and self._describes_the_training(file, directory)
        ], complaints

    def precedes(self, file: ConfigFile, begin: float) -> bool:
        """Return whether a file was there when the first point was logged, and says the same since.

        A copy, such as a checkout, gives all files the time at which it was made, and again only the name
        tells: that of a file whose time is that of all files of the log, long after its first point.
        """
        if file.precedes(begin) or not (file.is_of_start and file.modified > begin + _LONG):
            return file.precedes(begin)
        times = self._times()
        return bool(times) and all(abs(time - file.modified) < _AT_ONCE for time in times)

    def _times(self) -> list[float]:
        """Return when the files of the log were last written to, in seconds since the epoch; none if that is
        not known.
        """
        path = self.run.local
        with suppress(OSError):
            if path is not None and not is_directory(path):
                return [os.stat(path).st_mtime]
            if path is not None and os.stat(path).st_size <= _MAX_LISTED_BYTES:
                with os.scandir(path) as entries:
                    return [entry.stat().st_mtime for entry in entries if entry.is_file()]
        return []

    def _candidates(self, directory: Path) -> Iterator[str]:
        for folder, names in _folders(directory):
            for name in _there(os.fspath(folder), names):
                yield f"{folder}/{name}"

    def _read_config(self, path: str, directory: Path, complaints: list[ReadIssue]) -> ConfigFile | None:
        old_status, file = self._files.get(path, (None, None))
        try:
            status = os.stat(path)
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if old_status == stamp or not S_ISREG(status.st_mode):
                return file
            settings = flat(_settings_in_file(Path(path)))
            file = (
                ConfigFile(os.path.relpath(path, directory), status.st_mtime, settings) if settings else None
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if old_status == _UNREADABLE:
                return None
            stamp = _UNREADABLE
            file = None
            complaints.append(ReadIssue(Path(path), "", f"cannot be read ({error.strerror})"))
        except ValueError as error:
            file = None
            complaints.append(ReadIssue(Path(path), "", f"{error}; its settings are not known"))
        self._files[path] = stamp, file
        return file

    def _describes_the_training(self, file: ConfigFile, directory: Path) -> bool:
        """Return whether a file says something about the training, not only about its model."""
        settings_file = directory / file.name
        if settings_file.name != _CONFIG or self.run.format in ("tensorboard", "trainer_state"):
            return True
        names = {key.rpartition(".")[2].lower() for key in file.settings}
        states_training = bool(names & _OF_A_TRAINING) and not names & _OF_A_MODEL
        return states_training or exists(settings_file.with_name("trainer_state.json"))


def settings_above(directory: Path) -> Iterator[Path]:
    """Return the paths above a run's directory at which its settings may lie."""
    return (folder / name for folder, names in _folders(directory) if folder != directory for name in names)


def _there(directory: str, names: Sequence[str]) -> Iterator[str]:
    """Return which of the names exist. Only a small directory is listed: many runs may share a large one."""
    with suppress(OSError):
        if os.stat(directory).st_size <= _MAX_LISTED_BYTES:
            present = {*os.listdir(directory)}
            names = [name for name in names if name.partition("/")[0] in present]
    return (name for name in names if os.access(f"{directory}/{name}", os.F_OK))


def _folders(directory: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    yield directory, _CONFIG_NAMES
    if directory.parent.name == "runs" and _HUGGING_FACE.fullmatch(directory.name):
        yield directory.parent.parent, _CONFIG_NAMES
        return
    if _INNER.fullmatch(directory.name):
        directory = directory.parent
        yield directory, _CONFIG_NAMES
    yield directory.parent, _ABOVE


def _settings_in_file(path: Path) -> Mapping[Any, Any]:
    """Return the settings in the file; none if it holds no table. Raises OSError and ValueError."""
    with open_log(path) as file:
        data = file.read(_MAX_SETTINGS_BYTES + 1)
    if len(data) > _MAX_SETTINGS_BYTES:
        raise ValueError(f"is larger than {_MAX_SETTINGS_BYTES >> 20} MiB")
    if not data.strip():
        return {}
    content = _json(data) if path.suffix == ".json" else _yaml(data)
    if not isinstance(content, dict):
        return {}
    if path.name == _ADAPTER:
        return {"peft_config": content}
    settings = {}
    for name, value in content.items():
        # W&B and SwanLab write ``{"desc": null, "value": 3}`` for a 3.
        wrapped = isinstance(value, dict) and "value" in value and value.keys() <= {"desc", "sort", "value"}
        if name not in _WANDBS_OWN:
            settings[name] = value["value"] if wrapped else value
    return settings


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON at line {error.lineno} ({error.msg})") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"is no JSON ({type(error).__name__})") from None


def _yaml(data: bytes) -> Any:
    from sentinel.sources.sidecars.plain_yaml import load  # slow to import, and few runs need it

    return load(data)
