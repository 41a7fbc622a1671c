"""A second opinion on the outcome of a run: trees over all that can be measured of it and its companions.

A card says in eight lines what a person would say. What only shows in how many measurements go together, no
card can say. Trees can, but nobody can read two hundred of them aloud. So the forest is asked once, of a run
that is over, and its answer is one more measurement: how many healthy runs look better. `make forest` fits it
to labelled logs and writes ``forest.json``.
"""

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path

import msgspec
import numpy as np

from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.curves import Bools
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import Role
from sentinel.detectors.stats import Floats, Ints

FOREST = Path(__file__).parent / "forest.json"

OPINION = "looks_worse_than_healthy"
"""The measurement: the share of healthy runs that look better to the forest."""

MEASURED = (*MEASUREMENTS, *COMPANY)
"""The measurements that there are, of which a forest asks for those that were there when it was fitted."""

ROLES = (Role.METRIC, Role.REWARD, Role.HELD_OUT_LOSS, Role.TRAINING_LOSS, Role.DISCRIMINATOR_LOSS)
"""The roles of outcomes, which are its last inputs."""

MAX_SIZE = 1e6
"""Larger inputs count as this one."""

LEAF = -1
"""In place of an input, at a node that asks for none."""


class Forest(msgspec.Struct, frozen=True, dict=True):
    """Trees as their nodes, a column an attribute. At each node an ``input`` is compared with a ``mark``, and
    the tree goes on at the node ``below`` or ``above`` it. ``odds`` are the log odds of trouble at a node.

    ``healthy`` are the log odds below which the ``shares`` of healthy runs lie. ``says`` puts each input that
    is a measurement into words, as the lines of cards do, in the order of the inputs; the roles follow.
    """

    says: Mapping[str, str]
    base: float
    roots: tuple[int, ...]
    inputs: tuple[int, ...]
    marks: tuple[float, ...]
    below: tuple[int, ...]
    above: tuple[int, ...]
    unknown_below: tuple[bool, ...]
    odds: tuple[float, ...]
    shares: tuple[float, ...]
    healthy: tuple[float, ...]

    @cached_property
    def _nodes(self) -> tuple[Ints, Floats, Ints, Ints, Bools, Floats]:
        return (
            np.array(self.inputs),
            np.array(self.marks),
            np.array(self.below),
            np.array(self.above),
            np.array(self.unknown_below),
            np.array(self.odds),
        )

    def weights(self, measured: Mapping[str, float], role: Role) -> Floats:
        """Return what each input adds to the log odds of trouble: their change at each node that asks it."""
        inputs, marks, below, above, unknown_below, odds = self._nodes
        values = np.array([measured[name] for name in self.says] + [float(role is one) for one in ROLES])
        values = np.clip(values, -MAX_SIZE, MAX_SIZE)
        weights = np.zeros(len(values))
        node = np.array(self.roots)
        while len(node := node[inputs[node] != LEAF]):
            value = values[inputs[node]]
            is_below = np.where(np.isnan(value), unknown_below[node], value <= marks[node])
            next_node = np.where(is_below, below[node], above[node])
            np.add.at(weights, inputs[node], odds[next_node] - odds[node])
            node = next_node
        return weights

    def opinion(self, measured: Mapping[str, float], role: Role) -> float:
        """Return the share of healthy runs that look better."""
        at_roots = self.base + self._nodes[-1][list(self.roots)].sum()
        odds = at_roots + self.weights(measured, role).sum()
        return float(np.interp(odds, self.healthy, self.shares))


@cache
def forest() -> Forest:
    """Return the forest of the project."""
    return msgspec.json.decode(FOREST.read_bytes(), type=Forest)
