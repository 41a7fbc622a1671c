"""A training that a supervisor starts again. Sick: it was killed while it wrote its checkpoint.

python -m tests.detectors.trainings.resumed sick > tests/detectors/trainings/resumed-sick.log 2>&1
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn
from torch.nn.functional import cross_entropy

STEPS = 40
STARTS = 3


def train(checkpoint: Path) -> None:
    """Go on from the checkpoint for some steps, and write it anew."""
    torch.manual_seed(0)
    centres = torch.randn(10, 32)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        begin = state["step"]
    for step in range(begin + 1, begin + STEPS + 1):
        labels = torch.randint(10, (64,))
        loss = cross_entropy(model(centres[labels] + torch.randn(64, 32)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)
    torch.save({"model": model.state_dict(), "step": begin + STEPS}, checkpoint)


def supervise(cut: bool) -> None:
    """Start it three times. ``cut`` leaves half of the first checkpoint, as a full disk does."""
    with TemporaryDirectory() as directory:
        checkpoint = Path(directory) / "last.pt"
        for start in range(STARTS):
            done = subprocess.run(
                [sys.executable, __file__, "train", checkpoint], check=False, capture_output=True, text=True
            )
            told = done.stderr.replace(f"{Path(__file__).parent}/", "")
            print(done.stdout + re.sub(r'"/\S*/(?=site-packages/)', '"', told), end="", flush=True)
            if cut and start == 0:
                checkpoint.write_bytes(checkpoint.read_bytes()[: checkpoint.stat().st_size // 2])


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(Path(sys.argv[2]))
    else:
        supervise(cut=sys.argv[1] == "sick")
