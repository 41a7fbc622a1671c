"""The base of every table in the configuration."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationInfo

_VARIABLE = re.compile(r"(?:^|/)\$(?:\w+|\{\w+\})(?:/|$)")


class ConfigTable(BaseModel):
    """A table of the configuration. Unknown keys are errors, and numbers must be finite.

    Errors do not repeat the input, because it may be a secret. Validators are built when a file is read,
    because that takes time and most commands read none.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True, defer_build=True
    )


@dataclass(frozen=True)
class Lazily:
    """Annotates a value whose type is made when a file is read, because making it takes time."""

    make: Callable[[], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Return the schema of the type, as pydantic asks for it."""
        return handler.generate_schema(self.make())


def beside_the_file(path: Path, info: ValidationInfo) -> Path:
    """Return the path, taken as relative to the directory of the configuration file, if there is one.

    Raises ValueError for a path with a variable of a shell, which nothing replaces here.
    """
    if _VARIABLE.search(str(path)):
        raise ValueError("a variable is not replaced here; write ~ or the whole path")
    directory = (info.context or {}).get("directory", Path())
    return Path(directory) / path.expanduser()


LocalPath = Annotated[Path, AfterValidator(beside_the_file)]
"""A path that is relative to the file in which it is written."""
