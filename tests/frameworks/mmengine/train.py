"""A small classifier of points in a plane under MMEngine's Runner, once in epochs and once in iterations.

mmengine 0.10.7, torch 2.13.0. Each writes a console log, scalars as JSON and TensorBoard event files.
"""

import socket
import sys
from pathlib import Path

socket.gethostname = lambda: "localhost"

import torch  # noqa: E402
from mmengine.evaluator import BaseMetric, Evaluator  # noqa: E402
from mmengine.model import BaseModel  # noqa: E402
from mmengine.runner import Runner  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402


class Classifier(BaseModel):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, points, kinds, mode):
        scores = self.layers(points)
        return {"loss_cls": cross_entropy(scores, kinds)} if mode == "loss" else (scores, kinds)


class Accuracy(BaseMetric):
    def process(self, data_batch, data_samples):  # noqa: ARG002
        scores, kinds = data_samples
        self.results.append(((scores.argmax(1) == kinds).sum().item(), len(kinds)))

    def compute_metrics(self, results):
        right, total = map(sum, zip(*results, strict=True))
        return {"accuracy/top1": 100 * right / total}


def loader(count, batch_size, shuffle):
    points = torch.rand(count, 2)
    kinds = (points.sum(1) * 1.5).long()
    return {
        "dataset": torch.utils.data.TensorDataset(points, kinds),
        "batch_size": batch_size,
        "sampler": {"type": "DefaultSampler", "shuffle": shuffle},
        "collate_fn": {"type": "default_collate"},
    }


def train(place, by_epoch):
    torch.manual_seed(0)
    count = {"max_epochs": 6} if by_epoch else {"max_iters": 240}
    Runner(
        model=Classifier(),
        work_dir=str(place),
        train_dataloader=loader(640, 16, shuffle=True),
        val_dataloader=loader(160, 16, shuffle=False),
        train_cfg={"by_epoch": by_epoch, **count, "val_interval": 1 if by_epoch else 80},
        val_cfg={},
        val_evaluator=Evaluator(Accuracy()),
        optim_wrapper={"optimizer": {"type": "Adam", "lr": 0.01}, "clip_grad": {"max_norm": 5}},
        param_scheduler={"type": "CosineAnnealingLR", "T_max": 240, "by_epoch": False},
        default_hooks={"logger": {"type": "LoggerHook", "log_metric_by_epoch": by_epoch}},
        log_processor={"by_epoch": by_epoch},
        visualizer={
            "type": "Visualizer",
            "vis_backends": [{"type": "LocalVisBackend"}, {"type": "TensorboardVisBackend"}],
        },
        randomness={"seed": 0},
        experiment_name=place.name,
    ).train()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for kind in ("epochs", "iterations"):
        train(Path(sys.argv[1]) / kind, by_epoch=kind == "epochs")
