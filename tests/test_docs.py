"""What the docs say is what there is."""

import re

import pytest

from tests.tools.docs import PAGES, PARTS, ROOT, command_paths, help_text, rewritten

COMMANDS = list(command_paths())
TEXTS = {page.name: page.read_text() for page in PAGES}
WRITTEN = "".join(text.split("<!-- begin commands -->")[0] for text in TEXTS.values())


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_generated_parts_are_up_to_date(text):
    assert rewritten(text) == text, "run `make docs`"


def test_every_generated_part_stands_somewhere():
    whole = "".join(TEXTS.values())
    assert not [part.__name__ for part in PARTS if f"<!-- begin {part.__name__} -->" not in whole]


def test_the_first_page_is_one_page():
    assert len(TEXTS["README.md"].splitlines()) <= 120


def test_the_links_of_the_first_page_lead_somewhere():
    targets = re.findall(r"\]\(([^)#:]+)\)", TEXTS["README.md"])
    assert targets
    assert not [target for target in targets if not (ROOT / target).is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_is_told_of(path):
    usage, _, meaning, *_ = help_text(path).splitlines()[1:]
    assert usage.startswith("Usage: sentinel")
    assert meaning.strip()
    assert f"sentinel {' '.join(path)}" in WRITTEN
