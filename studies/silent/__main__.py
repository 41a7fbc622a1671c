"""Train each silent error and its healthy twin with three seeds, judge the logs, and write the table.

    python -m studies.silent [NAME...]     trains some errors again, or all; the others keep their logs

It needs torch and tensorboard beside sentinel: `.venv/trainers/bin/python`.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from sentinel.config.file import Config
from sentinel.detectors.severity import Severity
from sentinel.replays.replaying import replay
from studies.silent.error import Run, SilentError, all_errors
from studies.silent.page import RESULTS, Outcome, Told, read, write

SEEDS = (1, 2, 3)


def told(folder: Path) -> list[list[str]]:
    """Of each warning or worse its detector and its causes, the likeliest first; the first incident first."""
    (run,) = replay([folder], Config(), lambda *_: None).runs
    incidents = [one for one in run.incidents.values() if one.severity >= Severity.WARNING]
    ordered = sorted(incidents, key=lambda one: (one.fired_step, one.detector))
    return [[one.detector, *(cause.id for cause in one.causes)] for one in ordered]


def trained(error: SilentError, folder: Path) -> Outcome:
    """What is told of each seed: broken and healthy, with probes and without."""
    found = []
    for seed in SEEDS:
        said = {}
        for kind in ("broken", "healthy"):
            place = folder / f"{kind}-{seed}"
            run = Run(place, kind == "broken", seed)
            error.train(run)
            run.close()
            said |= {f"{kind} {log}": told(place / log) for log in ("with", "without")}
        found.append(Told(**{name.replace(" ", "_"): of for name, of in said.items()}))
        print(f"{error.name} {seed}: {json.dumps(said)}", flush=True)
    return Outcome(error.name, error.title, error.catalogue, error.is_held_out, found)


def main(names: Sequence[str]) -> None:
    """Train, judge and write."""
    torch.set_num_threads(1)
    known = all_errors()
    results = {outcome.name: outcome for outcome in read()} if RESULTS.exists() else {}
    for name in names or known:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = trained(known[name], Path(folder))
        write(results[name] for name in known if name in results)


if __name__ == "__main__":
    main(sys.argv[1:])
