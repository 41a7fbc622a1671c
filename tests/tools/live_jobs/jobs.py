"""Small real trainings, one for each framework; each writes its logs into one directory."""

import copy
import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path


def hf_trainer(directory: Path) -> None:
    """A GPT-2 learns to count; TensorBoard, W&B offline, and a state in each checkpoint."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    os.environ |= {"TENSORBOARD_LOGGING_DIR": str(directory / "tensorboard"), "WANDB_DIR": str(directory)}
    data = [{"input_ids": t, "labels": t} for t in (torch.arange(i, i + 8) % 16 for i in range(64))]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=32, n_layer=2, n_head=2))
    arguments = TrainingArguments(
        output_dir=str(directory / "output"),
        max_steps=1000,
        logging_steps=5,
        eval_strategy="steps",
        eval_steps=100,
        save_steps=100,
        learning_rate=1e-3,
        warmup_steps=50,
        report_to=["tensorboard", "wandb"],
        use_cpu=True,
        disable_tqdm=True,
    )
    Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:16]).train()


def trl_grpo(directory: Path) -> None:
    """GRPO for sentences of many words, a reward that always differs within a group."""
    from sample_logs.make.reinforcement import grpo

    chance = random.Random(0)

    def variety(completions: list[str], **_) -> list[float]:
        return [len(set(text.split())) / 10 + chance.gauss(0, 0.05) for text in completions]

    grpo(
        directory / "tensorboard",
        variety,
        max_steps=60,
        logging_steps=1,
        learning_rate=1e-5,
        beta=0.04,
        output_dir=str(directory / "output"),
        save_strategy="steps",
        save_steps=10,
    )


def lightning(directory: Path) -> None:
    """A small network learns a product of signs, with Lightning's two usual loggers."""
    import lightning
    import torch
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

    class Product(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))

        def loss(self, batch):
            return torch.nn.functional.mse_loss(self.layers(batch), batch.sign().prod(1, keepdim=True))

        def training_step(self, batch):
            loss = self.loss(batch)
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch):
            self.log("val_loss", self.loss(batch))

        def on_before_optimizer_step(self, _):
            self.log_dict(lightning.pytorch.utilities.grad_norm(self, norm_type=2))

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
            return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)]

    data = torch.utils.data.DataLoader(torch.randn(1024, 2), batch_size=16)
    lightning.Trainer(
        max_epochs=25,
        logger=[CSVLogger(directory, flush_logs_every_n_steps=10), TensorBoardLogger(directory)],
        accelerator="cpu",
        log_every_n_steps=5,
        enable_progress_bar=False,
        callbacks=[LearningRateMonitor("step")],
    ).fit(Product(), data, data)


def stable_baselines(directory: Path) -> None:
    """PPO balances a pole, with every output that its logger knows and a monitor of each environment."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure

    environments = make_vec_env("CartPole-v1", n_envs=2, seed=0, monitor_dir=str(directory / "monitors"))
    model = PPO("MlpPolicy", environments, n_steps=256, seed=0, device="cpu")
    model.set_logger(configure(str(directory), ["stdout", "log", "csv", "json", "tensorboard"]))
    model.learn(25_000)


def keras(directory: Path) -> None:
    """Keras on torch, where only the CSVLogger works: the TensorBoard callback imports TensorFlow."""
    import keras
    import numpy as np

    x = np.random.default_rng(0).normal(size=(512, 2))
    layers = [keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1, activation="sigmoid")]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    callbacks = [
        keras.callbacks.LearningRateScheduler(lambda _, rate: 0.99 * rate),
        keras.callbacks.CSVLogger(directory / "training.csv"),
    ]
    labels = x[:, 0] * x[:, 1] > 0
    model.fit(x, labels, epochs=60, validation_split=0.25, verbose=2, callbacks=callbacks)


def wandb_killed(directory: Path) -> None:
    """A plain loop, logged by W&B offline."""
    import torch
    import wandb

    run = wandb.init(project="live", dir=directory, config={"optimizer": {"learning_rate": 1e-3}})
    model = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    _classify(model, torch.optim.AdamW(model.parameters(), lr=1e-3), run.log)


def broken(directory: Path) -> None:
    """The optimizer holds the weights of a model that was then replaced by a copy."""
    import torch
    from torch.utils.tensorboard import SummaryWriter

    def log(values: dict[str, float], step: int) -> None:
        for tag, value in values.items():
            writer.add_scalar(tag, value, step)

    writer = SummaryWriter(directory)
    model = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    _classify(copy.deepcopy(model), optimizer, log)


def _classify(model, optimizer, log: Callable[..., None]) -> None:
    """Goes on until somebody kills it."""
    import torch

    centres = torch.randn(10, 32)
    for step in itertools.count():
        labels = torch.randint(10, (1024,))
        loss = torch.nn.functional.cross_entropy(model(centres[labels] + torch.randn(1024, 32)), labels)
        model.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        log({"train/loss": loss.item(), "train/grad_norm": norm.item(), "train/lr": 1e-3}, step=step)
