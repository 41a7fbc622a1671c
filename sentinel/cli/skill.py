"""`sentinel skill`: teach a coding agent to watch trainings."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from sentinel.common.errors import SentinelError

_SKILL_FILE = "skills/sentinel/SKILL.md"

_Claude = Annotated[bool, typer.Option("--claude", help="Write it to ~/.claude/skills, for Claude Code.")]
_Codex = Annotated[bool, typer.Option("--codex", help="Write it to ~/.codex/skills, for Codex.")]
_Print = Annotated[bool, typer.Option("--print", help="Print it. This is the default.")]


def skill(claude: _Claude = False, codex: _Codex = False, print_: _Print = False) -> None:
    """Write a skill for coding agents: when to look, which command, and how to read the answer."""
    text = files(__package__).joinpath("skill.md").read_text("utf-8")
    for is_wanted, home in ((claude, ".claude"), (codex, ".codex")):
        if is_wanted:
            file = Path.home() / home / _SKILL_FILE
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
            except OSError as error:
                raise SentinelError(f"{file}: cannot be written: {error.strerror}") from None
            typer.echo(f"{file}: written")
    if print_ or not (claude or codex):
        typer.echo(text, nl=False)
