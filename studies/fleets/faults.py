"""Twenty faults at three strengths each. The strengths were written down before anything was measured."""

from dataclasses import dataclass

from studies.fleets.programs import Knobs

STRENGTHS = "plain", "mild", "faint"


@dataclass(frozen=True)
class Fault:
    """A fault of a program: the knob that it turns, and how far at each of the `STRENGTHS`."""

    name: str
    program: str
    knob: str
    values: tuple[float, float, float]
    title: str

    def knobs(self, strength: int) -> Knobs:
        """The knobs at a strength, by its place in `STRENGTHS`."""
        return Knobs(**{self.knob: self.values[strength]})


FAULTS = (
    Fault("missing-parameters", "deep", "frozen", (1.0, 0.75, 0.25), "layers that the optimizer lacks"),
    Fault("wrong-labels", "classifier", "wrong_labels", (0.5, 0.2, 0.05), "labels off by one"),
    Fault("double-softmax", "cosine", "twice_softmax", (1.0, 0.5, 0.1), "softmax before cross-entropy"),
    Fault("hot-rate", "deep", "rate", (300.0, 30.0, 3.0), "a learning rate too high"),
    Fault("cold-rate", "autoencoder", "rate", (0.01, 0.1, 0.5), "a learning rate too low"),
    Fault("small-start", "saturating", "gain", (0.01, 0.1, 0.5), "weights too small at the start"),
    Fault("growing-rate", "regression", "grows", (100.0, 30.0, 10.0), "a rate that grows from a third on"),
    Fault("undivided-sum", "classifier", "summed", (16.0, 8.0, 2.0), "micro-batches that are not divided"),
    Fault("slow-schedule", "cosine", "schedule", (10.0, 4.0, 2.0), "a schedule that is too long"),
    Fault("wrong-evaluation", "small-data", "wrong_evaluation", (1.0, 0.5, 0.1), "evaluation's labels off"),
    Fault("evaluation-mode", "dropout", "drop_evaluation", (0.7, 0.4, 0.1), "dropout in the evaluation"),
    Fault("lost-moments", "saturating", "reset", (0.5, 0.1, 0.02), "an optimizer that forgets"),
    Fault("padded-loss", "language", "padded", (1.0, 0.3, 0.1), "padding that counts"),
    Fault("sorted-batches", "dropout", "sorted_share", (1.0, 0.5, 0.1), "batches of one or two classes"),
    Fault("tight-clip", "linear", "clip", (0.01, 0.1, 0.5), "gradients clipped too much"),
    Fault("strong-decay", "small-data", "decay", (3.0, 1.0, 0.1), "a weight decay too strong"),
    Fault("same-batch", "language", "again", (1.0, 0.5, 0.1), "batches that come again"),
    Fault("no-exploration", "policy", "entropy", (-0.5, -0.1, 0.0), "an entropy that is punished"),
    Fault("wrong-rewards", "policy", "wrong_rewards", (0.5, 0.25, 0.05), "rewards of the wrong sign"),
    Fault("swapped-pairs", "preferences", "swapped", (0.5, 0.25, 0.05), "chosen and rejected swapped"),
)
