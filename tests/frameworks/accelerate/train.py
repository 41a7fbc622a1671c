"""A small classifier in a loop of our own, logged through Accelerate's trackers.

accelerate 1.15.0, torch 2.13.0. Writes TensorBoard event files, with the settings as hparams.yml.
"""

import socket
import sys
from pathlib import Path

socket.gethostname = lambda: "localhost"

import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from accelerate.utils import ProjectConfiguration, set_seed  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

SETTINGS = {"learning_rate": 0.01, "max_train_steps": 240, "warmup_steps": 20}


def main(log):
    set_seed(0)
    torch.set_num_threads(1)
    accelerator = Accelerator(
        cpu=True, log_with="tensorboard", project_config=ProjectConfiguration(log, log / "tensorboard")
    )
    accelerator.init_trackers("points", SETTINGS)
    points = torch.rand(800, 2)
    data = torch.utils.data.TensorDataset(points, (points.sum(1) * 1.5).long())
    loader = torch.utils.data.DataLoader(data, batch_size=20, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), SETTINGS["learning_rate"])
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.05, 1, SETTINGS["warmup_steps"])
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    step = 0
    for epoch in range(6):
        for inputs, kinds in loader:
            loss = cross_entropy(model(inputs), kinds)
            accelerator.backward(loss)
            norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            if step % 5 == 0:
                logged = {"train_loss": loss.item(), "grad_norm": norm.item(), "epoch": epoch}
                accelerator.log({**logged, "lr": scheduler.get_last_lr()[0]}, step=step)
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
