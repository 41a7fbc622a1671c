"""Real trainings that end, or are wrecked, while `sentinel watch` looks on: what is told, and how soon.

`python -m tests.tools.wrecked_jobs [JOB...]` needs torch, transformers, accelerate, lightning and wandb, and
takes some minutes. Each job says when its evidence has reached the log; the watch has to tell in time, and
name the right cause first. An ending that the log only suggests is believed after a minute. Silence has no
evidence but time: there the limit is the rule's own, which the configuration shortens.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.sinks.receiver import Receiver
from tests.tools.ear import SENTINEL, Ear

LATE_SECONDS = 10.0
STALL_SECONDS = 30.0  # in place of ten minutes
QUIET_SECONDS = 60.0  # before an ending is believed that the log only suggests
REVIEW_SECONDS = 10.0  # between two looks at what time alone brings
MAX_SECONDS = 240.0  # of a job
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(Path(__file__).parents[3]),
    "PYTHONUNBUFFERED": "1",
    "WANDB_MODE": "offline",
}
PREEMPTION = b"slurmstepd: error: *** JOB 42 ON n3 CANCELLED AT 2026-01-01T03:00:00 DUE TO PREEMPTION ***\n"


def preempt(job: subprocess.Popen, directory: Path) -> None:
    """Do as SLURM does: say so in the job's output, and ask it to end."""
    with (directory / "console.log").open("ab") as console:
        console.write(PREEMPTION)
    job.terminate()
    job.wait()


def remove(job: subprocess.Popen, directory: Path) -> None:
    """Take the directory away, as a file system that is unmounted."""
    shutil.rmtree(directory)


class Expected(NamedTuple):
    """Any of these detectors has to tell within some seconds, and cite one of these catalogue entries first.

    ``from_outside`` is done to the job when its evidence is there. A job that ``resumes`` is started again
    once that was told, and its incident has to be over then.
    """

    detectors: set[str]
    causes: set[str]
    within_seconds: float = LATE_SECONDS
    from_outside: Callable[[subprocess.Popen, Path], None] | None = None
    resumes: bool = False


NAN = {"GE-nan", "A-nan-explode", "A-nan-debug"}
SILENCE = Expected({"stream-stall"}, {"A-err-hang", "DP3"}, STALL_SECONDS + REVIEW_SECONDS + LATE_SECONDS)
SUGGESTED = QUIET_SECONDS + REVIEW_SECONDS + LATE_SECONDS
EXPECTED = {
    "nan_torch": Expected({"non-finite-metric"}, NAN),
    "nan_hf_trainer": Expected({"non-finite-metric"}, NAN),
    "nan_lightning": Expected({"non-finite-metric"}, NAN),
    "divergence": Expected({"loss-divergence", "loss-spike"}, {"GE", "G1", "L6", "O4", "O9", "O19"}),
    "hang": SILENCE,
    "exception": Expected({"console-error"}, set()),
    "out_of_memory": Expected({"console-error"}, {"A-oom", "A-err-oom"}),
    "killed": Expected({"run-crashed"}, {"A-err-exit9"}, REVIEW_SECONDS + LATE_SECONDS),
    "vanished": SILENCE._replace(from_outside=remove),
    "crashed": Expected({"run-crashed"}, set(), REVIEW_SECONDS + LATE_SECONDS),
    "finished": Expected({"run-finished"}, set(), SUGGESTED),
    "preempted": Expected({"run-preempted"}, set(), SUGGESTED, preempt, resumes=True),
}


def start(name: str, directory: Path, evidence: Path) -> subprocess.Popen:
    """A job in a process of its own, whose output goes to a file beside its log."""
    command = [sys.executable, "-m", "tests.tools.wrecked_jobs.train", name, str(directory), str(evidence)]
    with open(directory / "console.log", "ab") as console:
        return subprocess.Popen(
            command, stdout=console, stderr=subprocess.STDOUT, env=os.environ | ENVIRONMENT
        )


def follow(name: str, runs: Path, ear: Ear, evidence: Path) -> Iterator[str]:
    """Let a job run until the watch has told of it; gives what was not as it should be."""
    right = EXPECTED[name]
    directory = runs / name
    job = start(name, directory, evidence)
    begun = time.monotonic()
    while not evidence.exists() and time.monotonic() - begun < MAX_SECONDS:
        ear.listen(name)
        time.sleep(0.1)
    seen = time.monotonic()
    if right.from_outside:
        right.from_outside(job, directory)
    told = ear.wait(name, lambda one: one.incident["detector"] in right.detectors, 3 * right.within_seconds)
    if right.resumes and told:
        job = start(name, directory, evidence)
        ended = ear.wait(name, lambda one: one.event == "resolved", MAX_SECONDS)
        yield from [] if ended else [f"{name}: nobody heard that it went on"]
    job.kill()
    job.wait()
    print(f"{name}, seconds after its evidence:")
    for one in ear.listen(name):
        print(f"    {one.at - seen:+6.1f} {one}")
    if told is None:
        yield f"{name}: nothing told"
        return
    print(f"    causes: {', '.join(told.incident['catalogue'])}", flush=True)
    # A machine that is busy makes pauses, and the rule allows ten times the longer ones.
    allowed = told.incident["evidence"].get("usual_seconds", 0.0) + REVIEW_SECONDS + LATE_SECONDS
    if told.at - seen > max(allowed, right.within_seconds):
        yield f"{name}: told {told.at - seen:.1f} s after its evidence"
    if right.causes and told.incident["catalogue"][:1] and told.incident["catalogue"][0] not in right.causes:
        yield f"{name}: names {told.incident['catalogue'][0]} first"


def main(names: list[str]) -> None:
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, Receiver() as receiver:
        root = Path(place).resolve()
        ear = Ear(receiver)
        runs = root / "runs"
        config = root / "sentinel.toml"
        for name in names:  # each is a place of its own, because those that stopped say nothing of the next
            (runs / name).mkdir(parents=True)
        config.write_text(
            f'paths = {[f"runs/{name}" for name in names]}\nstate_dir = "state"\n'
            f"[detectors.stream-stall]\nleast_seconds = {STALL_SECONDS}\n"
            f"[detectors.ended-or-stuck]\nleast_seconds = {STALL_SECONDS}\n"
            "[detectors.run-finished]\nenabled = true\n"
            f'[[sinks]]\ntype = "webhook"\nname = "all"\nurl = "{receiver.url}"\n'
            f'[[sinks]]\ntype = "webhook"\nname = "ends"\nurl = "{receiver.url}"\n'
            'min_severity = "info"\ndetectors = ["run-finished", "run-preempted"]\n'
            '[[sinks]]\ntype = "terminal"\n'
        )
        watch = subprocess.Popen([*SENTINEL, "watch", "--config", str(config)], stderr=sys.stderr)
        try:
            for name in names:
                wrong += follow(name, runs, ear, root / f"{name}.evidence")
        finally:
            watch.terminate()
            watch.wait()
        if watch.returncode != 0:
            wrong.append(f"the watch ended with {watch.returncode}")
        print("everything told, in order:")
        ear.listen("")
        for one in ear.heard:
            print(f"    {one.run}: {one.event} {one.incident['detector']}")
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main(sys.argv[1:] or list(EXPECTED))
