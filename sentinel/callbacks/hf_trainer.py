"""A callback for the Trainer of transformers, and for those of TRL and others that are built on it."""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sentinel.callbacks.monitor import Monitor
from sentinel.detectors.severity import Severity
from sentinel.probes.probe import probe


class SentinelCallback(TrainerCallback):
    """Judges what the Trainer logs: ``Trainer(..., callbacks=[SentinelCallback(Monitor())])``.

    ``stop_at`` is the severity at which the training stops after the step, and ``save_at`` the one at which
    it saves a checkpoint; by default it does neither. With ``probes`` the monitor also gets the numbers of
    `sentinel.probe`, every hundred steps. The probes get the model's inputs from a hook; a compiled model has
    none, because it would be compiled again, so its probes get no batches.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        stop_at: Severity | None = None,
        save_at: Severity | None = None,
        probes: bool = False,
    ) -> None:
        self._monitor = monitor
        self._stop_at = stop_at
        self._save_at = save_at
        self._probes = probes
        self._probe: probe | None = None
        self._batch: Any = None  # of the present step
        self._scaler: Any = None
        self._hook: Any = None

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: Any = None,
        optimizer: Any = None,
        lr_scheduler: Any = None,
        **_: Any,
    ) -> None:
        """Pass the settings to the monitor, and attach the probes."""
        self._monitor.configure(args.to_dict() | {"max_steps": state.max_steps})
        if self._probes:  # in each process, since some numbers compare the ranks
            first = state.global_step
            self._scaler = getattr(optimizer, "scaler", None)  # where Accelerate has it
            self._probe = probe(
                model, optimizer, to=self._monitor, sets="cheap", scheduler=lr_scheduler, first_step=first
            )
            if not args.torch_compile:
                self._hook = model.register_forward_pre_hook(self._keep_inputs, with_kwargs=True)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Let the probes measure."""
        if self._probe is not None:
            self._probe.step(batch=self._batch, scaler=self._scaler)
            self._batch = None

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Let the probes measure a batch of the evaluation."""
        if self._probe is not None:
            self._probe.evaluate(batch=self._batch)
            self._batch = None

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Pass what the first process logs to the monitor, and stop or save where an incident is severe."""
        if state.is_world_process_zero:
            self._monitor.log(state.global_step, logs or {})
        for incident in self._monitor.news():
            if self._save_at is not None and incident.severity >= self._save_at:
                control.should_save = True
            if self._stop_at is not None and incident.severity >= self._stop_at:
                control.should_training_stop = True

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Detach the probes and judge the last metrics."""
        if self._hook is not None:
            self._hook.remove()
        if self._probe is not None:
            self._probe.close()
        self._monitor.close()

    def _keep_inputs(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the model's inputs until the step has ended."""
        self._batch = kwargs or args
