"""The page of the doubtful pages in a real browser: `make test-browser`."""

import json

import pytest
from typer.testing import CliRunner

from sentinel.cli.app import program
from tests.browser.looks import INK, serious_findings

pytestmark = pytest.mark.long


LONG = "lr_0.0003_warmup_0.1_batch_64_seed_1234_beta_0.04_generations_8"


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The page about three runs whose KL jumps, among some that are well."""
    folder = tmp_path_factory.mktemp("archive")
    for number in range(6):
        run = folder / "runs" / LONG / f"run-{number}"
        run.mkdir(parents=True)
        kl = [0.01 if i < 100 or number > 2 else 3.0 + number for i in range(200)]
        rows = [{"step": i, "train/kl": kl[i], "train/loss": 2 / (1 + i / 20)} for i in range(200)]
        (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = ["calibrate", folder / "runs", "-o", folder / "c.toml", "--html", folder / "doubtful.html"]
    assert CliRunner().invoke(program(), [*map(str, words)]).exit_code == 0
    return f"file://{folder / 'doubtful.html'}"


def test_each_page_shows_its_curves(page, asked):
    page.goto(asked)
    places = page.locator(".plot").all()
    assert len(places) == 6
    for place in places:
        place.scroll_into_view_if_needed()
        assert place.locator("canvas").evaluate(INK) > 3


def test_answers_become_commands_and_can_be_taken_back(page, asked):
    page.goto(asked)
    commands = page.locator("#commands")
    assert not commands.is_visible()
    page.get_by_role("button", name="run-0/metrics.jsonl: Right").click()
    page.get_by_role("button", name="run-1/metrics.jsonl: False alarm").click()
    lines = commands.inner_text().splitlines()
    assert [line.split()[3] for line in lines] == ["useful", "false-alarm"]
    assert all(line.endswith("--detector kl-blowup") for line in lines)
    page.get_by_role("button", name="run-0/metrics.jsonl: False alarm").click()
    assert commands.inner_text().count("false-alarm") == 2
    for number in (0, 1):
        page.get_by_role("button", name=f"run-{number}/metrics.jsonl: False alarm").click()
    assert not commands.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_fits_any_screen_and_everybody_can_read_it(page, asked, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(asked)
    page.locator(".answer").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_findings(page) == []
