"""Reads YAML as plain data.

Tags are ignored: ``!!python/object:argparse.Namespace {lr: 1}`` is read as the mapping ``{lr: 1}``. A small
file cannot become huge: aliases stay shared, merge keys are ordinary keys, and a file that nests too deeply
for a recursive reader is refused.
"""

from typing import Any

import yaml

_MAX_YAML_DEPTH = 64  # levels of nesting


class _Loader(yaml.CSafeLoader):
    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge nothing."""

    def untagged(self, node: Any) -> Any:
        """Return the plain content of a node, whatever its tag asks for."""
        if isinstance(node, yaml.ScalarNode):
            return self.construct_scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return self.construct_sequence(node, deep=True)
        return self.construct_mapping(node, deep=True)


_Loader.add_constructor(None, _Loader.untagged)


def load(text: bytes) -> Any:
    """Read the first document. Raises ValueError if the text is no YAML or nests too deeply."""
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
    """Raise YAMLError if the text nests too deeply."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_YAML_DEPTH:
            raise yaml.MarkedYAMLError(problem="nests too deeply")
