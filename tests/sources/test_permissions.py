"""Logs that this user may not read: they are named, and read as soon as they may be."""

import pytest

from tests.permissions import needs_permissions, unprivileged

pytestmark = [pytest.mark.slow, needs_permissions]

TREE = """
import json, os, sys
from pathlib import Path
from sentinel.sources.discovery import discover
place = Path(sys.argv[1])
def answer():
    found = discover([Path(each) for each in sys.argv[2:]] or [place])
    issues = [str(issue).replace(str(place), "") for issue in found.read_issues]
    return [str(run.path.relative_to(place)) for run in found.runs], issues, len(found.missing)
"""
SAYS = "cannot be read (Permission denied)"


@pytest.fixture
def place(tmp_path):
    row = '{"step": %d, "loss": 1.0, "accuracy": 0.5}\n'
    for name in ("a/metrics.jsonl", "b/progress.jsonl", "b/train.log", "c/metrics.jsonl"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(row % step for step in range(20)))
    return tmp_path


@pytest.mark.parametrize(
    ("harm", "runs", "issues"),
    [
        ("(place / 'a/metrics.jsonl').chmod(0)", ["b", "c"], [f"/a/metrics.jsonl: {SAYS}"]),
        (
            "[file.chmod(0) for file in (place / 'b').iterdir()]",
            ["a", "c"],
            [f"/b: 2 logs {SAYS}: progress.jsonl, train.log"],
        ),
        ("(place / 'b').chmod(0)", ["a", "c"], [f"/b: {SAYS}"]),
        ("(place / 'c').chmod(0o400)", ["a", "b"], [f"/c/metrics.jsonl: {SAYS}"]),
    ],
)
def test_what_may_not_be_read_is_named_and_read_once_it_may_be(place, harm, runs, issues):
    """Nothing of the log changes but its permissions."""
    code = f"""{TREE}
denied = {harm} and answer() or answer()
for each in (place, *place.iterdir()): each.chmod(0o700)
for file in place.glob("*/*"): file.chmod(0o600)
print(json.dumps([denied, answer()]))
"""
    (denied, says, missing), (after, nothing, _) = unprivileged(code, place)
    assert sorted({name[0] for name in denied}) == runs
    assert says == issues
    assert missing == 0
    assert sorted({name[0] for name in after}) == ["a", "b", "c"]
    assert nothing == []


@pytest.mark.parametrize("path", ["c/metrics.jsonl", "c/*.jsonl", "c/[m]etrics.jsonl", "c"])
def test_a_path_that_may_not_be_asked_about_is_no_traceback(place, path):
    code = f"""{TREE}
(place / "c").chmod(0)
print(json.dumps(answer()))
(place / "c").chmod(0o700)
"""
    runs, issues, missing = unprivileged(code, place, place / path)
    is_glob = any(letter in path for letter in "*[")
    assert runs == []
    assert (issues, missing) == (([], 1) if is_glob else ([f"/{path}: {SAYS}"], 0))
