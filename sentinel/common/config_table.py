"""The base of every table in the configuration."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from sentinel.common.lazy_pattern import lazy_pattern

_VARIABLE = lazy_pattern(r"(?:^|/)\$(?:\w+|\{\w+\})(?:/|$)")


class ConfigTable(BaseModel):
    """A table of the configuration. Unknown keys are errors, and numbers must be finite.

    Errors do not repeat the input, because it may be a secret. Validators are built when a file is read,
    because that takes time and most commands read none.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True, defer_build=True
    )


class JointlyChecked(ConfigTable):
    """A table in which a mistake may concern several keys. All mistakes of it are named at once."""

    @classmethod
    def mistakes_between(cls, table: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG003  here are none
        """Yield the mistakes that concern several keys of a table as it is written."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _with_all_mistakes(cls, table: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        mistakes = [*cls.mistakes_between(table)] if isinstance(table, Mapping) else []
        mistakes_of_fields: Sequence[Mapping[str, Any]] = ()
        try:
            valid = validate(table)
        except ValidationError as error:
            mistakes_of_fields = error.errors(include_url=False)
        if mistakes or mistakes_of_fields:
            defects = _raised(mistakes, mistakes_of_fields, table)
            raise ValidationError.from_exception_data(cls.__name__, defects, hide_input=True)
        return valid


def _raised(
    mistakes: Iterable[str], mistakes_of_fields: Iterable[Mapping[str, Any]], table: object
) -> list[Any]:
    """Return mistakes between keys, and those that pydantic found, such that they can be raised together."""
    mistakes_of_table = (
        {"type": "value_error", "ctx": {"error": ValueError(text)}, "input": table} for text in mistakes
    )
    error_keys = ("type", "loc", "input", "ctx")
    return [
        *mistakes_of_table,
        *({key: defect[key] for key in error_keys if key in defect} for defect in mistakes_of_fields),
    ]


class Lazily(msgspec.Struct, frozen=True):
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
