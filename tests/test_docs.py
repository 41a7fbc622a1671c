"""What the docs say is what there is."""

import json
import re

import jsonschema
import pytest

from tests.tools.docs import (
    DOCS,
    INCLUSION,
    PAGES,
    PARTS,
    README,
    ROOT,
    command_paths,
    help_text,
    inclusion,
    rewritten,
)

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


CODE = re.compile(r"^ *```.*?^ *```|^ {4}.*?$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
ON_GITHUB = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *ROOT.glob("*/README.md"),
    *DOCS.rglob("*.md"),
    README,
]
"""Every page that GitHub shows as it stands there."""


def anchors(page):
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.M), re.M
    )
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ON_GITHUB, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere_on_github(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", CODE.sub("", page.read_text())):
        if "://" in target:
            continue
        goal = page.parent / target if target else page
        assert goal.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(goal), f"{target} has no section {anchor}"


@pytest.mark.parametrize("page", ON_GITHUB, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_passage_is_left_to_fill_in(page):
    text = page.read_text()
    assert not re.search(r"<!-- (include|generated)", text)
    marks = re.findall(r"<!-- begin (.+?) -->\n(.*?)<!-- end", text, re.DOTALL)
    assert len(marks) == len(re.findall(r"<!-- begin ", text)) == len(re.findall(r"<!-- end ", text))
    assert not [name for name, passage in marks if not passage.strip()]


def test_files_that_a_page_shows_are_those_of_the_repository():
    """Fast; the slow test beside it makes all other parts anew."""
    for page in PAGES:
        for whole in INCLUSION.finditer(page.read_text()):
            assert whole[0] == inclusion(whole[1]), f"{page}: run `make docs`"


def test_a_user_has_fifteen_pages():
    assert len([README, *DOCS.glob("*.md")]) == 15
    begin = TEXTS["README.md"].partition("## Read on")[2]
    assert {*re.findall(r"site/docs/([\w-]+\.md)", begin)} == {page.name for page in DOCS.glob("*.md")}


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_is_told_of(path):
    usage, _, meaning, *_ = help_text(path).splitlines()[1:]
    assert usage.startswith("Usage: sentinel")
    assert meaning.strip()
    assert f"sentinel {' '.join(path)}" in WRITTEN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "schema"), [("webhook_event", "webhook.json"), ("webhook_digest", "webhook-digest.json")]
)
def test_a_sample_of_json_fits_its_schema(sample, schema):
    text = TEXTS["channels.md"].partition(f"<!-- begin {sample} -->\n```json\n")[2].partition("```")[0]
    form = json.loads((ROOT / "deploy" / "schema" / schema).read_text())
    jsonschema.validate(json.loads(text), form)
