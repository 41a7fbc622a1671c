"""Whether the scheduler steps as often as the optimizer, and stands where the optimizer stands.

A scheduler that was not restored begins its warm-up again, or rests at its end. One that is stepped for each
micro-batch is through long before the training. The loss shows either late.

## Cost
Nothing that can be measured: the counts lie on the host.

## When it misleads
It needs `scheduler=`. A scheduler that steps once an epoch has no offset here. The optimizer's count comes
from its state; SGD keeps none, so there it is `first_step` and the steps since. It is off in distributed
trainings, because Accelerate steps the scheduler once for each process.

## Source
Probe `optim/step_count` of the catalogue; entries O8, R4 and G-acc-sched; TrainCheck's invariant that both
step together.
"""

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject, Unsuitable, is_on_host

_MAX_OPTIMIZER_STATES = 16  # whose counts are asked for; those of other tensors are mostly the same


class Schedules(
    ProbeSet,
    shows={
        "optim/step_count": "steps that the optimizer has made in its life",
        "optim/scheduler_rate": "steps of the scheduler for each of the optimizer since the last measurement",
        "optim/scheduler_offset": "steps by which the optimizer is ahead of a scheduler that steps with it",
    },
    entries=("O4", "O8", "R4", "G-acc-sched"),
    cost=Cost.DEFAULT,
):
    """Counts of the optimizer and of the scheduler."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        import torch.distributed as together

        if together.is_available() and together.is_initialized() and together.get_world_size() > 1:
            raise Unsuitable("the processes may step one scheduler together")
        self._steps = 0
        self._before: tuple[int, int] | None = None

    def glance(self, moment: Moment) -> None:
        """Count the step."""
        self._steps += 1

    def measure(self, moment: Moment) -> Numbers:
        """Return the counts, and from the second time on how they went along."""
        count = self._own_count()
        numbers: dict[str, float] = {"optim/step_count": count}
        scheduled = getattr(self.subject.scheduler, "last_epoch", None)
        if scheduled is None:
            return numbers
        if self._before is not None and self._steps > self._before[0]:
            rate = (scheduled - self._before[1]) / (self._steps - self._before[0])
            numbers["optim/scheduler_rate"] = rate
            if rate == 1:
                numbers["optim/scheduler_offset"] = count - scheduled
        self._before = self._steps, scheduled
        return numbers

    def _own_count(self) -> int:
        states = [state for optimizer in self.subject.optimizers for state in optimizer.state.values()]
        sampled = states[:: max(1, len(states) // _MAX_OPTIMIZER_STATES)]
        counts = [int(state["step"]) for state in sampled if "step" in state and is_on_host(state["step"])]
        return max(counts, default=self.subject.first_step + self._steps)
