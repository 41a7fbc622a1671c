"""What an open run shows of its log."""

import json

from typer.testing import CliRunner

from sentinel.cli.app import program
from sentinel.config.file import load
from sentinel.pipeline import Pipeline
from sentinel.web.views import StateView


def test_lines_of_a_form_that_a_person_named_are_drawn(tmp_path):
    (tmp_path / "logs").mkdir()
    lines = (f"qq {n / 4} after {n * 10}\n" for n in range(1, 9))
    (tmp_path / "logs" / "own.log").write_text("".join(lines))
    file = tmp_path / "sentinel.toml"
    file.write_text(
        f"paths = [{json.dumps(str(tmp_path / 'logs'))}]\nstate_dir = {json.dumps(str(tmp_path / 'state'))}\n"
        '[[console]]\nline = "qq {qq} after {step}"\n'
    )
    assert CliRunner().invoke(program(), ["watch", "--once", "--config", str(file)]).exit_code == 0
    config = load(file)
    views = StateView([config.state_dir], None)
    views.refresh(0.0, 0.0)
    (key,) = views.fleet.runs
    opened = views.open(key, Pipeline([], {}, {}), config.forms)
    session = opened()
    views.close()
    assert session.grow()
