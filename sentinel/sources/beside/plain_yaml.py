"""YAML as plain data. Tags mean nothing: of ``!!python/object:argparse.Namespace {lr: 1}`` the mapping stays.

What a small file can make huge is not done: aliases stay shared, merge keys are keys like others, and
what nests too deeply for a recursive reader is refused.
"""

from typing import Any

import yaml

_DEEPEST = 64


class _Loader(yaml.CSafeLoader):
    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Nothing is merged."""

    def untagged(self, node: Any) -> Any:
        """What a node holds, whatever its tag wants it to become."""
        if isinstance(node, yaml.ScalarNode):
            return self.construct_scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return self.construct_sequence(node, deep=True)
        return self.construct_mapping(node, deep=True)


_Loader.add_constructor(None, _Loader.untagged)


def load(text: bytes) -> Any:
    """The first document. Raises ValueError for text that is no YAML or nests too deeply."""
    try:
        _measure(text)
        loader = _Loader(text)
        try:
            return loader.get_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"is no YAML{line} ({error.problem})") from None
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"is no YAML that can be read ({type(error).__name__})") from None


def _measure(text: bytes) -> None:
    """Raises YAMLError for text that nests too deeply."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.MarkedYAMLError(problem="nests too deeply")
