"""Regular expressions that are compiled when they are first used.

Modules name some hundreds of them, and to compile all would be a tenth of the time that it takes to judge a
short run, which needs a few.
"""

import re
from functools import cached_property
from typing import Any, AnyStr, cast


class _LazyPattern:
    """What stands for a pattern. An attribute of the pattern becomes its own when it is first asked for."""

    def __init__(self, expression: Any, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    @cached_property
    def _compiled(self) -> Any:
        return re.compile(self._expression, self._flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # which no pattern has, and pickle asks for before there is an expression
            raise AttributeError(name)
        attribute = getattr(self._compiled, name)
        setattr(self, name, attribute)
        return attribute


def lazy_pattern(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that raises re.error, if its expression is wrong, when it is first used.

    Its methods are those of a pattern. The functions of `re` do not take it.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(expression, flags))
