"""A file that a person names is read if its content is a log, whatever its name is."""

import pytest

from sentinel.sources.discovery import discover
from tests.sources.reader import Reader

LOGS = {
    "csv": "step,loss\n1,0.5\n2,0.25\n",
    "json": '{"step": [1, 2], "loss": [0.5, 0.25]}',
    "jsonl": '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n',
    "console": "step 1: loss 0.5\nstep 2: loss 0.25\n",
}

OTHERS = {
    "name,age\nann,31\nbea,27\n": "is no log",
    '{"name": "model", "layers": [1, 2]}': "is no log",
    "the loss fell\nafter all\n": "is no log",
    "PNG\0\0\0": "is no text",
    "\n\n": "is no log",
    "": "is empty",
}


@pytest.mark.parametrize("name", ["w.csv", "w.txt", "w.json", "w.dat", "w"])
@pytest.mark.parametrize("kind", LOGS)
def test_a_log_under_any_name(tmp_path, kind, name):
    path = tmp_path / name
    path.write_text(LOGS[kind])
    assert [(run.path, run.format) for run in discover([path]).runs] == [(path, kind)]
    assert Reader(path).poll().points == [("loss", 1, "0.5"), ("loss", 2, "0.25")]


@pytest.mark.parametrize("text", OTHERS)
def test_another_file_is_refused_with_the_reason(tmp_path, text):
    path = tmp_path / "w.csv"
    path.write_text(text)
    found = discover([path])
    assert not found.runs
    assert [(one.path, one.problem.startswith(OTHERS[text])) for one in found.read_issues] == [(path, True)]


def test_a_file_becomes_a_log_while_it_grows(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("")
    assert not discover([path]).runs
    path.write_text(LOGS["csv"])
    assert len(discover([path]).runs) == 1
