"""A small ConvNet of timm's on synthetic images, with timm's optimizer, scheduler, meters and summary.csv.

timm 1.0.31, torch 2.14.1. timm's train.py is no part of its package, so the loop is our own.
"""

import socket
import sys
from collections import OrderedDict
from pathlib import Path

socket.gethostname = lambda: "localhost"

import torch  # noqa: E402
from timm.models import create_model  # noqa: E402
from timm.optim import create_optimizer_v2  # noqa: E402
from timm.scheduler import create_scheduler_v2  # noqa: E402
from timm.utils import AverageMeter, accuracy, update_summary  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

CLASSES = 10
EPOCHS = 12


def make_images(count):
    """Noise with a bright row that tells the class."""
    kinds = torch.randint(CLASSES, (count,))
    images = torch.randn(count, 3, 32, 32)
    images[torch.arange(count), :, 3 * kinds] += 3
    return list(zip(images.split(32), kinds.split(32), strict=True))


def run_epoch(model, batches, optimizer=None):
    model.train(optimizer is not None)
    losses = AverageMeter()
    top1 = AverageMeter()
    top5 = AverageMeter()
    for images, kinds in batches:
        with torch.set_grad_enabled(optimizer is not None):
            scores = model(images)
            loss = cross_entropy(scores, kinds)
        if optimizer:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right = accuracy(scores, kinds, topk=(1, 5))
        for meter, value in zip((losses, top1, top5), (loss, *right), strict=True):
            meter.update(value.item(), len(images))
    return OrderedDict(loss=losses.avg, top1=top1.avg, top5=top5.avg)


def main(log):
    log.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = create_model("test_resnet", num_classes=CLASSES)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3, weight_decay=0.01)
    scheduler, epochs = create_scheduler_v2(
        optimizer, sched="cosine", num_epochs=EPOCHS, warmup_epochs=2, warmup_lr=1e-4
    )
    training = make_images(640)
    validation = make_images(320)
    for epoch in range(epochs):
        rate = optimizer.param_groups[0]["lr"]
        trained = run_epoch(model, training, optimizer)
        evaluated = run_epoch(model, validation)
        update_summary(
            epoch,
            OrderedDict(loss=trained["loss"]),
            evaluated,
            filename=log / "summary.csv",
            lr=rate,
            write_header=epoch == 0,
        )
        scheduler.step(epoch + 1, evaluated["top1"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
