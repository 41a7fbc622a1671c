"""Real trainings that are wrecked while `sentinel watch` looks on: what is told, and how soon.

`python -m tests.wrecked_jobs [JOB...]` needs torch, transformers, accelerate and lightning, and takes some
minutes. Each job says when its evidence has reached the log; the watch has to tell within ten seconds, and
name the right cause first. Silence has no evidence but time: there the limit is the rule's own, which
the configuration shortens.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import orjson

from tests.sinks.receiver import Receiver

SENTINEL = [sys.executable, "-m", "sentinel"]
LATE_SECONDS = 10.0
STALL_SECONDS = 30.0  # in place of ten minutes
LONGEST_SECONDS = 240.0  # of a job
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(Path(__file__).parents[2]),
    "PYTHONUNBUFFERED": "1",
}


class Expected(NamedTuple):
    """Any of these detectors has to tell, and cite one of these catalogue entries first."""

    detectors: set[str]
    causes: set[str]
    silence: bool = False


NAN = {"GE-nan", "A-nan-explode", "A-nan-debug"}
EXPECTED = {
    "nan_torch": Expected({"non-finite-metric"}, NAN),
    "nan_hf_trainer": Expected({"non-finite-metric"}, NAN),
    "nan_lightning": Expected({"non-finite-metric"}, NAN),
    "divergence": Expected({"loss-divergence", "loss-spike"}, {"GE", "G1", "L6", "O4", "O9", "O19"}),
    "hang": Expected({"stream-stall"}, {"A-err-hang", "DP3"}, silence=True),
    "exception": Expected({"console-error"}, set()),
    "out_of_memory": Expected({"console-error"}, {"A-oom", "A-err-oom"}),
    "killed": Expected({"stream-stall"}, {"A-err-hang", "DP3"}, silence=True),
}


def follow(name: str, runs: Path, receiver: Receiver, evidence: Path) -> list[str]:
    """Let a job run until the watch has told of it; gives what was not as it should be."""
    right, directory = EXPECTED[name], runs / name
    directory.mkdir()
    with open(directory / "console.log", "wb") as console:
        command = [sys.executable, "-m", "tests.wrecked_jobs.train", name, str(directory), str(evidence)]
        job = subprocess.Popen(
            command, stdout=console, stderr=subprocess.STDOUT, env=os.environ | ENVIRONMENT
        )
    begun, seen, told, told_at = time.monotonic(), None, None, 0.0
    allowed = LATE_SECONDS + (STALL_SECONDS if right.silence else 0.0)
    while (told is None or seen is None) and time.monotonic() - begun < LONGEST_SECONDS:
        time.sleep(0.1)
        now = time.monotonic()
        if seen is None and evidence.exists():
            seen = now
        for request in tuple(receiver.received) if told is None else ():
            body = orjson.loads(request.body)
            if body["run"]["run"].startswith(name) and body["incident"]["detector"] in right.detectors:
                told, told_at = body["incident"], now
        if seen is not None and now - seen > 3 * allowed:
            break
    job.kill()
    job.wait()
    if told is None or seen is None:
        return [f"{name}: nothing told; the console ends {(directory / 'console.log').read_text()[-300:]!r}"]
    print(f"{name}: {told_at - seen:+.1f} s after its evidence: {told['detector']}: {told['summary']}")
    print(f"    causes: {', '.join(told['catalogue'])}", flush=True)
    wrong = [f"{name}: told {told_at - seen:.1f} s after its evidence"] if told_at - seen > allowed else []
    if right.causes and told["catalogue"][:1] and told["catalogue"][0] not in right.causes:
        wrong.append(f"{name}: names {told['catalogue'][0]} first")
    return wrong


def main(names: list[str]) -> None:
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, Receiver() as receiver:
        root = Path(place).resolve()
        runs, config = root / "runs", root / "sentinel.toml"
        runs.mkdir()
        config.write_text(
            'paths = ["runs"]\nstate_dir = "state"\n'
            f"[detectors.stream-stall]\nleast_seconds = {STALL_SECONDS}\n"
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n'
        )
        watch = subprocess.Popen([*SENTINEL, "watch", "--config", str(config)], stderr=sys.stderr)
        try:
            for name in names:
                wrong += follow(name, runs, receiver, root / f"{name}.evidence")
        finally:
            watch.terminate()
            watch.wait()
        if watch.returncode != 0:
            wrong.append(f"the watch ended with {watch.returncode}")
        bodies = [orjson.loads(request.body) for request in receiver.received]
        print("everything told:")
        for body in bodies:
            print(f"    {body['event']} {body['run']['run']} {body['incident']['detector']}")
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main(sys.argv[1:] or list(EXPECTED))
