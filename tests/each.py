"""One test over many things, for rules that take no time to check.

A parameter of its own for each thing costs more than the check: every worker collects it, and reports it.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def each(things: Iterable[T], name: Callable[[T], str] = str) -> Callable[[Callable[[T], None]], object]:
    """Make one test of a test of one thing. It names all things that fail, and what is wrong with each."""

    def over_all(test: Callable[[T], None]) -> object:
        def test_all() -> None:
            wrong = []
            for thing in things:
                try:
                    test(thing)
                except AssertionError as error:
                    wrong.append(f"{name(thing)}: {error}")
            assert not wrong, "\n".join(wrong)

        test_all.__name__ = test.__name__
        test_all.__doc__ = test.__doc__
        return test_all

    return over_all
