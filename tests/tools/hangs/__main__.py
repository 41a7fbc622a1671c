"""Hangs of four ranks of real trainings under a real watch: which rank is named, at which line, how soon.

`python -m tests.tools.hangs PYTHON [FAULT...]` needs py-spy, and a Python with PyTorch for the trainings,
which torchrun starts (for `kill` nothing does, because torchrun would end the others). Each fault prints the
seconds from the moment when its silence is long enough, as the configuration has it, or from the death of a
rank; and apart, the seconds from the firing of the rule. The rule fires later where the run had long pauses,
and a watch asks it every ten seconds. The fault `none` is a training that does not hang, of which nothing may
be told in ``minutes`` (`none=60`). Whatever a rank says of itself holds a canary, which no output may show.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.tools.ear import Ear, Heard, watching

WORLD = 4
STALL_SECONDS = 30.0  # in place of ten minutes
LATE_SECONDS = 60.0
TOLD_SECONDS = 2.0  # from the firing of the rule to the message
HANGS_AT = 100  # step
CANARY = "canary-7f3a"
FIRED = "fired:"
TRAIN = Path(__file__).with_name("train.py")
SAYS_WHEN = f"""
import sys, time
from sentinel.watch.process_monitor import ProcessMonitor
ask = ProcessMonitor.hang_diagnosis
def asked(self, watched):
    name = watched.run_pipeline.log.run.path.parent.name
    print("{FIRED}", name, time.monotonic(), file=sys.stderr, flush=True)
    return ask(self, watched)
ProcessMonitor.hang_diagnosis = asked
from sentinel.cli.app import main
main()
"""
"""A watch that says when the rule fires: it then asks where the ranks stand."""
SAID = {
    "loader": "Rank 2 waits for its data loader: both workers are at Data.__getitem__ (train.py:",
    "stop": "Rank 2 is stopped by a signal at stop (train.py:",
    "spin": "Rank 2 is at spin (train.py:",
    "lock": "Rank 2 is at take_lock (train.py:",
    "fifo": "All 4 ranks on this host are at read_shard (train.py:",
    "collective": "Rank 2 is at gather (train.py:",
    "kill": "rank 2 of 4 died: SIGKILL",
    "device": "Rank 2 is waiting for a device",
}
OTHERS = {"fifo": "no single rank is at fault", "kill": "Ranks 0, 1 and 3 still run and wait for it"}
WAIT = "Ranks 0, 1 and 3 wait in backward (train.py:"


@contextmanager
def training(python: str, fault: str, place: Path) -> Iterator[None]:
    """Four ranks on this machine, from torchrun unless one is to be killed."""
    os.mkfifo(place / "shard")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = [str(TRAIN), fault, str(place), str(HANGS_AT), f"{CANARY}-argv"]
    names = {**os.environ, "CANARY": f"{CANARY}-env", "OMP_NUM_THREADS": "1"}
    alone = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(WORLD)}
    launched = ["torch.distributed.run", f"--nproc-per-node={WORLD}", f"--master-port={port}"]
    with (place.parent / f"{place.name}.out").open("w") as out:
        begin = [([python, "-m", *launched, *words], names)]
        if fault == "kill":
            ranks = [alone | {"RANK": str(rank)} for rank in range(WORLD)]
            begin = [([python, *words], names | rank) for rank in ranks]
        some = [subprocess.Popen(command, env=env, stdout=out, stderr=out) for command, env in begin]
        reaper = threading.Thread(target=lambda: [one.wait() for one in some])
        reaper.start()
        try:
            yield
        finally:
            for pid in [pid for one in some for pid in _family(one.pid)]:
                os.kill(pid, signal.SIGKILL)
            reaper.join()


def _family(pid: int) -> list[int]:
    """A process and all below it, the last ones first."""
    found = [pid]
    for one in found:
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return [one for one in reversed(found) if Path(f"/proc/{one}").exists()]


def follow(python: str, fault: str, place: Path, ear: Ear, said_when: Path) -> Iterator[str]:
    """Let ranks hang until the watch has told of it; gives what was not as it should be."""
    log = place / f"{fault}.jsonl"
    with training(python, fault, place):
        silent_since = _silent_since(log)
        allowed = 0.0 if fault == "kill" else STALL_SECONDS
        heard = ear.wait(place.name, lambda one: one.event == "firing", allowed + 2 * LATE_SECONDS)
    if heard is None:
        yield f"{fault}: nothing was told"
        return
    late = heard.at - silent_since - allowed
    said = heard.incident["summary"]
    fired = _fired_at(said_when, place.name)
    after = heard.at - fired if fired else late
    print(f"{fault}, {late:.1f} s late, {after:.1f} s after the rule fired:\n    {heard}", flush=True)
    if not said.startswith(SAID[fault]) and f". {SAID[fault]}" not in said:
        yield f"{fault}: should say {SAID[fault]!r}"
    if OTHERS.get(fault, WAIT) not in said:
        yield f"{fault}: should say of the others {OTHERS.get(fault, WAIT)!r}"
    if late > LATE_SECONDS:
        yield f"{fault}: told {late:.1f} s late"
    if after > TOLD_SECONDS:
        yield f"{fault}: told {after:.1f} s after the rule fired"


def _fired_at(said_when: Path, fault: str) -> float | None:
    """When the rule fired for a run at first, in monotonic seconds; None if it did not."""
    lines = (line.split() for line in said_when.read_text().splitlines() if line.startswith(FIRED))
    return next((float(at) for _, name, at in lines if name == fault), None)


def _silent_since(log: Path) -> float:
    """When a log that grows until then has grown for the last time, in monotonic seconds."""
    while not log.exists() or log.read_bytes().count(b"\n") < HANGS_AT - 1:
        threading.Event().wait(0.05)
    return time.monotonic() - (time.time() - log.stat().st_mtime)


def healthy(python: str, minutes: float, place: Path, ear: Ear) -> Iterator[str]:
    """Let a training run that does not hang; gives what was told of it."""
    with training(python, "none", place):
        threading.Event().wait(60 * minutes)
        heard: list[Heard] = ear.listen(place.name)
    steps = (place / "none.jsonl").read_bytes().count(b"\n")
    print(f"none: {steps} steps in {minutes:g} min, {len(heard)} messages", flush=True)
    yield from (f"none: {one}" for one in heard)
    if ear.wait(place.name, lambda one: one not in heard, LATE_SECONDS) is None:
        yield "none: not even its end was told, so whatever was told before was missed"


def canaries(root: Path, heard: Sequence[Heard]) -> Iterator[str]:
    """Where a canary stands in what the watch wrote or sent."""
    yield from (f"a canary is in {one}" for one in heard if CANARY in repr(one.incident))
    for file in [root / "watch.log", *(root / "state").iterdir()]:
        if file.is_file() and CANARY.encode() in file.read_bytes():
            yield f"a canary is in {file.name}"


def main(python: str, faults: Sequence[str]) -> None:
    wrong: list[str] = []
    rules = "stream-stall", "ended-or-stuck"
    more = "".join(f"[detectors.{rule}]\nleast_seconds = {STALL_SECONDS}\n" for rule in rules)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        places = {fault: root / "runs" / fault.partition("=")[0] for fault in faults}
        for place in places.values():
            place.mkdir(parents=True)
        command = [sys.executable, "-c", SAYS_WHEN]
        with watching(root / "watch", [*places.values()], more, command) as ear:
            for fault, place in places.items():
                name, _, minutes = fault.partition("=")
                if name == "none":
                    wrong += healthy(python, float(minutes or 5), place, ear)
                else:
                    wrong += follow(python, name, place, ear, root / "watch" / "watch.log")
            ear.listen("")
        wrong += canaries(root / "watch", ear.heard)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or [*SAID])
