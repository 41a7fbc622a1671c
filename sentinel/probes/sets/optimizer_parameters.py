"""Whether the optimizer holds the parameters that can be trained, and no others.

A layer that was added after the optimizer was made is never trained, and so are parameters that were listed
before the model was moved. The loss shows it late or never.

## Cost
Two passes over the list of parameters, on the host: some microseconds a thousand tensors.

## When it misleads
A model of which a part is meant to rest, but whose parameters still ask for gradients, has missing ones. A
second optimizer has to be handed to the probe as well.

## Source
Probes `params/*` of the catalogue (O2, O17, O21).
"""

from sentinel.probes.base import Moment, Numbers, ProbeSet


class OptimizerParameters(
    ProbeSet,
    shows={
        "params/missing_from_optimizer": "trainable tensors that no optimizer holds",
        "params/frozen_in_optimizer": "tensors that an optimizer holds and that ask for no gradient",
        "params/trainable_fraction": "share of the weights that ask for gradients",
    },
    entries=("O2", "O17", "O21", "X1"),
):
    """Counts of tensors, and the share of the weights that can be trained."""

    def measure(self, moment: Moment) -> Numbers:
        """Three numbers."""
        own = {id(parameter): parameter for parameter in self.subject.model.parameters()}
        held = {id(one): one for _, group in self.subject.groups() for one in group["params"]}
        weights = sum(one.numel() for one in own.values())
        trainable = [one for one in own.values() if one.requires_grad]
        return {
            "params/missing_from_optimizer": sum(id(one) not in held for one in trainable),
            "params/frozen_in_optimizer": sum(not one.requires_grad for one in held.values()),
            "params/trainable_fraction": sum(one.numel() for one in trainable) / max(weights, 1),
        }
