"""Learning-rate schedules that count something else than the optimizer's steps, in Lightning and in Hugging
Face's Trainer.
"""

import lightning
import torch
from lightning.pytorch.callbacks import LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from studies.faults.fault import fault
from studies.faults.loggers import Log, own
from studies.faults.tasks import Blobs, layers

EPOCHS = 5
EPOCH_STEPS = 160
BATCH = 32


class Classifier(lightning.LightningModule):
    """A classifier whose schedule steps once in so many steps."""

    def __init__(self, frequency: int):
        super().__init__()
        self.model = layers(32, 128, 10)
        self.frequency = frequency

    def training_step(self, batch, _):
        loss = cross_entropy(self.model(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", cross_entropy(self.model(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=EPOCHS * EPOCH_STEPS)
        return [optimizer], [{"scheduler": schedule, "interval": "step", "frequency": self.frequency}]


@fault(
    "O8",
    "G-acc-sched",
    "A-learning-rate",
    title="a schedule of all steps takes a step each epoch, each fourth step, each second step",
    strengths=(EPOCH_STEPS, 4, 2),
    logger=own,
)
def slow_schedule(strength: float, log: Log) -> None:
    """``strength`` is the number of optimizer steps for each step of the schedule; Lightning logs it."""
    task = Blobs(noise=1.5)
    training, evaluation = (
        DataLoader(TensorDataset(*task.batch(steps * BATCH)), BATCH, shuffle=shuffle)
        for steps, shuffle in ((EPOCH_STEPS, True), (8, False))
    )
    lightning.Trainer(
        max_epochs=EPOCHS,
        logger=CSVLogger(log.directory),
        accelerator="cpu",
        log_every_n_steps=5,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        callbacks=[LearningRateMonitor("step")],
    ).fit(Classifier(int(strength) or 1), training, evaluation)
