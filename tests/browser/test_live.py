"""The live page in a real browser: `make test-browser`."""

import json
import math
import re
import time
from contextlib import contextmanager

import pytest

from sentinel.storage.store import Store
from tests import fleets
from tests.browser.looks import INK, serious_findings, shaded
from tests.watch.test_siblings import Tree
from tests.web.conftest import TOKEN, log, runs, serving, watch  # noqa: F401  fixtures

pytestmark = pytest.mark.slow
DAY = 86400
BEGIN = 1_768_478_400  # noon of 15 January 2026, UTC
HOSTILE = "</script><script>document.title='taken'<!-- <img src=x onerror=\"document.title='taken'\">"


@contextmanager
def looking(page, state_dir, query="", now=0.0):
    """The page of all runs while the block runs, as the link with the token leads to it, and its address."""
    with serving(state_dir, now=now) as (client, _):
        try:
            page.goto(f"{client.base_url}/?token={TOKEN}{query}")
            yield str(client.base_url)
        finally:
            page.goto("about:blank")  # ends its connection before the server ends


@pytest.fixture
def live(page, runs, watch, tmp_path):  # noqa: F811
    """The page of all runs."""
    watch()
    with looking(page, tmp_path / "state"):
        yield page


def of_run(page, name):
    """Go to the page of a run."""
    page.get_by_role("link", name=f"{name}/").click()
    page.locator(".plot canvas").first.wait_for()


def test_the_token_does_not_stay_in_the_address(live):
    assert "token" not in live.url
    assert live.title() == "sentinel: 1 open incident: 1 critical"


def test_a_chart_of_a_run_shows_its_values_and_nothing_else(live, runs, watch):  # noqa: F811
    log(runs / "dated", range(200), begin=BEGIN)  # the times come along, for a page that compares runs
    watch()
    of_run(live, "dated")
    live.locator(".plot .u-over").first.hover()
    said = live.locator(".plot .legend", has_text=re.compile(r"^step \d+: ")).first.inner_text()
    assert re.fullmatch(r"step \d+: [\d.]+", said)


def test_a_run_is_copied_as_markdown(live):
    live.context.grant_permissions(["clipboard-read", "clipboard-write"])
    of_run(live, "sick")
    live.get_by_role("link", name="Copy as Markdown").click()
    live.get_by_text("Copied.").wait_for()
    assert "### non-finite-metric (critical)" in live.evaluate("navigator.clipboard.readText()")


def test_the_report_of_a_run_is_a_file_that_needs_no_server(live, page, tmp_path):
    of_run(live, "sick")
    with live.expect_download() as kept:
        live.get_by_role("link", name="Report of this run").click()
    kept.value.save_as(tmp_path / "report.html")
    page.goto((tmp_path / "report.html").as_uri())
    page.locator(".plot canvas").first.wait_for()
    assert not serious_findings(page)


def test_a_row_changes_and_the_order_stays(live, runs, watch):  # noqa: F811
    names = live.locator("#table tbody tr:visible td:nth-child(2)")
    live.get_by_role("button", name="Run").click()
    assert names.all_inner_texts() == ["well/metrics.jsonl", "sick/metrics.jsonl"]
    log(runs / "well", range(200, 400), loss=math.nan)
    watch()
    live.get_by_role("heading", name="2 open incidents: 2 critical").wait_for()
    assert live.locator("#table .badge.critical").count() == 2
    assert names.all_inner_texts() == ["well/metrics.jsonl", "sick/metrics.jsonl"]


def test_rows_that_stay_are_not_put_in_again(live, runs, watch):  # noqa: F811
    log(runs / "third", range(200))
    watch()
    live.get_by_role("link", name="third/").wait_for()
    live.evaluate("""() => {
        window.put = [];
        const note = (change) => change.addedNodes.forEach((row) => put.push(row.id));
        const seen = new MutationObserver((changes) => changes.forEach(note));
        seen.observe(document.querySelector("#table tbody"), { childList: true });
    }""")
    log(runs / "well", range(200, 400), loss=math.nan)
    watch()
    live.get_by_role("heading", name="2 open incidents: 2 critical").wait_for()
    row = live.locator("#table tr", has_text="well/").get_attribute("id")
    assert live.evaluate("put") == [row]


def test_a_run_below_the_slice_that_gets_worse_comes_to_the_top(page, runs, watch, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("sentinel.web.views.ROWS_AT_FIRST", 1)
    watch()
    with looking(page, tmp_path / "state"):
        names = page.locator("#table tbody td:nth-child(2)")
        assert names.all_inner_texts() == ["sick/metrics.jsonl"]
        log(runs / "well", range(200, 400), loss=math.nan)
        watch()
        page.locator("#table tbody td", has_text="well").wait_for()
        assert names.all_inner_texts() == ["well/metrics.jsonl"]
        assert page.locator("#more span").inner_text() == "1 of 2 runs are shown."


def test_a_run_that_is_new_appears_unless_it_is_filtered_out(live, runs, watch):  # noqa: F811
    live.get_by_label("Filter").fill("other")
    log(runs / "other", range(150))  # equal logs would be copies of one
    log(runs / "third", range(100))
    watch()
    live.get_by_role("link", name="other/").wait_for()
    live.locator("#table tr", has_text="third").wait_for(state="hidden")
    live.get_by_label("Filter").fill("")
    assert live.locator("#table tbody tr:visible").count() == 4


def test_every_curve_of_a_run_is_drawn_and_grows_without_a_reload(live, runs):  # noqa: F811
    of_run(live, "well")
    live.evaluate("window.kept = true")
    live.get_by_label("Logarithmic scale").check()
    for place in live.locator(".plot").all():
        place.scroll_into_view_if_needed()
        place.locator("canvas").wait_for()
        assert place.locator("canvas").evaluate(INK) > 3
    log(runs / "well", range(200, 260))
    live.get_by_text("0 to 259").wait_for()
    assert live.evaluate("window.kept")
    assert live.get_by_label("Logarithmic scale").is_checked()
    canvas = live.locator(".plot canvas").first
    canvas.wait_for()
    assert canvas.evaluate(INK) > 3


def test_an_incident_is_acknowledged_by_keyboard_and_taken_back(live, tmp_path):
    of_run(live, "sick")
    live.get_by_role("button", name="Acknowledge").focus()
    live.keyboard.press("Enter")
    live.get_by_text("Acknowledged: only its end is sent.").wait_for()
    with Store(tmp_path / "state", read_only=True) as store:
        assert [one.reason for one in store.silences(0.0)] == ["acknowledged"]
    live.get_by_role("button", name="Take it back").click()
    live.get_by_role("button", name="Acknowledge").wait_for()


def test_a_run_is_silenced_and_heard_again(live):
    of_run(live, "well")
    live.get_by_label("Nothing is sent about this run for").select_option("1 day")
    live.get_by_label("because").fill("known")
    live.get_by_role("button", name="Silence").click()
    live.get_by_text(re.compile("for 1 d: known")).wait_for()
    live.get_by_role("button", name=re.compile("End the silence")).click()
    live.get_by_text(re.compile("for 1 d: known")).wait_for(state="detached")


def test_names_from_a_run_do_nothing(live, runs, watch):  # noqa: F811
    run = runs / "javascript:void(0)" / HOSTILE.replace("/", "")
    run.mkdir(parents=True)
    rows = [{"step": i, f"loss/{HOSTILE}": "NaN" if i > 50 else 1.0} for i in range(99)]
    (run / "metrics.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    watch()
    link = live.get_by_role("link", name="javascript")
    link.wait_for()
    assert live.title().startswith("sentinel: ")
    link.click()
    live.get_by_role("heading", name="Signals").wait_for()
    assert live.title().startswith("sentinel: ")
    assert live.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_everybody_can_read_it_on_any_screen(live, width, scheme):
    live.set_viewport_size({"width": width, "height": 900})
    live.emulate_media(color_scheme=scheme)
    for name in ("", "sick"):
        if name:
            of_run(live, name)
        live.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert live.evaluate("document.documentElement.scrollWidth") <= width
        assert serious_findings(live) == []


def folder(name):
    return name.partition("/")[0]


def test_what_goes_on_comes_first_and_what_ended_before_the_period_folds_away(page, runs, watch, tmp_path):  # noqa: F811
    now = time.time()
    log(runs / "going", range(200), begin=now - 300)
    log(runs / "yesterday", range(200), begin=now - 2 * DAY, loss=math.nan)
    log(runs / "old", range(200), begin=now - 30 * DAY, loss=math.nan)
    watch()
    with looking(page, tmp_path / "state", now=now) as base:
        names = page.locator("#table tbody tr:visible td.name a")
        assert [*map(folder, names.all_inner_texts())] == ["sick", "going", "well", "yesterday"]
        assert not page.locator("#table", has_text="old/").count()
        assert page.locator("#folded span").inner_text() == "1 run that ended earlier is folded away."
        page.get_by_label("Ended runs").select_option("of the last day")
        assert page.url.endswith("?since=1d")
        page.reload()
        assert page.locator("#folded span").inner_text() == "2 runs that ended earlier are folded away."
        page.get_by_role("button", name="Show all").click()
        assert names.count() == 5
        page.goto(f"{base}/?since=72h")
        assert page.locator("#folded span").inner_text() == "1 run that ended earlier is folded away."


def test_a_run_without_times_folds_away_once_the_watch_heard_nothing_for_long(page, tmp_path):
    tree = Tree(tmp_path)
    tree.finished(2)
    log(tree.runs / "recent", range(200), begin=time.time() - 300)
    tree.look(tree.watch())
    with looking(page, tmp_path / "state", now=time.time()):
        assert [*map(folder, page.locator("#table td.name a").all_inner_texts())] == ["recent"]
        assert page.locator("#folded span").inner_text() == "2 runs that ended earlier are folded away."


def test_columns_order_and_filter_stand_in_the_address(live):
    assert not live.locator("th.began").is_visible()
    live.get_by_text("Columns", exact=True).click()
    live.get_by_label("Began").check()
    live.get_by_role("button", name="Last point").click()
    live.get_by_role("button", name="Last point").click()
    live.get_by_label("Filter").fill("well")
    live.reload()
    assert live.locator("th.began").is_visible()
    assert live.locator("th.last").get_attribute("aria-sort") == "ascending"
    assert live.locator("#table tbody td.name").all_inner_texts() == ["well/metrics.jsonl"]


def test_a_time_is_local_and_names_its_zone(browser, runs, watch, tmp_path):  # noqa: F811
    log(runs / "dated", range(200), begin=BEGIN)
    watch()
    context = browser.new_context(timezone_id="Asia/Calcutta")
    page = context.new_page()
    with looking(page, tmp_path / "state", "&columns=began"):
        began = page.locator("#table tr", has_text="dated").locator(".began time")
        assert began.inner_text() == "15 Jan 2026, 17:30"
        assert began.get_attribute("title").endswith("GMT+5:30, Asia/Calcutta")
    context.close()


def test_the_states_are_explained_where_they_stand(live):
    live.get_by_text("What the states mean").click()
    assert live.locator("dt", has_text="preempted").is_visible()
    state = live.locator("td.state").first
    assert (
        state.get_attribute("title") == live.locator(f"dt:text-is('{state.inner_text()}') + dd").inner_text()
    )


def test_a_phone_shows_some_runs_and_breaks_names_at_slashes(page, runs, watch, tmp_path):  # noqa: F811
    for number in range(60):
        log(runs / "a-sweep-of-many-rates" / f"learning-rate-{number}", range(20))
    watch()
    page.set_viewport_size({"width": 390, "height": 844})
    with looking(page, tmp_path / "state"):
        assert page.locator("#more span").inner_text() == "40 of 62 runs are shown."
        assert page.evaluate("document.documentElement.scrollHeight") < 8000
        lines = page.locator("td.name a", has_text="learning-rate").first.evaluate(
            "link => [...link.querySelectorAll('.part')].map(part => part.getClientRects().length)"
        )
        assert lines == [1, 1, 1], "each part of a name stays on one line"


def test_a_long_path_in_a_headline_breaks_on_a_phone(page, runs, watch, tmp_path):  # noqa: F811
    path = f"/data/{'a_very_long_name' * 8}.json"
    lines = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>']
    lines += ["    main()", f"FileNotFoundError: [Errno 2] No such file or directory: {path!r}"]
    log(runs / "crashed", range(100))
    (runs / "crashed" / "console.log").write_text("\n".join(lines) + "\n")
    watch()
    page.set_viewport_size({"width": 390, "height": 844})
    with looking(page, tmp_path / "state"):
        of_run(page, "crashed")
        page.locator("h1", has_text="a_very_long_name").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_signals_are_searched_and_pinned_in_the_address(live):
    of_run(live, "sick")
    shown = live.locator(".multiples figure:visible")
    live.get_by_role("button", name="Pin train/grad_norm").click()
    assert live.locator(".pinned figure .plot canvas").evaluate(INK) > 3
    live.get_by_label("Search").fill("LOSS")
    live.reload()
    assert [one.get_attribute("data-tag") for one in shown.all()] == ["train/loss"]
    live.get_by_label("Search").fill("")
    assert shown.first.get_attribute("data-tag") == "train/grad_norm"
    live.get_by_role("button", name="Pin train/grad_norm").click()
    assert live.locator(".pinned").is_hidden()


def test_keys_lead_through_runs_and_incidents(live):
    live.keyboard.press("j")
    live.keyboard.press("j")
    live.keyboard.press("k")
    assert live.locator(":focus").inner_text() == "sick/metrics.jsonl"
    live.keyboard.press("?")
    live.get_by_role("heading", name="Keys").wait_for()
    assert serious_findings(live) == []
    live.keyboard.press("Escape")
    live.keyboard.press("/")
    live.keyboard.type("jk")
    assert live.get_by_label("Filter").input_value() == "jk"
    live.get_by_label("Filter").fill("")
    live.keyboard.press("Escape")
    live.keyboard.press("j")
    live.keyboard.press("Enter")
    live.locator(".plot canvas").first.wait_for()  # the scripts run
    live.keyboard.press("j")
    assert live.locator(":focus h4").inner_text().endswith("non-finite-metric")
    live.keyboard.press("u")
    live.locator("#table").wait_for()


def test_the_focus_stays_where_it_is_when_a_run_grows(live, runs):  # noqa: F811
    of_run(live, "sick")
    focused = (
        "() => { const one = document.activeElement; return one.className + one.textContent.slice(0, 20); }"
    )
    scale = live.get_by_label("Logarithmic scale")
    moves = [lambda: live.keyboard.press("j"), live.locator(".incident summary").last.focus, scale.focus]
    for begin, move in enumerate(moves, 30):
        move()
        before = live.evaluate(focused)
        assert before
        live.locator(".run").evaluate("run => { run.dataset.older = 1; }")
        log(runs / "sick", range(begin * 10, begin * 10 + 10), loss=math.nan)
        live.locator(".run:not([data-older])").wait_for()
        assert live.evaluate(focused) == before


def test_a_capture_of_the_whole_page_shows_every_curve(live):
    of_run(live, "sick")
    live.locator(".plot:not(:has(canvas))").first.wait_for(state="detached")
    assert live.evaluate("scrollY") == 0


def test_a_cause_is_bold_only_where_the_run_speaks_for_it(live):
    of_run(live, "sick")
    first = live.locator(".first")
    assert "Nothing in this run favours one of the causes." in first.inner_text()
    assert first.locator("b").count() == 0


def test_curves_of_picked_runs_lie_over_each_other(live, runs, watch):  # noqa: F811
    for name in ("sick", "well"):
        live.get_by_role("checkbox", name=f"Pick {name}").check()
    live.reload()
    live.get_by_role("link", name="Compare 2 runs").click()
    canvas = live.locator("#overlay canvas")
    assert canvas.evaluate(INK) > 5, "two colours beside those of the axes"
    live.get_by_label("Signal").select_option(label="train/grad_norm")
    live.get_by_label("Logarithmic scale").check()
    live.get_by_label("Smoothing").fill("0.9")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    live.reload()
    assert live.get_by_label("Signal").input_value() == "tag:train/grad_norm"
    assert canvas.evaluate("canvas => canvas.toDataURL()") == before, "the address says all of it"
    live.get_by_label("Over").select_option("share of the plan")
    assert live.locator("#overlay-remark").inner_text() == "Not drawn, because they have no plan: 1, 2."
    live.get_by_label("Over").select_option("steps")
    log(runs / "well", range(200, 260))
    live.locator(".says", has_text=re.compile("last 2$")).first.wait_for()
    assert serious_findings(live) == []
    with live.expect_download() as saved:
        live.get_by_role("button", name="Save as PNG").click()
    assert saved.value.suggested_filename == "train-grad_norm.png"


def test_the_band_of_the_siblings_lies_behind_the_curves(page, tmp_path):
    tree = Tree(tmp_path)
    tree.finished(9)
    tree.grow(tree.watch(), [*fleets.lines(50, 0.3)], every=50)
    with looking(page, tmp_path / "state", "&since=all", now=tree.clock.now()):
        of_run(page, "growing")
        assert shaded(page.locator(".incident .plot canvas"), "siblings") > 50
        page.go_back()
        for name in ("run-0", "growing"):
            page.get_by_role("checkbox", name=f"Pick {name}").check()
        page.get_by_role("link", name="Compare 2 runs").click()
        canvas = page.locator("#overlay canvas")
        remark = page.locator("#overlay-remark")
        canvas.wait_for()
        assert "Shaded is what healthy siblings of run 2 reach." in remark.inner_text()
        assert shaded(canvas, "siblings") > 50
        page.get_by_label("Over").select_option("share of the plan")
        assert shaded(canvas, "siblings") > 50
        page.get_by_label("Over").select_option("time since the first point")
        assert remark.inner_text() == "Not drawn, because they have no times: 1, 2."


def test_settings_of_compared_runs_stand_side_by_side_differences_first(live, runs, watch):  # noqa: F811
    for name, rate in (("slow", 1e-4), ("fast", 1e-3)):
        log(runs / name, range(50))
        (runs / name / "train_config.json").write_text(json.dumps({"lr": rate, "batch_size": 8}))
    watch()
    for name in ("slow", "fast"):
        live.get_by_role("checkbox", name=f"Pick {name}").check()
    live.get_by_role("link", name="Compare 2 runs").click()
    table = live.get_by_role("region", name="Settings that differ")
    table.wait_for()
    assert table.locator("tbody tr").all_inner_texts() == ["lr\t0.0001\t0.001"]
    live.get_by_text("The same in all (1)").click()
    assert live.get_by_role("row", name="batch_size 8").is_visible()
    live.set_viewport_size({"width": 390, "height": 844})
    assert live.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_incidents_of_all_runs_lie_on_one_timeline(page, runs, watch, tmp_path):  # noqa: F811
    now = time.time()
    log(runs / "dated", range(100), begin=now - 7200)
    log(runs / "dated", range(100, 3700), begin=now - 7200, loss=math.nan)
    log(runs / "old", range(200), begin=now - 20 * DAY, loss=math.nan)
    watch()
    with looking(page, tmp_path / "state", now=now):
        page.get_by_role("link", name="The fleet over time").click()
        page.get_by_role("heading", name="The fleet over time").wait_for()
        assert page.locator(".fleet-time rect").count() == 2, "the period holds all runs"
        page.get_by_role("link", name="The last week").click()
        page.wait_for_url("**/time?since=7d")
        facts = page.locator(".facts")
        hours = facts.locator("div", has_text="Hours in trouble").locator("dd")  # 7,100 seconds
        assert hours.text_content() == "1.97of 1 runs, from the onset on", "whatever style sheets are there"
        assert "at most 1 at once" in facts.inner_text()
        assert page.locator(".fleet-time rect").count() == 1
        assert page.locator("tbody a").all_inner_texts() == ["dated/metrics.jsonl"]
        page.get_by_role("link", name="The last month").click()
        page.get_by_role("link", name="old/").wait_for()
        assert page.locator(".fleet-time rect").count() == 2
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert serious_findings(page) == []
