"""The commands and the code of the docs work as they stand there."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer

from sentinel.cli.app import program_for
from sentinel.testing import assert_healthy
from tests.cli.conftest import sentinel
from tests.tools.docs import PAGES

pytestmark = pytest.mark.slow

__all__ = ["sentinel"]

SAMPLES = Path(__file__).parents[1] / "sample_logs"
TEXT = "\n".join(page.read_text().split("<!-- begin commands -->")[0] for page in PAGES)
COMMANDS = sorted({*re.findall(r"^    sentinel (.+)$", TEXT, re.MULTILINE)})
SECTION = TEXT.partition("## In programs, notebooks and tests")[2].partition("## For agents")[0]
PROGRAM, TEST = re.findall(r"```python\n(.+?)```", SECTION, re.DOTALL)


@pytest.fixture
def here(sentinel, tmp_path):
    """A directory of runs as the README has it, where commands run."""
    for name, sample in (("today", "kl-blowup"), ("exp-1", "kl-blowup"), ("exp-2", "healthy-rl")):
        shutil.copytree(SAMPLES / sample, tmp_path / "runs" / name)
    (tmp_path / "sentinel.toml").write_text('paths = ["runs/"]\n')
    return tmp_path


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_can_be_understood(here, words):
    arguments = shlex.split(words)
    command = typer.main.get_command(program_for(arguments))
    while arguments and hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    command.make_context("", arguments).close()


@pytest.mark.parametrize("words", [words for words in COMMANDS if words.startswith("replay")])
def test_a_replay_works(here, sentinel, words):
    ran = sentinel(*shlex.split(words))
    assert ran.status == ("--fail-on" in words)
    assert ran.out or "-o" in words


def test_the_program_works(here, capsys):
    names = {}
    exec(PROGRAM, names)
    assert "critical kl-blowup" in capsys.readouterr().out
    assert not names["kl"].is_empty()


def test_the_test_works(tmp_path):
    names = {"train": lambda log_dir, **_: shutil.copytree(SAMPLES / "healthy-rl", log_dir / "run")}
    exec(TEST, names)
    names["test_a_short_training_is_healthy"](assert_healthy, tmp_path)
