"""The HTML report in a real browser: `make test-browser`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sentinel
from sentinel.cli.app import program
from tests.browser.looks import INK, serious_findings, shaded
from tests.fleets import write_tree

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Reports by the names of the sample logs that they are about."""
    folder = tmp_path_factory.mktemp("reports")

    def report(*paths):
        file = folder / f"{len([*folder.iterdir()])}.html"
        words = ["replay", *map(str, paths), "--format", "html", "-o", str(file)]
        assert CliRunner().invoke(program(), words).exit_code == 0
        return f"file://{file}"

    return report


def sample(*names):
    return [ROOT / "sample_logs" / name for name in names]


@pytest.fixture(scope="module")
def single(written):
    return written(*sample("kl-blowup"))


@pytest.fixture(scope="module")
def several(written):
    return written(*sample("kl-blowup", "healthy-supervised", "flat-loss-at-init"))


def test_every_curve_is_drawn(page, single):
    page.goto(single)
    for place in page.locator(".plot").all():
        place.scroll_into_view_if_needed()
        assert place.locator("canvas").evaluate(INK) > 3


def test_a_curve_of_three_decades_is_logarithmic_until_a_person_chooses(page, written, tmp_path):
    rows = [
        {"step": step, "loss": 1 + 10**4 * 0.9**step, "accuracy": step / 100, "scale": 2.0**-step}
        for step in range(100)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.goto(written(tmp_path))

    def says(tag):
        plot = page.locator(f'.plot[data-tag="{tag}"]').first
        plot.scroll_into_view_if_needed()
        return plot.locator(".legend").inner_text()

    assert ", logarithmic" in says("loss")
    assert ", logarithmic" not in says("accuracy")  # it begins at 0
    assert ", logarithmic" not in says("scale")  # it ends at 1e-30
    box = page.get_by_label("Logarithmic scale")
    box.check()
    box.uncheck()
    assert ", logarithmic" not in says("loss")


def test_a_curve_says_its_values_and_zooms(page, single):
    page.goto(single)
    plot = page.locator(".plot[data-tall]").first
    plot.scroll_into_view_if_needed()
    over = plot.locator(".u-over")
    legend = plot.locator(".legend")
    assert legend.inner_text() == "train/kl over the steps; dashed: onset, solid: found, dotted: over"
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 50)
    assert legend.inner_text().startswith("step 9")
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 50, steps=5)
    page.mouse.up()
    page.mouse.move(box["x"] + box["width"] * 0.99, box["y"] + 50)
    step = int(legend.inner_text().split(":")[0].removeprefix("step "))
    assert 60 <= step <= 75, "the right edge is where the drag ended"
    page.mouse.dblclick(box["x"] + box["width"] * 0.5, box["y"] + 50)
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 50)
    assert legend.inner_text().startswith("step 100")


def test_a_table_of_runs_sorts_filters_and_leads_to_each(page, several):
    page.goto(f"{several}?columns=points")
    names = page.locator("#table tbody tr:visible td:nth-child(2)")
    assert names.all_inner_texts() == ["kl-blowup", "flat-loss-at-init", "healthy-supervised"]
    page.get_by_role("button", name="Points").click()
    assert names.all_inner_texts() == ["kl-blowup", "flat-loss-at-init", "healthy-supervised"]
    page.get_by_role("button", name="Points").click()
    assert names.all_inner_texts() == ["healthy-supervised", "flat-loss-at-init", "kl-blowup"]
    page.get_by_label("Filter").fill("flat")
    assert names.all_inner_texts() == ["flat-loss-at-init"]
    page.keyboard.press("Tab")
    page.get_by_role("link", name="flat-loss-at-init").focus()
    page.keyboard.press("Enter")
    page.locator("#table").wait_for(
        state="hidden"
    )  # the browser tells the page later that its address changed
    assert page.locator(".run:visible h2").all_inner_texts() == ["flat-loss-at-init"]
    assert not page.locator("#table").is_visible()
    page.get_by_role("link", name="All runs").click()
    page.locator("#table").wait_for()
    assert page.locator("#table").is_visible()


def test_a_click_on_a_detector_shows_only_its_runs(page, several):
    page.goto(several)
    names = page.locator("#table tbody td:nth-child(2)")
    kind = page.get_by_role("button", name="flat-loss-at-init 1")
    kind.click()
    assert names.all_inner_texts() == ["flat-loss-at-init"]
    assert kind.get_attribute("aria-pressed") == "true"
    kind.click()
    assert names.count() == 3


def test_a_run_costs_nothing_until_it_is_looked_at(page, several):
    page.goto(several)
    assert page.locator(".run").count() == 0
    page.get_by_role("link", name="healthy-supervised").click()
    page.locator(".run:visible .plot canvas").first.wait_for()
    assert page.locator(".run h2").all_inner_texts() == ["healthy-supervised"]


def test_what_was_found_is_folded_on_a_phone(page, several):
    page.goto(several)
    assert page.locator(".chips .kind").first.is_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    assert page.locator(".chips .kind").first.is_hidden()
    page.get_by_text("found something").click()
    assert page.locator(".chips .kind").first.is_visible()


def test_a_long_table_is_shown_in_slices_and_sorted_and_filtered_as_a_whole(page, written, monkeypatch):
    monkeypatch.setattr("sentinel.report.html.ROWS_AT_FIRST", 2)
    page.goto(written(*sample("kl-blowup", "healthy-supervised", "flat-loss-at-init")))
    names = page.locator("#table tbody td:nth-child(2)")
    assert names.all_inner_texts() == ["kl-blowup", "flat-loss-at-init"]
    assert page.locator("#more span").inner_text() == "2 of 3 runs are shown."
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Run").click()
    assert names.all_inner_texts() == ["flat-loss-at-init", "healthy-supervised"]
    page.get_by_label("Filter").fill("kl")
    assert names.all_inner_texts() == ["kl-blowup"]
    assert page.locator("#more").is_hidden()
    page.get_by_label("Filter").fill("")
    page.get_by_role("button", name="Show more").click()
    assert names.all_inner_texts() == ["flat-loss-at-init", "healthy-supervised", "kl-blowup"]
    assert page.locator("#more").is_hidden()


def test_without_scripts_everything_stands_in_it(browser, written, monkeypatch):
    monkeypatch.setattr("sentinel.report.html.ROWS_AT_FIRST", 1)
    page = browser.new_page(java_script_enabled=False)
    page.goto(written(*sample("kl-blowup", "healthy-supervised")))
    assert page.locator("tr td:nth-child(2) a").all_inner_texts() == ["kl-blowup", "healthy-supervised"]
    assert page.locator(".run h2:visible").all_inner_texts() == ["kl-blowup", "healthy-supervised"]
    page.close()


def test_the_scale_of_the_curves_can_be_logarithmic(page, single):
    page.goto(single)
    figure = page.locator("figure", has_text="train/grad_norm")
    figure.scroll_into_view_if_needed()
    linear = figure.locator("canvas").evaluate("canvas => canvas.toDataURL()")
    page.get_by_label("Logarithmic scale").check()
    assert figure.locator("canvas").evaluate("canvas => canvas.toDataURL()") != linear


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_fits_any_screen_and_scheme(page, several, scheme, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{several}#run-0")
    page.locator(".plot canvas").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("place", ["", "#run-0"])
def test_everybody_can_read_it(page, several, scheme, width, place):
    """No finding of axe-core about contrast, labels, order or keyboard that is serious or critical."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{several}{place}")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert serious_findings(page) == []


def test_names_from_a_run_do_nothing(page, written, tmp_path):
    rows = [{"step": i, f"loss/{HOSTILE}": 1.0 / (i + 1), "kl": 9.0} for i in range(99)]
    (tmp_path / "javascript:void(0)").mkdir()
    log = tmp_path / "javascript:void(0)" / "metrics.jsonl"
    log.write_text("\n".join(json.dumps(row) for row in rows))
    page.goto(written(log))
    page.locator(".plot canvas").first.wait_for()
    assert page.title().startswith("sentinel: ")
    assert page.locator("img").count() == 0
    assert page.get_by_text("<script>document.title='taken'</script>").count() > 0


def test_it_prints(page, several, tmp_path):
    page.goto(several)
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    page.emulate_media(media="print")
    assert all(run.is_visible() for run in page.locator(".run").all())


def test_what_a_cause_is_stands_a_click_away(page, single):
    page.goto(single)
    page.get_by_role("link", name="Its page in the catalogue").first.click()
    symptom = page.locator("#catalogue details[open] h2", has_text="Symptom")
    symptom.wait_for()
    assert 0 <= symptom.bounding_box()["y"] < page.viewport_size["height"]


def test_below_a_run_stand_only_the_catalogue_entries_that_it_cites(page, several):
    entries = page.locator("#catalogue summary:visible")
    page.goto(several)
    everything = entries.count()
    page.get_by_role("link", name="healthy-supervised").click()
    page.get_by_text("Nothing was found by the").wait_for()
    assert entries.count() == 0
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="kl-blowup").click()
    page.get_by_role("heading", name="kl-blowup", level=2).wait_for()
    assert [text.split(":")[0] for text in entries.all_inner_texts()] == ["R1", "R2", "A-kl"]
    assert everything > 3


def test_a_notebook_shows_the_report_and_stays_out_of_its_reach(page, tmp_path):
    rows = [{"step": i, f"loss/{HOSTILE}": 1.0 / (i + 1), "kl": 0.01 if i < 50 else 9.0} for i in range(99)]
    (tmp_path / "hostile.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = sentinel.replay(tmp_path, *sample("healthy-rl"))._repr_html_()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>mine</title><p id='cell'>In [1]</p>{shown}")
    page.goto(f"file://{notebook}")
    inside = page.frame_locator("iframe")
    inside.get_by_role("link", name="hostile.jsonl").click()
    plot = inside.locator(".run:visible .plot").first
    plot.scroll_into_view_if_needed()
    assert plot.locator("canvas").evaluate(INK) > 3
    assert inside.locator("body").evaluate("() => window.origin") == "null"
    assert (page.title(), page.locator("#cell").inner_text()) == ("mine", "In [1]")


def test_the_band_of_the_siblings_is_shaded(page, written, tmp_path):
    page.goto(f"{written(write_tree(tmp_path / 'runs'))}#run-0")
    plot = page.locator(".run:visible .plot").first
    plot.locator("canvas").wait_for()
    legend = plot.locator(".legend")
    assert legend.inner_text().endswith("; shaded: siblings")
    assert shaded(plot.locator("canvas"), "siblings") > 50
