"""A callback for Lightning's Trainer."""

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger

from sentinel.callbacks.monitor import Monitor
from sentinel.detectors.severity import Severity
from sentinel.probes.probe import probe


class SentinelCallback(Callback):
    """Judges what the Trainer's loggers get: ``Trainer(callbacks=[SentinelCallback(Monitor())])``.

    ``stop_at`` is the severity at which the training stops; by default it goes on. With ``probes`` the
    monitor also gets the numbers of `sentinel.probe`, every hundred batches.
    """

    def __init__(self, monitor: Monitor, *, stop_at: Severity | None = None, probes: bool = False) -> None:
        self._monitor = monitor
        self._stop_at = stop_at
        self._probes = probes
        self._probe: probe | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Add the monitor to the loggers of the first process."""
        if stage == "fit" and trainer.is_global_zero:
            trainer.loggers = [*trainer.loggers, _MonitorLogger(self._monitor)]
            self._monitor.configure({"max_steps": trainer.max_steps, "max_epochs": trainer.max_epochs})

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Attach the probes."""
        if self._probes:  # in each process, since some numbers compare the ranks
            schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
            self._probe = probe(
                pl_module,
                trainer.optimizers,
                to=self._monitor,
                sets="cheap",
                scheduler=schedulers[0] if schedulers else None,
                first_step=trainer.global_step,
            )

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, *_: Any
    ) -> None:
        """Let the probes measure, and stop where an incident is severe."""
        if self._probe is not None:
            scaler = getattr(trainer.precision_plugin, "scaler", None)
            self._probe.step(batch=batch, loss=outputs, scaler=scaler)
        for incident in self._monitor.news():
            if self._stop_at is not None and incident.severity >= self._stop_at:
                trainer.should_stop = True

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, *_: Any
    ) -> None:
        """Let the probes measure a batch of the evaluation."""
        if self._probe is not None and not trainer.sanity_checking:
            self._probe.evaluate(batch=batch)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Detach the probes and judge the last metrics."""
        if stage == "fit":
            if self._probe is not None:
                self._probe.close()
            self._monitor.close()


class _MonitorLogger(Logger):
    """Passes metrics and settings to a monitor."""

    name = "sentinel"
    version = 0

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self._monitor.log(step or 0, metrics)

    def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
        self._monitor.configure(vars(params) if hasattr(params, "__dict__") else dict(params))
