"""The help of `sentinel`: its commands in sections, and first the screen that needs no command."""

from collections import defaultdict
from enum import StrEnum
from typing import Any

from typer.core import TyperGroup


class Section(StrEnum):
    """A heading in the help, for `rich_help_panel`."""

    LOOK = "Look"
    WATCH = "Watch"
    ANSWER = "Answer"
    ARCHIVE = "Archive"
    PROGRAMS = "Programs"


class SectionedGroup(TyperGroup):
    """Commands whose help has sections, also without rich, which is slow to import."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each section, in the order of `Section`."""
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        width = formatter.width - 6 - max(len(name) for name, _ in commands)
        rows = defaultdict(list)
        rows[Section.LOOK].append(("PATH", "Show on one screen what is wrong with the runs below a path."))
        for name, command in commands:
            section = Section(getattr(command, "rich_help_panel", None) or Section.PROGRAMS)
            rows[section].append((name, command.get_short_help_str(width)))
        for section in Section:
            with formatter.section(section):
                formatter.write_dl(rows[section])
