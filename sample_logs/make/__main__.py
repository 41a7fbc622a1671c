"""Train again: ``python -m sample_logs.make NAME...``."""

import importlib
import os
import socket
import sys
import tempfile
from pathlib import Path

import torch
import transformers

SAMPLES = Path(__file__).parents[1]


def make(name: str) -> None:
    """Replace the log of one sample by that of a fresh training."""
    transformers.set_seed(0)
    logs = SAMPLES / name
    logs.mkdir(exist_ok=True)
    for old in [*logs.glob("events.out.tfevents.*"), *logs.glob("*.jsonl")]:
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:  # checkpoints and the like go there
        os.chdir(scratch)
        importlib.import_module(f"sample_logs.make.{name.replace('-', '_')}").train(logs)


socket.gethostname = lambda: "localhost"  # event files are named for their machine
torch.set_num_threads(1)
for sample in sys.argv[1:]:
    make(sample)
