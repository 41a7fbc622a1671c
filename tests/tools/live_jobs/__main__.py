"""Real trainings by real frameworks, watched by `sentinel watch` from before the first begins.

`python -m tests.tools.live_jobs` needs torch, transformers, trl, datasets, lightning, stable-baselines3,
gymnasium, keras and wandb, and takes some minutes. What sentinel has to make of each log, without any
configuration but for the silence that is allowed, stands in ``EXPECTED``. All jobs are healthy but for
``broken``, of which the receiver has to hear while it runs. The end of a training is no trouble: of those
that are killed it has to hear, and of no other.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import orjson

from sentinel.common.errors import SentinelError
from sentinel.detectors.discovery import all_detectors
from sentinel.replays.listing import list_runs
from sentinel.report.json import listing_document
from sentinel.runs.log import StoredRun
from sentinel.runs.state_codec import unpacked
from sentinel.storage.store import Store
from tests.sinks.receiver import Receiver
from tests.tools.live_jobs import jobs

SENTINEL = [sys.executable, "-m", "sentinel"]
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "KERAS_BACKEND": "torch",
    "PYTHONPATH": str(Path(__file__).parents[3]),
    "PYTHONUNBUFFERED": "1",
    "WANDB_MODE": "offline",
}
SILENCES = {0.0: "running", 20 * 60.0: "silent", 2 * 86400.0: "lost"}  # seconds after the last job
TROUBLE = re.compile(r"^\S+Z (WARNING|ERROR) |^Traceback")  # in what the watch logs
KILLED_BYTES = 8 << 15  # W&B writes whole blocks of 32 KiB
MAX_SECONDS = 600.0  # of a job
SILENT_SECONDS = 20.0  # that are always allowed, in place of ten minutes
LATE_SECONDS = 10.0  # at most that much later than it is written the watch has read all, also of new logs


class Expected(NamedTuple):
    """What sentinel has to make of a log, and whether the log tells that its run finished."""

    source: str
    framework: str | None
    signals: set[str]
    finishes: bool


PLAIN = {"grad_norm", "learning_rate", "loss"}
TRAINER = PLAIN | {"epoch", "eval_loss"}
LIGHTNING = TRAINER | {"layer_grad_norm"}
KERAS = {"accuracy", "epoch", "eval_accuracy", "eval_loss", "learning_rate", "loss"}
GRPO = {
    *("clip_fraction", "clipped_completion_ratio", "completion_length", "completion_length_max"),
    *("entropy", "epoch", "frac_reward_zero_std", "grad_norm", "kl", "learning_rate", "num_tokens"),
    *("policy_loss", "reward", "reward_function", "reward_std", "step_time", "terminated_length"),
}
PPO = {
    *("approx_kl", "clip_fraction", "clip_range", "episode_length", "explained_variance", "learning_rate"),
    *("policy_entropy", "policy_loss", "reward", "value_loss"),
}
EXPECTED = {
    "hf_trainer/tensorboard": Expected("tensorboard", "hf-trainer", TRAINER, True),
    "hf_trainer/output": Expected("trainer_state", "hf-trainer", TRAINER | {"total_steps"}, True),
    "hf_trainer/wandb/*": Expected("wandb", "hf-trainer", TRAINER, True),
    "hf_trainer/console.log": Expected("console", "hf-trainer", TRAINER, True),
    "trl_grpo/tensorboard": Expected("tensorboard", "trl-grpo", GRPO, True),
    "trl_grpo/output": Expected("trainer_state", "trl-grpo", GRPO | {"total_steps"}, True),
    "trl_grpo/console.log": Expected("console", "trl-grpo", GRPO, True),
    "lightning/*/metrics.csv": Expected("csv", "lightning", LIGHTNING, False),
    "lightning/lightning_logs/version_?": Expected("tensorboard", "lightning", LIGHTNING, False),
    "stable_baselines": Expected("tensorboard", "sb3", PPO, False),
    "stable_baselines/progress.csv": Expected("csv", "sb3", PPO, False),
    "stable_baselines/progress.json": Expected("jsonl", "sb3", PPO, False),
    "stable_baselines/monitors/*": Expected("csv", "monitor", {"episode_length", "reward"}, False),
    "keras/training.csv": Expected("csv", "keras", KERAS, False),
    "wandb_killed/wandb/*": Expected("wandb", None, PLAIN, False),
    "broken": Expected("tensorboard", None, PLAIN, False),
}
JOBS = list(dict.fromkeys(pattern.split("/")[0] for pattern in EXPECTED))
DETECTORS = [*all_detectors().values()]
INCIDENTS = {("broken", "flat-loss-at-init")}
OF_PROCESSES = {("broken", "run-crashed")}  # what only a watch can know


def listed(directory: Path, runs: Path, later: float = 0.0) -> dict[str, dict]:
    """What `sentinel runs` would say some seconds later of the logs under a directory, by path."""
    try:
        listing = list_runs([directory], {}, DETECTORS, time.time() + later)
    except SentinelError:
        return {}  # as long as there is no log
    told = listing_document(listing)["runs"]
    return {str(Path(run["path"]).relative_to(runs)): run for run in told}


def expected(path: str) -> Expected | None:
    return next((right for pattern, right in EXPECTED.items() if fnmatch(path, pattern)), None)


def faults(path: str, run: dict, state: str) -> Iterator[str]:
    """What is not as expected of a run that should be in some state."""
    if (right := expected(path)) is None:
        yield f"{path}: no log of the format {run['source']} was expected here"
        return
    for what in ("source", "framework", "signals"):
        found = set(run[what]) if what == "signals" else run[what]
        if found != getattr(right, what):
            yield f"{path}: {what} should be {getattr(right, what)} and is {found}"
    if run["state"] != state:
        yield f"{path}: should be {state} and is {run['state']}: {run['state_evidence']}"


def follow(name: str, runs: Path, enough: Callable[[], bool] | None) -> Iterator[str]:
    """Let a job run to its end, or kill it when that is enough; gives what was wrong while it ran."""
    directory = runs / name
    directory.mkdir()
    with open(directory / "console.log", "wb") as console:
        job = subprocess.Popen(
            [sys.executable, "-m", "tests.tools.live_jobs", name, str(directory)],
            stdout=console,
            stderr=subprocess.STDOUT,
            env=os.environ | ENVIRONMENT,
        )
    wrong: dict[str, list[str]] = {}  # by run; one that was once seen as it should be is not looked at again
    late = False
    deadline = time.monotonic() + MAX_SECONDS
    while job.poll() is None:
        for path, run in listed(directory, runs).items():
            if run["state"] != "finished" and wrong.get(path) != []:
                wrong[path] = list(faults(path, run, "running"))
        late = time.monotonic() > deadline
        if late or (enough and enough() and wrong and not any(wrong.values())):
            job.kill()
            job.wait()
        time.sleep(0.5)
    if late:
        yield f"{name}: not at its end after {MAX_SECONDS:.0f} s"
    yield from (fault for found in wrong.values() for fault in found)
    for pattern in EXPECTED:
        if pattern.split("/")[0] == name and not any(fnmatch(path, pattern) for path in wrong):
            yield f"{pattern}: not seen while it ran"
    if job.returncode != (-9 if enough else 0):
        yield f"{name}: ended with {job.returncode}: {(directory / 'console.log').read_text()[-500:]}"


def aftermath(runs: Path, state: Path) -> Iterator[str]:
    """What is wrong when all jobs have ended and the watch was stopped."""
    for seconds, silent in SILENCES.items():
        for path, run in listed(runs, runs, seconds).items():
            right = expected(path)
            yield from faults(path, run, "finished" if right and right.finishes else silent)
    with Store(state) as store:
        paths = {row.id: str(Path(row.path).relative_to(runs)) for row in store.runs()}
        facts = {
            path: StoredRun.from_state(unpacked(store.run_state(run) or b"")).metadata
            for run, path in paths.items()
        }
        incidents = {(paths[incident.run], incident.detector) for incident in store.incidents()}
    command = [*SENTINEL, "replay", str(runs), "--format", "json"]
    replay = orjson.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    replayed = {str(Path(run["path"]).relative_to(runs)): run for run in replay["runs"]}
    again = {(path, incident["detector"]) for path, run in replayed.items() for incident in run["incidents"]}
    for what, found, right in ("watch", incidents, INCIDENTS | OF_PROCESSES), ("replay", again, INCIDENTS):
        if found != right:
            yield f"{what}: should tell of {right} and tells of {found}"
    for path, run in replayed.items():
        if path not in facts or facts[path].points != run["points"]:
            yield f"{path}: the watch did not read the {run['points']} points that a replay reads"


def main() -> None:
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, Receiver() as receiver:
        root = Path(place).resolve()
        runs = root / "runs"
        state = root / "state"
        config = root / "sentinel.toml"
        words = root / "watch.log"
        runs.mkdir()
        config.write_text(
            'paths = ["runs"]\nstate_dir = "state"\n'
            f"[detectors.stream-stall]\nleast_seconds = {SILENT_SECONDS}\n"
            f"[detectors.ended-or-stuck]\nleast_seconds = {SILENT_SECONDS}\n"
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n[[sinks]]\ntype = "terminal"\n'
        )
        enough = {
            "wandb_killed": lambda: any(
                log.stat().st_size >= KILLED_BYTES for log in runs.glob("wandb_killed/wandb/*/*.wandb")
            ),
            "broken": lambda: any(
                orjson.loads(request.body)["run"]["run"] == "broken" for request in receiver.received
            ),
        }
        with words.open("wb") as output:
            watch = subprocess.Popen([*SENTINEL, "watch", "--config", str(config)], stderr=output)
        try:
            for name in JOBS:
                begun = time.monotonic()
                wrong += follow(name, runs, enough.get(name))
                print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
            time.sleep(SILENT_SECONDS + 2 * LATE_SECONDS)
        finally:
            watch.terminate()
            watch.wait()
        if watch.returncode != 0:
            wrong.append(f"the watch ended with {watch.returncode}")
        said = words.read_text()
        wrong += [line for line in said.splitlines() if TROUBLE.search(line)]
        wrong += aftermath(runs, state)
        subprocess.run([*SENTINEL, "runs", str(runs)], check=True)
        print(said)
    sys.exit("\n".join(dict.fromkeys(wrong)) or None)


def train(name: str, directory: Path) -> None:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as scratch:  # for what else a job leaves behind
        os.chdir(scratch)
        getattr(jobs, name)(directory)


if __name__ == "__main__":
    train(sys.argv[1], Path(sys.argv[2])) if len(sys.argv) > 1 else main()
