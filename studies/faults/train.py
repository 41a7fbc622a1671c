"""The side of the trainings: `python -m studies.faults.train LOGS [NAME...]` trains each fault and its
twins.

It needs what `requirements/trainers.txt` lists, and not sentinel. ``LOGS/runs.json`` says what each log
is.
"""

import contextlib
import json
import os
import random
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from studies.faults.fault import HEALTHY, STRENGTHS, Fault, all_faults
from studies.faults.truth import MANIFEST, Run


def runs(faults: Iterable[Fault]) -> Iterator[tuple[Fault, float, Run]]:
    """Every training: each strength with a seed of its own, and a healthy twin with the same seed."""
    for fault in faults:
        for index, strength in enumerate(STRENGTHS):
            for healthy in False, True:
                path = f"{fault.name}/{strength}{'-twin' if healthy else ''}"
                run = Run(
                    path,
                    fault.name,
                    fault.title,
                    strength,
                    index,
                    healthy,
                    fault.catalogue,
                    fault.visible[index],
                )
                yield fault, HEALTHY if healthy else fault.strengths[index], run


def train(fault: Fault, strength: float, directory: Path) -> None:
    """Train in a scratch directory, with the log in ``directory``."""
    directory.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch), fault.logger(directory) as log:
        fault.train(strength, log)


def main(logs: Path, names: list[str]) -> None:
    import numpy as np
    import torch

    torch.set_num_threads(1)
    known = all_faults()
    chosen = [known[name] for name in names or known]
    manifest = logs / MANIFEST
    kept = json.loads(manifest.read_text()) if names and manifest.exists() else []
    trained = {one["path"]: one for one in kept}
    for fault, strength, run in runs(chosen):
        begun = time.monotonic()
        shutil.rmtree(logs / run.path, ignore_errors=True)
        for seeded in random.seed, np.random.seed, torch.manual_seed:
            seeded(run.seed)
        train(fault, strength, logs / run.path)
        print(f"{run.path}: {time.monotonic() - begun:.0f} s", flush=True)
        trained[run.path] = asdict(run)
        manifest.write_text(json.dumps([*trained.values()]))


if __name__ == "__main__":
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "WANDB_SILENT": "true"}
    socket.gethostname = lambda: "localhost"  # event files are named for their machine
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
