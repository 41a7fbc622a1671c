"""A rule is understood in two minutes: it names little, compares little, and says what its numbers are.

So does every function beside it. What rules share names and compares as little.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.each import each

FOLDER = Path(__file__).parents[2] / "detectors"
SHARED = sorted(FOLDER.glob("*.py"))
FILES = sorted(file for file in FOLDER.glob("*/*.py") if file.name != "__init__.py")

BUDGETS = {"names": 12, "conditions": 8}
OF_A_RULE = BUDGETS | {"numbers": 0}
PLAIN = {-1, 0, 1, 2}
"""Numbers that need no name: nothing, the whole, the one before, a pair."""


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def name(file: Path) -> str:
    return file.relative_to(FOLDER).with_suffix("").as_posix()


def rules(file: Path) -> list[ast.FunctionDef]:
    return [
        node
        for node in tree(file).body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one).startswith(("detector(", "run_check(")) for one in node.decorator_list)
    ]


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def taken(function: ast.FunctionDef) -> dict[str, int]:
    """How many local names, comparisons and numbers without a name the body of a function holds.

    An exponent needs no name: a square, a root.
    """
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    targets = [part.target for node in nodes for part in getattr(node, "generators", ())]
    in_passing = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    roots = [n.right for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)]
    return {
        "names": len(stored - in_passing),
        "conditions": sum(isinstance(node, ast.Compare) for node in nodes),
        "numbers": sum(is_number(node) and node.value not in PLAIN for node in nodes if node not in roots),
    }


@each(FILES, name)
def test_a_file_holds_one_rule_at_most(file):
    assert len(rules(file)) <= 1


@each([*SHARED, *FILES], name)
def test_a_function_keeps_its_budgets(file):
    budgets = OF_A_RULE if rules(file) else BUDGETS
    for function in (node for node in tree(file).body if isinstance(node, ast.FunctionDef)):
        over = {what: n for what, n in taken(function).items() if n > budgets.get(what, n)}
        assert not over, f"{function.name}: more than {budgets}"


def constants(file: Path) -> Iterator[tuple[int, int, ast.stmt | None]]:
    """The lines from and to which a number gets a name at the top of a file, and what follows it."""
    body = tree(file).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and any(is_number(part) for part in ast.walk(node.value)):
            yield node.lineno, node.end_lineno or node.lineno, following


@each(FILES, name)
def test_a_number_with_a_name_says_why_it_is_no_parameter(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    for begin, end, following in constants(file):
        commented = any("#" in line for line in lines[begin - 1 : end]) or lines[begin - 2].startswith("#")
        documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        assert commented or documented, lines[begin - 1]
