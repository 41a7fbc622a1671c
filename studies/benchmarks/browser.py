"""What the live page of many runs costs in Chromium: first paint, an update, and the memory of a tab.

`python -m studies.benchmarks.browser` lets a real watch read 2,000 logs, serves them, and opens 20 pages.
The last page is measured while the others are open. Then 20 runs get a NaN, a watch records it, and every
page shows it. An update is what one page takes from the event to the new layout: by the clock, and in CPU
time of its thread. The memory of a tab is what its process holds for itself alone. This is done twice: with
one page in Chromium and 19 connections that only read, as if the other pages were on other people's
machines, and with 20 pages that share the cores of this one. `make test-browser` installs what it needs.

`python -m studies.benchmarks.browser 500 5` measures 500 runs and 5 pages.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from playwright.sync_api import sync_playwright

RUNS = 2_000
PAGES = 20
ILL = 20  # runs whose loss becomes NaN
STEPS = 100
TOKEN = "a token of the benchmark"
SENTINEL = (sys.executable, "-m", "sentinel")
LISTEN = """() => {
    window.took = [];
    const renew = sentinel.table.renew;
    sentinel.table.renew = (...changed) => {
        const begun = performance.now();
        renew(...changed);
        document.body.offsetHeight;  // lays the page out
        window.took.push(performance.now() - begun);
    };
}"""
PAINTS = "performance.getEntriesByName('first-contentful-paint')"


def write(run: Path, steps: range, loss: float | None = None) -> None:
    """Append rows to the log of a run."""
    run.mkdir(parents=True, exist_ok=True)
    with open(run / "metrics.jsonl", "a") as file:
        for step in steps:
            value = 1 + 4 / (step + 1) if loss is None else loss
            row = {"step": step, "train/loss": value, "train/grad_norm": 1 + step % 3, "train/lr": 1e-3}
            file.write(f"{json.dumps(row)}\n")


def watched(root: Path) -> None:
    """Let a watch read what is new."""
    words = ["watch", str(root / "runs"), "--once", "--state-dir", str(root / "state")]
    subprocess.run([*SENTINEL, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of the live page while the block runs."""
    words = ["serve", "--listen", "0", "--state-dir", str(root / "state")]
    served = subprocess.Popen(
        [*SENTINEL, *words], stdout=subprocess.PIPE, text=True, env={**os.environ, "SENTINEL_TOKEN": TOKEN}
    )
    try:
        assert served.stdout
        yield served.stdout.readline().strip()
    finally:
        served.terminate()
        served.wait()


def renderers() -> list[float]:
    """The MB that each tab's process of our browser holds for itself alone."""
    processes = [
        process
        for process in psutil.Process().children(recursive=True)
        if "--type=renderer" in process.cmdline()
    ]
    return [process.memory_full_info().uss / 1e6 for process in processes]


def computed(session: Any) -> float:
    """The milliseconds of CPU that the main thread of a tab has used."""
    told = session.send("Performance.getMetrics")["metrics"]
    return next(1e3 * one["value"] for one in told if one["name"] == "TaskDuration")


@contextmanager
def read_elsewhere(base: str, pages: int) -> Iterator[None]:
    """Connections that get what open pages get, as long as the block runs."""
    client = httpx.Client(base_url=base, follow_redirects=True, timeout=None, verify=False)
    client.get("/", params={"token": TOKEN})
    with ExitStack() as stack, ThreadPoolExecutor(max(pages, 1)) as pool:
        streams = [stack.enter_context(client.stream("GET", "/events?since=0")) for _ in range(pages)]
        for stream in streams:
            pool.submit(stream.read)
        yield
        client.close()


def measure(root: Path, runs: int, pages: int, elsewhere: int) -> tuple[float, float, float, float]:
    """Milliseconds to the paint of the last page, of the longest update by the clock, and of CPU for an
    update of the last page; MB of the largest tab. Further pages are open ``elsewhere``.
    """
    for number in range(runs):
        write(root / "runs" / f"run-{number:04}", range(STEPS))
    watched(root)
    with served(root) as base, read_elsewhere(base, elsewhere), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tabs: list[Any] = []
        for _ in range(pages):
            # The page forbids what the driver of the browser needs in order to wait.
            context = chromium.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)
            tab = context.new_page()
            tab.goto(f"{base}?token={TOKEN}")
            tab.wait_for_function(f"globalThis.sentinel?.table && {PAINTS}.length")
            tab.evaluate(LISTEN)
            tabs.append(tab)
        session = tabs[-1].context.new_cdp_session(tabs[-1])
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = computed(session)
        painted = tabs[-1].evaluate(f"{PAINTS}[0].startTime")
        for number in range(0, runs, max(1, runs // ILL)):
            write(root / "runs" / f"run-{number:04}", range(STEPS, STEPS + 20), float("nan"))
        watched(root)
        for tab in tabs:
            tab.wait_for_function("document.querySelector('#table .badge.critical') !== null")
        update = max(max(tab.evaluate("window.took")) for tab in tabs)
        cpu = (computed(session) - before) / tabs[-1].evaluate("window.took.length")
        memory = max(renderers())
        chromium.close()
    return painted, update, cpu, memory


def main(runs: int = RUNS, pages: int = PAGES) -> None:
    """Measure and print."""
    for here in (1, pages):
        with tempfile.TemporaryDirectory() as place:
            painted, update, cpu, memory = measure(Path(place), runs, here, pages - here)
        print(f"{runs:,} runs in {pages} open pages, {here} of them here")
        print(f"first paint of the last page: {painted:.0f} ms")
        print(
            f"longest update of a page: {update:.0f} ms, {cpu:.0f} ms of CPU for an update of the last page"
        )
        print(f"memory of the largest tab: {memory:.0f} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
