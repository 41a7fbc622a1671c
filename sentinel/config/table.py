"""The base of every table in the configuration."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo


class Table(BaseModel):
    """A table of the configuration. Unknown keys are errors, and numbers must be finite.

    Errors do not repeat the input, because it may be a secret.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


def beside_the_file(path: Path, info: ValidationInfo) -> Path:
    """The path, taken as relative to the directory of the configuration file, if there is one."""
    directory = (info.context or {}).get("directory", Path())
    return Path(directory) / path.expanduser()


LocalPath = Annotated[Path, AfterValidator(beside_the_file)]
"""A path that is relative to the file in which it is written."""
