"""Twelve training programs. Each is one loop over a task, an optimizer and a schedule.

`Knobs` are what a fault turns; as they are, a training is healthy. Siblings differ in the seed alone.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.fleets.network import Network, Optimizer
from studies.fleets.tasks import TASKS

EVERY = 20
"""Steps between two evaluations."""


@dataclass(frozen=True)
class Knobs:
    """What a fault turns. Shares are 0..1, factors are 1 where all is well."""

    frozen: float = 0.0  # share of the layers, from the first, that are not trained
    wrong_labels: float = 0.0  # share of the training's samples
    twice_softmax: float = 0.0  # share of the samples
    rate: float = 1.0  # factor of the learning rate
    grows: float = 1.0  # factor to which the rate grows from a third of the run on
    gain: float = 1.0  # factor of the weights at the start
    summed: float = 1.0  # factor of the gradient
    schedule: float = 1.0  # factor of the length of the schedule
    wrong_evaluation: float = 0.0  # share of the evaluation's samples
    drop_evaluation: float = 0.0  # dropout in the evaluation
    reset: float = 0.0  # chance of each step that the optimizer forgets
    padded: float = 0.0  # share of the padding that counts
    sorted_share: float = 0.0  # share of the batches that hold few classes
    clip: float = math.inf  # norm of the gradient at most
    decay: float = 0.0
    again: float = 0.0  # share of the batches that came before
    entropy: float = 0.02  # weight of the entropy
    wrong_rewards: float = 0.0  # share of the rewards that have another sign
    swapped: float = 0.0  # share of the pairs


@dataclass(frozen=True)
class Program:
    """A training program; ``sizes`` are those of the hidden layers."""

    name: str
    task: str
    sizes: tuple[int, ...]
    optimizer: str
    rate: float
    activation: str = "relu"
    cosine: bool = False
    steps: int = 400
    batch: int = 32
    dropout: float = 0.0
    evaluates: bool = False

    def config(self, seed: int) -> Mapping[str, Any]:
        """The settings that a run logs."""
        return {
            "seed": seed,
            "max_steps": self.steps,
            "learning_rate": self.rate,
            "optimizer": self.optimizer,
            "batch_size": self.batch,
            "hidden": "x".join(map(str, self.sizes)),
            "lr_scheduler_type": "cosine" if self.cosine else "constant",
        }


PROGRAMS = {
    program.name: program
    for program in (
        Program("classifier", "blobs", (64,), "sgd", 0.02),
        Program("cosine", "blobs", (64, 64), "adam", 2e-3, cosine=True, evaluates=True),
        Program("deep", "blobs", (48, 48, 48), "adam", 1e-3),
        Program("saturating", "blobs", (48, 48, 48), "adam", 1e-3, activation="tanh", evaluates=True),
        Program("dropout", "hard_blobs", (128,), "adam", 1e-3, dropout=0.3, evaluates=True),
        Program("regression", "regression", (64,), "sgd", 0.01),
        Program("linear", "regression", (), "sgd", 0.005, activation="linear"),
        Program("autoencoder", "autoencoder", (8,), "adam", 3e-3, activation="linear"),
        Program("language", "bigrams", (32,), "adam", 5e-3, activation="tanh", batch=64, steps=600),
        Program("small-data", "few_blobs", (64,), "adam", 1e-3, cosine=True, evaluates=True),
        Program("policy", "bandit", (32,), "adam", 3e-3, activation="tanh", steps=600),
        Program("preferences", "pairs", (32,), "adam", 1e-3, activation="tanh", evaluates=True),
    )
}

LOTTERIES = {
    program.name: program
    for program in (
        Program("parity", "parity", (3,), "sgd", 0.005, steps=800),
        Program("narrow", "blobs", (6,) * 6, "adam", 3e-3, steps=600),
        Program("trap", "trap", (32,), "adam", 0.03, activation="tanh", batch=8, steps=600),
    )
}
"""Programs without a fault in which some seeds learn and others do not."""


def trained(program: Program, knobs: Knobs, seed: int) -> Iterator[dict[str, float]]:
    """The numbers that a run logs at each step."""
    random = np.random.default_rng([seed, *program.name.encode()])
    task = TASKS[program.task](random)
    network = Network(
        (task.inputs, *program.sizes, task.outputs), program.activation, 0.7 * knobs.gain, random
    )
    optimizer = Optimizer(program.optimizer, network.weights, knobs.decay)
    frozen = 2 * round(knobs.frozen * (len(program.sizes) + 1))
    kept = task.batch(program.batch, knobs)
    for step in range(program.steps):
        rate = program.rate * knobs.rate
        if program.cosine:
            rate *= 0.5 * (1 + math.cos(math.pi * min(1, step / program.steps / knobs.schedule)))
        rate *= 1 + (knobs.grows - 1) * max(0.0, step / program.steps - 1 / 3) * 1.5
        batch = kept if random.random() < knobs.again else task.batch(program.batch, knobs)
        layers = network.forward(batch.inputs, program.dropout, random)
        error, values = task.loss(layers[-1], batch, knobs)
        gradients = [gradient * knobs.summed for gradient in network.backward(layers, error)]
        norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
        shrink = min(1.0, knobs.clip / max(norm, 1e-12))
        if random.random() < knobs.reset:
            optimizer.reset()
        optimizer.step([gradient * shrink for gradient in gradients], rate, frozen)
        values |= {"train/grad_norm": norm, "train/lr": rate}
        if program.evaluates and step % EVERY == EVERY - 1:
            held_out = task.evaluation(knobs)
            scores = network.forward(held_out.inputs, knobs.drop_evaluation, random)[-1]
            told = task.loss(scores, held_out, Knobs())[1]
            values |= {f"eval/{tag.removeprefix('train/')}": value for tag, value in told.items()}
        yield values
