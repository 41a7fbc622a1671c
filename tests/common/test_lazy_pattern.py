"""Patterns that are compiled when they are first used."""

import copy
import pickle
import re

import pytest

from sentinel.common import lazy_pattern as lazy
from sentinel.common.lazy_pattern import lazy_pattern


@pytest.fixture
def compiled(monkeypatch):
    """The expressions that were compiled, in order."""
    expressions = []

    def compile_(expression, flags=0):
        expressions.append(expression)
        return re.compile(expression, flags)

    monkeypatch.setattr(lazy, "re", type("Re", (), {"compile": staticmethod(compile_)}))
    return expressions


def test_a_pattern_is_compiled_once_and_at_its_first_use(compiled):
    number = lazy_pattern(r"\d+")
    word = lazy_pattern("[a-z]+", re.IGNORECASE)
    assert compiled == []
    assert number.sub("#", "1 and 22") == "# and #"
    assert number.fullmatch("333")
    assert [found[0] for found in word.finditer("One 2 three")] == ["One", "three"]
    assert compiled == [r"\d+", "[a-z]+"]


def test_a_pattern_has_the_attributes_of_a_pattern_and_no_others():
    pattern = lazy_pattern(b"(?P<step>x)")
    assert pattern.pattern == b"(?P<step>x)"
    assert pattern.groupindex == {"step": 1}
    with pytest.raises(AttributeError, match="no_such_method"):
        pattern.no_such_method()


def test_a_wrong_expression_is_an_error_when_it_is_used():
    pattern = lazy_pattern("(")
    with pytest.raises(re.error, match="unterminated"):
        pattern.search("")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("is_used", [False, True])
def test_a_copy_is_a_pattern_too(copied, is_used):
    pattern = lazy_pattern("a+")
    if is_used:
        assert pattern.search("ba")
    assert copied(pattern).search("baa")[0] == "aa"
