"""What a watch of live runs costs with `/metrics` that is asked, rules of one's own, plots, and open pages.

`python -m studies.benchmarks.extras [RUNS]` measures each beside the same watch without it, as
`studies.benchmarks.live` does: 1,000 runs of 20 tags, a step each ten seconds. Prometheus asks each 15
seconds; here it is asked three times as often.
"""

import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import psutil

from studies.benchmarks.live import Extras, measure
from tests.sinks.receiver import Receiver

RUNS = 1_000
POINTS = 1_000
SCRAPE_SECONDS = 5.0
SICK = 50
PAGES = 50
SIGNALS = ("loss", "grad_norm", "reward", "kl", "entropy")
CONDITIONS = ("above = 1e9", "below = -1e9", "rises_by = 1e9", 'missing_for = "30m"')
RULES = "\n".join(
    f'[[rules]]\nname = "{signal} {condition.split()[0]}"\nsignal = "{signal}"\n{condition}'
    for signal in SIGNALS
    for condition in CONDITIONS
)


def asking(port: int) -> Callable[[], None]:
    """Asks `/metrics` again and again, as Prometheus does."""
    due = time.monotonic()

    def ask() -> None:
        nonlocal due
        if time.monotonic() >= due:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read()
            due = time.monotonic() + SCRAPE_SECONDS

    return ask


def sink(receiver: Receiver, *, plots: bool) -> str:
    """A sink that takes pictures."""
    address = receiver.url.replace("http://", "json://")
    return f'[[sinks]]\ntype = "apprise"\nurl = "{address}"\nplots = {str(plots).lower()}\n'


@contextmanager
def looking(state: Path) -> Iterator[None]:
    """`sentinel serve` with many open pages, of which every fifth shows a run."""
    command = [sys.executable, "-m", "sentinel", "serve", "--state-dir", state, "--listen", "0"]
    page = psutil.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        link = page.stdout.readline().strip()
        address, token = link.split("?token=")
        client = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=300)
        runs = re.findall(r'href="(/runs/\w+)"', client.get(address).text)
        heard: list[str] = []
        for number in range(PAGES):
            path = f"{runs[number]}" if number % 5 == 0 else ""
            follow = partial(following, client, f"{address.rstrip('/')}{path}", heard)
            threading.Thread(target=follow, daemon=True).start()
        before = sum(page.cpu_times()[:2])
        begun = time.perf_counter()
        yield
        share = (sum(page.cpu_times()[:2]) - before) / (time.perf_counter() - begun)
        memory = page.memory_info().rss / 1e6
        print(f"{'  the page itself':30} {share:14.1%} {memory:12.0f}  {len(heard)} changes came")
    finally:
        page.kill()
        page.wait()


def following(client: httpx.Client, address: str, heard: list[str]) -> None:
    """What a browser does: it gets a page, and of a run the page again whenever that changed."""
    with suppress(httpx.HTTPError):
        client.get(address)
        _follow(client, address, heard)


def _follow(client: httpx.Client, address: str, heard: list[str]) -> None:
    with client.stream("GET", f"{address}/events?since=1") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                heard.append(line)
                if "/runs/" in address:
                    client.get(address)


@contextmanager
def settings() -> Iterator[dict[str, Extras]]:
    """What is measured, by name."""
    with Receiver() as receiver:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        yield {
            "nothing else": Extras(),
            f"/metrics each {SCRAPE_SECONDS:.0f} s": Extras(f"listen = {port}\n", asking(port)),
            f"{len(SIGNALS) * len(CONDITIONS)} rules of one's own": Extras(RULES),
            f"{SICK} incidents": Extras(sink(receiver, plots=False), sick=SICK),
            f"{SICK} incidents with plots": Extras(sink(receiver, plots=True), sick=SICK),
            f"{PAGES} open pages": Extras(beside=looking),
        }
        print(f"{len(receiver.received)} messages came")


def main(runs: int) -> None:
    print(f"{'watch of ' + str(runs) + ' runs, and':30} {'CPU of a core':>14} {'resident MB':>12}")
    with settings() as chosen:
        for name, extras in chosen.items():
            _, share, memory, _ = measure(runs, POINTS, 0, extras)
            print(f"{name:30} {share:14.1%} {memory:12.0f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
