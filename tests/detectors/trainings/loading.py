"""A small model whose samples are unpacked for each step, by the training itself or before it.

python -m tests.detectors.trainings.loading sick > tests/detectors/trainings/loading-sick.jsonl
"""

import json
import pickle
import sys
import time
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Packed(Dataset):
    """Images that are packed. ``ready`` unpacks all of them at once."""

    def __init__(self, ready: bool):
        torch.manual_seed(0)
        self.labels = torch.randint(4, (256,)).tolist()
        self.packed = [
            zlib.compress(pickle.dumps(torch.randn(3, 96, 96) + label), 1) for label in self.labels
        ]
        self.ready = [self._unpacked(index) for index in range(256)] if ready else None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return (self.ready[index] if self.ready else self._unpacked(index)), self.labels[index]

    def _unpacked(self, index: int) -> torch.Tensor:
        return pickle.loads(zlib.decompress(self.packed[index]))


def train(ready: bool) -> None:
    """Train for a hundred steps, and log the share of each that waited for its batch."""
    loader = DataLoader(Packed(ready), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(432, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    while step < 112:
        begun = time.perf_counter()
        for images, labels in loader:
            loaded = time.perf_counter()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            ended = time.perf_counter()
            step += 1
            waited = 100 * (loaded - begun) / (ended - begun)
            logged = {"loss": round(loss.item(), 4), "time_metrics/data_loading(%)": round(waited, 2)}
            print(json.dumps({"step": step, **logged}))
            begun = ended


if __name__ == "__main__":
    train(sys.argv[1] == "healthy")
