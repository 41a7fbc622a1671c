"""A small classifier of points in a plane under SpeechBrain's Brain, with its FileTrainLogger.

speechbrain 1.1.2, torch 2.13.0. Writes train_log.txt and TensorBoard event files.
"""

import socket
import sys
from pathlib import Path

socket.gethostname = lambda: "localhost"

import torch  # noqa: E402
from speechbrain.core import Brain, Stage  # noqa: E402
from speechbrain.utils.epoch_loop import EpochCounter  # noqa: E402
from speechbrain.utils.train_logger import FileTrainLogger, TensorboardLogger  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402


class Classifier(Brain):
    def compute_forward(self, batch, stage):  # noqa: ARG002
        return self.modules.layers(batch[0])

    def compute_objectives(self, scores, batch, stage):
        if stage != Stage.TRAIN:
            self.wrong += (scores.argmax(1) != batch[1]).float().mean().item() / len(self.hparams.validation)
        return cross_entropy(scores, batch[1])

    def on_stage_start(self, stage, epoch=None):  # noqa: ARG002
        self.wrong = 0.0

    def on_stage_end(self, stage, stage_loss, epoch=None):
        if stage == Stage.TRAIN:
            self.trained = {"loss": stage_loss}
            return
        counted = {"epoch": epoch, "lr": self.optimizer.param_groups[0]["lr"]}
        for logger in self.hparams.loggers:
            logger.log_stats(counted, self.trained, {"loss": stage_loss, "error": self.wrong})


def main(log):
    log.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    points = torch.rand(800, 2)
    batches = list(zip(points.split(16), (points.sum(1) * 1.5).long().split(16), strict=True))
    layers = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    brain = Classifier(
        modules={"layers": layers},
        opt_class=lambda parameters: torch.optim.Adam(parameters, 0.005),
        hparams={
            "loggers": [
                FileTrainLogger(str(log / "train_log.txt")),
                TensorboardLogger(str(log / "tensorboard")),
            ],
            "validation": batches[40:],
        },
        run_opts={"device": "cpu"},
    )
    loaders = (torch.utils.data.DataLoader(part, batch_size=None) for part in (batches[:40], batches[40:]))
    brain.fit(EpochCounter(12), *loaders, progressbar=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
