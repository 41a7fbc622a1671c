"""What the programs learn: where batches come from, and the loss with its gradient and what is logged.

A task is one problem for all seeds; only the samples, the weights and their order differ between siblings.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from studies.fleets.network import Floats

if TYPE_CHECKING:
    from studies.fleets.programs import Knobs

PROBLEM = 7
"""The seed of what siblings share."""


class Batch(NamedTuple):
    """Inputs, and what is wanted: a class or values of each sample."""

    inputs: Floats
    targets: Floats


Told = tuple[Floats, dict[str, float]]
"""The gradient of the loss by the outputs, and what is logged."""


def softmax(scores: Floats) -> Floats:
    """Of each row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def cross_entropy(scores: Floats, labels: Floats, weight: Floats) -> tuple[Floats, float]:
    """The gradient by the scores, and the loss in nats, as weighted means."""
    shares = softmax(scores)
    rows = np.arange(len(labels))
    wanted = labels.astype(int)
    loss = float(-(weight * np.log(shares[rows, wanted] + 1e-12)).sum() / weight.sum())
    shares[rows, wanted] -= 1
    return shares * (weight / weight.sum())[:, None], loss


class Blobs:
    """Ten classes around centres; ``noise`` is the deviation of samples, of which there may be ``few``."""

    inputs = 16
    outputs = 10
    classes = 10
    noise = 1.2
    few = 0

    def __init__(self, random: np.random.Generator):
        self.random = random
        problem = np.random.default_rng(PROBLEM)
        self.centres = problem.normal(size=(self.classes, self.inputs))
        self.pool = self._samples(problem, self.few, np.arange(self.few) % self.classes) if self.few else None
        self.held_out = self._samples(problem, 200, np.arange(200) % self.classes)

    def _samples(self, random: np.random.Generator, count: int, labels: Floats) -> Batch:
        noise = self.noise * random.normal(size=(count, self.inputs))
        return Batch(self.centres[labels.astype(int)] + noise, labels.astype(float))

    def batch(self, count: int, knobs: "Knobs") -> Batch:
        """Samples to train on."""
        labels = self.random.integers(0, self.classes, count)
        if self.random.random() < knobs.sorted_share:
            labels = self.random.integers(0, self.classes) + self.random.integers(0, 2, count)
            labels %= self.classes
        if self.pool is None:
            batch = self._samples(self.random, count, labels)
        else:
            chosen = self.random.integers(0, len(self.pool.targets), count)
            batch = Batch(self.pool.inputs[chosen], self.pool.targets[chosen])
        wrong = self.random.random(count) < knobs.wrong_labels
        return Batch(batch.inputs, np.where(wrong, (batch.targets + 1) % self.classes, batch.targets))

    def evaluation(self, knobs: "Knobs") -> Batch:
        """Samples that are held out."""
        wrong = self.random.random(len(self.held_out.targets)) < knobs.wrong_evaluation
        labels = self.held_out.targets
        return Batch(self.held_out.inputs, np.where(wrong, (labels + 1) % self.classes, labels))

    def loss(self, scores: Floats, batch: Batch, knobs: "Knobs") -> Told:
        """Cross-entropy and accuracy."""
        even = np.ones(len(scores))
        error, loss = cross_entropy(scores, batch.targets, even)
        if knobs.twice_softmax:
            twice = self.random.random(len(scores)) < knobs.twice_softmax
            shares = softmax(scores)
            outer, loss_of_shares = cross_entropy(shares, batch.targets, even)
            inner = shares * (outer - (outer * shares).sum(axis=1, keepdims=True))
            error = np.where(twice[:, None], inner, error)
            loss += twice.mean() * (loss_of_shares - loss)
        accuracy = float((scores.argmax(axis=1) == batch.targets).mean())
        return error, {"train/loss": loss, "train/accuracy": accuracy}


class HardBlobs(Blobs):
    """Classes that overlap."""

    noise = 1.8


class FewBlobs(Blobs):
    """Classes of which few samples are known."""

    few = 300


class Regression:
    """Values of a linear function with noise."""

    inputs = 12
    outputs = 1

    def __init__(self, random: np.random.Generator):
        self.random = random
        self.function = np.random.default_rng(PROBLEM).normal(size=(self.inputs, 1))

    def batch(self, count: int, knobs: "Knobs") -> Batch:  # noqa: ARG002
        """Samples to train on."""
        inputs = self.random.normal(size=(count, self.inputs))
        return Batch(inputs, inputs @ self.function + 0.3 * self.random.normal(size=(count, 1)))

    def loss(self, outputs: Floats, batch: Batch, knobs: "Knobs") -> Told:  # noqa: ARG002
        """The mean squared error."""
        off = outputs - batch.targets
        return 2 * off / off.size, {"train/loss": float((off**2).mean())}


class Autoencoder(Regression):
    """Inputs of low rank with noise."""

    inputs = outputs = 24

    def __init__(self, random: np.random.Generator):
        super().__init__(random)
        self.mix = np.random.default_rng(PROBLEM).normal(size=(6, self.inputs)) / np.sqrt(6)

    def batch(self, count: int, knobs: "Knobs") -> Batch:  # noqa: ARG002
        """Samples to train on."""
        clean = self.random.normal(size=(count, 6)) @ self.mix
        inputs = clean + 0.1 * self.random.normal(size=clean.shape)
        return Batch(inputs, inputs)


class Bigrams:
    """The next of twenty words, with padding that must not count: class 0, for a word without meaning."""

    inputs = outputs = 20
    padding = 0.25

    def __init__(self, random: np.random.Generator):
        self.random = random
        likes = np.random.default_rng(PROBLEM).normal(size=(20, 19))
        self.next = np.cumsum(softmax(1.5 * likes), axis=1)

    def batch(self, count: int, knobs: "Knobs") -> Batch:  # noqa: ARG002
        """Words and those that follow."""
        words = self.random.integers(1, 20, count)
        follow = 1 + (self.random.random((count, 1)) > self.next[words]).sum(axis=1).clip(0, 18)
        padded = self.random.random(count) < self.padding
        words = np.where(padded, 0, words)
        follow = np.where(padded, 0, follow)
        return Batch(np.eye(20)[words], follow.astype(float))

    def loss(self, scores: Floats, batch: Batch, knobs: "Knobs") -> Told:
        """Cross-entropy of what is no padding."""
        error, loss = cross_entropy(scores, batch.targets, np.where(batch.targets > 0, 1.0, knobs.padded))
        return error, {"train/loss": loss, "train/pad_fraction": float((batch.targets == 0).mean())}


class Bandit:
    """Six arms, of which the context says the best: a policy without a critic."""

    inputs = 8
    outputs = 6

    def __init__(self, random: np.random.Generator):
        self.random = random
        self.best = np.random.default_rng(PROBLEM).normal(size=(self.inputs, self.outputs))

    def batch(self, count: int, knobs: "Knobs") -> Batch:  # noqa: ARG002
        """Contexts and what each arm is worth there."""
        inputs = self.random.normal(size=(count, self.inputs))
        return Batch(inputs, inputs @ self.best / np.sqrt(self.inputs))

    def loss(self, scores: Floats, batch: Batch, knobs: "Knobs") -> Told:
        """The gradient of the policy, with the mean reward as the baseline."""
        shares = softmax(scores)
        rows = np.arange(len(scores))
        arm = (
            (self.random.random((len(scores), 1)) > shares.cumsum(axis=1))
            .sum(axis=1)
            .clip(0, self.outputs - 1)
        )
        reward = batch.targets[rows, arm]
        sign = np.where(self.random.random(len(scores)) < knobs.wrong_rewards, -1, 1)
        gain = sign * reward - (sign * reward).mean()
        logs = np.log(shares + 1e-12)
        entropy = -(shares * logs).sum(axis=1)
        error = (shares - np.eye(self.outputs)[arm]) * gain[:, None]
        error += knobs.entropy * shares * (logs + entropy[:, None])
        values = {"train/reward": float(reward.mean()), "train/entropy": float(entropy.mean())}
        return error / len(scores), values | {"train/policy_loss": float(-(gain * logs[rows, arm]).mean())}


class Parity(Regression):
    """The product of two signs, which no straight line tells; few hidden units get stuck at some seeds."""

    inputs = 2

    def batch(self, count: int, knobs: "Knobs") -> Batch:  # noqa: ARG002
        """Samples to train on."""
        inputs = self.random.choice((-1.0, 1.0), size=(count, self.inputs))
        return Batch(inputs, inputs.prod(axis=1, keepdims=True))


class Trap(Bandit):
    """Many arms, of which one is worth most and a quarter a third of that; a policy may settle too early."""

    outputs = 200

    def __init__(self, random: np.random.Generator):
        self.random = random
        self.worth = np.repeat((0.0, 0.5, 1.5), (149, 50, 1))

    def batch(self, count: int, knobs: "Knobs") -> Batch:  # noqa: ARG002
        """Contexts, which say nothing, and what each arm is worth."""
        return Batch(self.random.normal(size=(count, self.inputs)), np.tile(self.worth, (count, 1)))


class Pairs:
    """Pairs of answers: the one that a hidden taste likes more should score more."""

    inputs = 10
    outputs = 1

    def __init__(self, random: np.random.Generator):
        self.random = random
        problem = np.random.default_rng(PROBLEM)
        self.taste = problem.normal(size=self.inputs)
        self.held_out = self._pairs(problem, 200)

    def _pairs(self, random: np.random.Generator, count: int) -> Batch:
        inputs = random.normal(size=(2 * count, self.inputs))
        liked = inputs @ self.taste + random.normal(size=2 * count)
        return Batch(inputs, np.where(liked[:count] > liked[count:], 1.0, -1.0))

    def batch(self, count: int, knobs: "Knobs") -> Batch:
        """Pairs to train on: the first half of the inputs, each with its partner in the second."""
        pairs = self._pairs(self.random, count)
        swapped = self.random.random(count) < knobs.swapped
        return Batch(pairs.inputs, np.where(swapped, -pairs.targets, pairs.targets))

    def evaluation(self, knobs: "Knobs") -> Batch:  # noqa: ARG002
        """Pairs that are held out."""
        return self.held_out

    def loss(self, scores: Floats, batch: Batch, knobs: "Knobs") -> Told:  # noqa: ARG002
        """The preference loss of Bradley and Terry, and the share of the pairs in the right order."""
        count = len(batch.targets)
        margin = batch.targets * (scores[:count, 0] - scores[count:, 0])
        pull = -batch.targets / (1 + np.exp(margin)) / count
        values = {
            "train/loss": float(np.logaddexp(0, -margin).mean()),
            "train/accuracy": float((margin > 0).mean()),
        }
        return np.concatenate([pull, -pull])[:, None], values


TASKS = {
    "blobs": Blobs,
    "hard_blobs": HardBlobs,
    "few_blobs": FewBlobs,
    "regression": Regression,
    "autoencoder": Autoencoder,
    "bigrams": Bigrams,
    "bandit": Bandit,
    "pairs": Pairs,
    "parity": Parity,
    "trap": Trap,
}
