"""Small real trainings, each of which ends or is wrecked in one way.

A job gets the directory for its log and a function to call when the evidence has reached the log: from
then on the watch has ten seconds to tell.
"""

import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import torch

Evident = Callable[[], None]

HEALTHY_STEPS = 200
SICK_STEPS = 400


class Classifier:
    """A small network that learns ten clusters; `losses` yields a loss for each step."""

    def __init__(self, rate: float = 1e-3) -> None:
        self.model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9)
        self.centres = torch.randn(10, 32)

    def step(self) -> dict[str, float]:
        """Take one step; gives what a loop usually logs."""
        labels = torch.randint(10, (256,))
        logits = self.model(self.centres[labels] + torch.randn(256, 32))
        loss = torch.nn.functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])
        self.optimizer.step()
        rate = self.optimizer.param_groups[0]["lr"]
        return {"train/loss": loss.item(), "train/grad_norm": norm.item(), "train/lr": rate}

    def poison(self) -> None:
        """Make one weight NaN, as an overflow would."""
        with torch.no_grad():
            next(self.model.parameters())[0, 0] = torch.nan


def _pause() -> None:
    """Take as long as a small step does on real hardware."""
    threading.Event().wait(0.02)


def _jsonl(directory: Path, steps: Iterator[dict[str, float]], begin: int = 0) -> Iterator[int]:
    """Log each step as a JSON line; gives its number."""
    with (directory / "metrics.jsonl").open("ab") as log:
        for number, values in enumerate(steps, begin):
            log.write(orjson.dumps({"step": number, **values}) + b"\n")
            log.flush()
            _pause()
            yield number


def nan_torch(directory: Path, evident: Evident) -> None:
    """A plain loop with torch's SummaryWriter, whose weights become NaN."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(directory)
    training = Classifier()
    for step in range(HEALTHY_STEPS + SICK_STEPS):
        if step == HEALTHY_STEPS:
            training.poison()
        for tag, value in training.step().items():
            writer.add_scalar(tag, value, step)
        if step % 10 == 0:
            writer.flush()
        if step == HEALTHY_STEPS + 10:
            evident()
        _pause()


def nan_hf_trainer(directory: Path, evident: Evident) -> None:
    """HF Trainer, whose filter replaces a NaN loss: only the gradient norm tells."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    class Wreck(TrainerCallback):
        def on_step_begin(self, _, state, __, model=None, **___):
            if state.global_step == HEALTHY_STEPS:
                with torch.no_grad():
                    model.transformer.wte.weight[0, 0] = torch.nan
            if state.global_step == HEALTHY_STEPS + 20:
                evident()
            _pause()

    os.environ["TENSORBOARD_LOGGING_DIR"] = str(directory)
    data = [{"input_ids": t, "labels": t} for t in (torch.arange(i, i + 8) % 16 for i in range(64))]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=32, n_layer=2, n_head=2))
    arguments = TrainingArguments(
        output_dir=str(directory.parent.parent / "checkpoints"),
        max_steps=HEALTHY_STEPS + SICK_STEPS,
        logging_steps=5,
        save_strategy="no",
        learning_rate=1e-3,
        report_to=["tensorboard"],
        use_cpu=True,
        disable_tqdm=True,
    )
    Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Wreck()]).train()


def nan_lightning(directory: Path, evident: Evident) -> None:
    """Lightning with its CSV logger."""
    import lightning
    from lightning.pytorch.loggers import CSVLogger

    class Sign(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch, _):
            _pause()
            if self.global_step == HEALTHY_STEPS:
                with torch.no_grad():
                    self.layer.weight[0, 0] = torch.nan
            if self.global_step == HEALTHY_STEPS + 20:
                evident()
            target = batch.sum(1, keepdim=True)
            loss = torch.nn.functional.mse_loss(self.layer(batch), target) + 0.1 * torch.rand(())
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    data = torch.utils.data.DataLoader(torch.randn(8 * (HEALTHY_STEPS + SICK_STEPS), 2), batch_size=8)
    lightning.Trainer(
        max_epochs=1,
        logger=CSVLogger(directory, flush_logs_every_n_steps=5),
        log_every_n_steps=5,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_checkpointing=False,
    ).fit(Sign(), data)


def divergence(directory: Path, evident: Evident) -> None:
    """A learning rate that is raised far too high after some hundred steps."""
    training = Classifier()

    def steps() -> Iterator[dict[str, float]]:
        for step in range(HEALTHY_STEPS + SICK_STEPS):
            if step == HEALTHY_STEPS:
                training.optimizer.param_groups[0]["lr"] = 2.0
            yield training.step()

    for step in _jsonl(directory, steps()):
        if step == HEALTHY_STEPS + 100:
            evident()


def hang(directory: Path, evident: Evident) -> None:
    """A loader that waits for a batch that never comes; somebody has to kill it."""

    class Stuck(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield from (torch.randn(4) for _ in range(4 * HEALTHY_STEPS))
            evident()
            threading.Event().wait()

    training = Classifier()
    loader = torch.utils.data.DataLoader(Stuck(), batch_size=4)
    for _ in _jsonl(directory, (training.step() for _ in loader)):
        pass


def exception(directory: Path, evident: Evident) -> None:
    """An exception that nobody catches, after a healthy start."""
    training = Classifier()
    for step in _jsonl(directory, (training.step() for _ in range(HEALTHY_STEPS + 1))):
        if step == HEALTHY_STEPS:
            sys.stdout.flush()
            evident()
            training.model(torch.randn(4, 31))


def out_of_memory(directory: Path, evident: Evident) -> None:
    """The text that CUDA's allocator leaves when no memory is left."""
    training = Classifier()
    for step in _jsonl(directory, (training.step() for _ in range(HEALTHY_STEPS + 1))):
        if step == HEALTHY_STEPS:
            evident()
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB of "
                "which 1.12 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB in use."
            )


def killed(directory: Path, evident: Evident) -> None:
    """A process that the kernel kills: its log simply stops."""
    training = Classifier()
    for step in _jsonl(directory, (training.step() for _ in range(HEALTHY_STEPS + 1))):
        if step == HEALTHY_STEPS:
            evident()
            os.kill(os.getpid(), signal.SIGKILL)


def vanished(directory: Path, evident: Evident) -> None:
    """A training that goes on while its directory is taken away; somebody has to kill it."""
    training = Classifier()
    for step in _jsonl(directory, (training.step() for _ in itertools.count())):
        if step == HEALTHY_STEPS:
            evident()


def crashed(directory: Path, evident: Evident) -> None:
    """A program that gives up without an exception, under W&B, which records the exit code."""
    import wandb

    run = wandb.init(project="wrecked", dir=directory)
    training = Classifier()
    for _ in range(HEALTHY_STEPS):
        run.log(training.step())
        _pause()
    evident()
    sys.exit(3)


def finished(directory: Path, evident: Evident) -> None:
    """A plain loop that says beside each step how many are planned, and comes to its end."""
    training = Classifier()
    for step in _jsonl(directory, ({**training.step(), "total_steps": 199} for _ in range(HEALTHY_STEPS))):
        if step == HEALTHY_STEPS - 1:
            evident()


def preempted(directory: Path, evident: Evident) -> None:
    """A loop that saves a checkpoint each 50 steps and goes on from the last one; a scheduler ends it."""
    training = Classifier()
    checkpoints = directory / "checkpoints"
    checkpoints.mkdir(exist_ok=True)
    begin = max((int(path.stem) for path in checkpoints.glob("*.pt")), default=0)
    if begin:
        training.model.load_state_dict(torch.load(checkpoints / f"{begin}.pt"))
    for step in _jsonl(directory, (training.step() for _ in range(begin, 10 * HEALTHY_STEPS)), begin):
        if step % 50 == 0:
            torch.save(training.model.state_dict(), checkpoints / f"{step}.pt")
        if step == HEALTHY_STEPS + 30:
            evident()
