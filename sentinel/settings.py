"""What every table of the configuration has in common."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo


class Table(BaseModel):
    """A table of the configuration: unknown keys are errors, numbers are finite.

    Its errors do not repeat the input, which may be a secret.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


def beside_the_file(path: Path, info: ValidationInfo) -> Path:
    """The path, which is relative to the directory of the file that is read, if there is one."""
    directory = (info.context or {}).get("directory", Path())
    return Path(directory) / path.expanduser()


LocalPath = Annotated[Path, AfterValidator(beside_the_file)]
"""A path that is relative to the file it is written in."""
