"""Whether the optimizer holds the parameters that can be trained, and no others.

A layer that was added after the optimizer was made is never trained, and so are parameters that were listed
before the model was moved. The loss shows it late or never.

## Cost
Two passes over the list of parameters, on the host: some microseconds a thousand tensors.

## When it misleads
A model of which a part is meant to rest, but whose parameters still ask for gradients, has missing ones. A
second optimizer has to be handed to the probe as well. Two optimizers that take turns on the same weights on
purpose hold them twice.

## Source
Probes `params/*` of the catalogue (O2, O17, O21, X1); TrainCheck's invariant on a second optimizer.
"""

from collections import Counter

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet


class OptimizerParameters(
    ProbeSet,
    shows={
        "params/missing_from_optimizer": "trainable tensors that no optimizer holds",
        "params/frozen_in_optimizer": "tensors that an optimizer holds and that ask for no gradient",
        "params/held_twice": "tensors that more than one optimizer, or more than one group, holds",
        "params/trainable_fraction": "share of the weights that ask for gradients",
    },
    entries=("O2", "O17", "O21", "X1", "N-two-optimizers"),
    cost=Cost.DEFAULT,
):
    """Counts of tensors, and the share of the weights that can be trained."""

    def measure(self, moment: Moment) -> Numbers:
        """Return four numbers."""
        parts = self.subject.parts
        parameters = {id(parameter): parameter for _, parameter in parts.parameters}.values()
        times = Counter(id(parameter) for _, group in parts.groups for parameter in group["params"])
        trainable = [parameter for parameter in parameters if parameter.requires_grad]
        weights = sum(parameter.numel() for parameter in parameters)
        return {
            "params/missing_from_optimizer": sum(id(parameter) not in times for parameter in trainable),
            "params/frozen_in_optimizer": sum(not parameter.requires_grad for parameter in parts.optimized),
            "params/held_twice": sum(count > 1 for count in times.values()),
            "params/trainable_fraction": sum(parameter.numel() for parameter in trainable) / max(weights, 1),
        }
