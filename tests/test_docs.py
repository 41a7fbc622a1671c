"""What the README says is what there is."""

import pytest

from tests.readme import README, command_paths, help_text, rewritten

COMMANDS = list(command_paths())


def test_generated_parts_are_up_to_date():
    text = README.read_text()
    assert rewritten(text) == text, "run `make docs`"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_is_told_of(path):
    usage, _, meaning, *_ = help_text(path).splitlines()[1:]
    assert usage.startswith("Usage: sentinel")
    assert meaning.strip()
    assert f"sentinel {' '.join(path)}" in README.read_text().split("<!-- begin commands -->")[0]
