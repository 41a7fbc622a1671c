"""A small network in numpy with its gradients, and two optimizers."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ACTIVATIONS = {
    "relu": (lambda x: np.maximum(x, 0), lambda y: (y > 0).astype(float)),
    "tanh": (np.tanh, lambda y: 1 - y * y),
    "linear": (lambda x: x, lambda y: np.ones_like(y)),
}
"""Each with its derivative as a function of its output."""


class Network:
    """Dense layers with one activation. ``weights`` are a matrix and a bias for each layer."""

    def __init__(self, sizes: Sequence[int], activation: str, gain: float, random: np.random.Generator):
        self.activation = activation
        self.weights: list[Floats] = []
        for inputs, outputs in pairwise(sizes):
            self.weights += [
                random.normal(size=(inputs, outputs)) * gain * np.sqrt(2 / inputs),
                np.zeros(outputs),
            ]

    def forward(self, inputs: Floats, drop: float, random: np.random.Generator) -> list[Floats]:
        """The values of each layer, the inputs first; ``drop`` is the share of hidden values left out."""
        act = ACTIVATIONS[self.activation][0]
        layers = [inputs]
        count = len(self.weights) // 2
        for layer in range(count):
            values = layers[-1] @ self.weights[2 * layer] + self.weights[2 * layer + 1]
            if layer < count - 1:
                values = act(values)
                if drop:
                    values = values * (random.random(values.shape) >= drop) / (1 - drop)
            layers.append(values)
        return layers

    def backward(self, layers: Sequence[Floats], error: Floats) -> list[Floats]:
        """The gradient of each weight, from the gradient of the outputs."""
        slope = ACTIVATIONS[self.activation][1]
        gradients = list[Floats]()
        for layer in reversed(range(len(self.weights) // 2)):
            gradients = [layers[layer].T @ error, error.sum(axis=0), *gradients]
            error = (error @ self.weights[2 * layer].T) * (slope(layers[layer]) if layer else 1)
        return gradients


class Optimizer:
    """SGD with momentum, or Adam."""

    def __init__(self, kind: str, weights: list[Floats], decay: float):
        self.kind = kind
        self.weights = weights
        self.decay = decay
        self.reset()

    def reset(self) -> None:
        """Forget the moments."""
        self.steps = 0
        self.first = [np.zeros_like(weight) for weight in self.weights]
        self.second = [np.zeros_like(weight) for weight in self.weights]

    def step(self, gradients: Sequence[Floats], rate: float, frozen: int) -> None:
        """Change all weights but the first ``frozen`` ones."""
        self.steps += 1
        for n, gradient in enumerate(gradients):
            if n < frozen:
                continue
            if self.kind == "adam":
                self.first[n] += 0.1 * (gradient - self.first[n])
                self.second[n] += 0.001 * (gradient**2 - self.second[n])
                mean = self.first[n] / (1 - 0.9**self.steps)
                change = mean / (np.sqrt(self.second[n] / (1 - 0.999**self.steps)) + 1e-8)
            else:
                self.first[n] = 0.9 * self.first[n] + gradient
                change = self.first[n]
            self.weights[n] -= rate * (change + self.decay * self.weights[n])
