"""A small classifier under Lightning's Trainer, with TensorBoardLogger, CSVLogger and the progress bar.

lightning 2.6.6, torch 2.13.0. Two trainings: `both` logs with two loggers, `printed` with none, so that only
what its bars print is left, in LOG/printed/train.log.
"""

import contextlib
import socket
import sys
from pathlib import Path

socket.gethostname = lambda: "localhost"

import lightning  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch.callbacks import LearningRateMonitor, TQDMProgressBar  # noqa: E402
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402


class Classifier(lightning.LightningModule):
    def __init__(self, learning_rate=0.01):  # noqa: ARG002
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def _score(self, batch, part, **where):
        points, kinds = batch
        scores = self.layers(points)
        loss = cross_entropy(scores, kinds)
        self.log(f"{part}_loss", loss, prog_bar=True, **where)
        self.log(f"{part}_acc", (scores.argmax(1) == kinds).float().mean(), prog_bar=True, **where)
        return loss

    def training_step(self, batch):
        return self._score(batch, "train", on_step=True, on_epoch=True)

    def validation_step(self, batch):
        return self._score(batch, "val")

    def on_before_optimizer_step(self, optimizer):  # noqa: ARG002
        self.log_dict(lightning.pytorch.utilities.grad_norm(self, norm_type=2))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.hparams.learning_rate)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 240)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def train(log, loggers):
    lightning.seed_everything(0)
    points = torch.rand(800, 2)
    data = torch.utils.data.TensorDataset(points, (points.sum(1) * 1.5).long())
    training, validation = torch.utils.data.random_split(data, [640, 160])
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=6,
        log_every_n_steps=5,
        logger=loggers,
        callbacks=[TQDMProgressBar(20), *([LearningRateMonitor()] if loggers else [])],
        enable_checkpointing=False,
        default_root_dir=log,
    )
    loaders = [
        torch.utils.data.DataLoader(part, batch_size=16, shuffle=part is training)
        for part in (training, validation)
    ]
    trainer.fit(Classifier(), *loaders)


if __name__ == "__main__":
    torch.set_num_threads(1)
    log = Path(sys.argv[1])
    train(log, [TensorBoardLogger(log / "both", name=None), CSVLogger(log / "both", name="csv")])
    (log / "printed").mkdir(parents=True, exist_ok=True)
    printed = open(log / "printed" / "train.log", "w")  # noqa: SIM115
    with printed, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        train(log, loggers=False)
