"""A small classifier under fastai's Learner and its one-cycle schedule.

fastai 2.8.12, torch 2.14.1. Writes CSVLogger's history.csv and TensorBoard event files.
"""

import socket
import sys
from pathlib import Path

socket.gethostname = lambda: "localhost"

import torch  # noqa: E402
from fastai.callback.progress import CSVLogger  # noqa: E402
from fastai.callback.tensorboard import TensorBoardCallback  # noqa: E402
from fastai.data.core import DataLoaders  # noqa: E402
from fastai.data.load import DataLoader  # noqa: E402
from fastai.learner import Learner  # noqa: E402
from fastai.metrics import accuracy  # noqa: E402
from fastai.torch_core import set_seed  # noqa: E402


def main(log):
    set_seed(0)
    torch.set_num_threads(1)
    points = torch.rand(800, 2)
    data = list(zip(points, (points.sum(1) * 1.5).long(), strict=True))
    loaders = DataLoaders(
        DataLoader(data[:640], bs=32, shuffle=True, num_workers=0),
        DataLoader(data[640:], bs=32, num_workers=0),
    )
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    learner = Learner(loaders, model, loss_func=torch.nn.CrossEntropyLoss(), metrics=accuracy, path=log)
    board = TensorBoardCallback(log / "tensorboard", trace_model=False, log_preds=False)
    learner.fit_one_cycle(8, 0.01, cbs=[CSVLogger(), board])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
