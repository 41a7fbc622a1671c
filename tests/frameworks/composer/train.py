"""A small classifier of synthetic points trained by Composer 0.32.1 (torch 2.13.0).

Logs to TensorBoard, a file and the console; its own callbacks add learning rate, norms and speed.
"""

import socket
import sys
from pathlib import Path

import torch
from composer import Trainer
from composer.callbacks import LRMonitor, OptimizerMonitor, SpeedMonitor
from composer.loggers import FileLogger, TensorboardLogger
from composer.models import ComposerClassifier
from composer.optim import CosineAnnealingWithWarmupScheduler, DecoupledAdamW
from torch.utils.data import DataLoader, TensorDataset

socket.gethostname = lambda: "localhost"

CLASSES = 4


def points(count: int) -> DataLoader:
    """Noisy points around one centre for each class."""
    label = torch.randint(CLASSES, (count,))
    return DataLoader(TensorDataset(torch.eye(CLASSES)[label] + 0.6 * torch.randn(count, CLASSES), label), 32)


def main(directory: Path, batches: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(CLASSES, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES))
    model = ComposerClassifier(network, num_classes=CLASSES)
    Trainer(
        model=model,
        train_dataloader=points(32 * 50),
        eval_dataloader=points(320),
        max_duration=f"{batches}ba",
        eval_interval="20ba",
        optimizers=DecoupledAdamW(model.parameters(), lr=3e-3),
        schedulers=CosineAnnealingWithWarmupScheduler(t_warmup="5ba"),
        step_schedulers_every_batch=True,
        callbacks=[LRMonitor(), OptimizerMonitor(log_optimizer_metrics=False), SpeedMonitor(window_size=5)],
        loggers=[
            TensorboardLogger(str(directory / "tensorboard"), flush_interval=1000),
            FileLogger(str(directory / "{run_name}" / "logs-rank{rank}.txt")),
        ],
        run_name="classifier",
        log_to_console=True,
        progress_bar=False,
        console_log_interval="2ba",
        console_stream="stdout",
        device="cpu",
        seed=0,
    ).fit()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
