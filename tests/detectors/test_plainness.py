"""A newcomer finds a rule by its file."""

import ast
from pathlib import Path

from tests.each import each

FOLDER = Path(__file__).parents[2] / "detectors"
FILES = sorted(file for file in FOLDER.glob("*/*.py") if file.name != "__init__.py")


def name(file: Path) -> str:
    return file.relative_to(FOLDER).with_suffix("").as_posix()


@each(FILES, name)
def test_a_file_holds_one_rule_at_most(file):
    functions = [
        node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
    ]
    decorators = [ast.unparse(decorator) for function in functions for decorator in function.decorator_list]
    assert sum(text.startswith(("detector(", "run_check(")) for text in decorators) <= 1
