"""The callbacks find model and optimizer by themselves."""

import pytest

torch = pytest.importorskip("torch", reason="probes are tested by `make test-probes`")
from sentinel.callbacks.monitor import Monitor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of the trainers, which are not ours


class Rows(Monitor):
    """A monitor that keeps what it is handed over."""

    def __init__(self):
        super().__init__(every_seconds=0.01)
        self.rows = []

    def log(self, step, metrics):
        self.rows.append(dict(metrics))
        super().log(step, metrics)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, at):
        return {"x": torch.ones(4) * at / 32, "labels": torch.tensor(at / 32)}


def test_the_trainer_of_transformers_hands_over_probes(tmp_path):
    transformers = pytest.importorskip("transformers")
    from sentinel.callbacks.hf_trainer import SentinelCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            out = self.layer(x).squeeze(-1)
            return {"loss": (out - labels).square().mean(), "out": out}

    monitor = Rows()
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=5,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=5,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
    )
    model = Model()
    callback = SentinelCallback(monitor, probes=True)
    data = {"train_dataset": Data(), "eval_dataset": Data()}
    trainer = transformers.Trainer(model, arguments, **data, callbacks=[callback])
    trainer.train()
    (probed,) = (row for row in monitor.rows if "params/missing_from_optimizer" in row)
    assert probed["update_ratio/0"] > 0
    assert probed["params/missing_from_optimizer"] == 0
    assert "data/input_mean" in probed
    assert any("data/eval_input_shift" in row for row in monitor.rows)
    assert not model._forward_pre_hooks
    assert trainer.optimizer.scaler is callback._scaler is None, "no GradScaler without 16 bits"
    assert monitor.failure is None


def test_lightning_hands_over_probes(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")
    from sentinel.callbacks.lightning import SentinelCallback

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            return (self.layer(batch["x"]).squeeze(-1) - batch["labels"]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    monitor = Rows()
    lightning.Trainer(
        default_root_dir=tmp_path,
        max_steps=5,
        accelerator="cpu",
        callbacks=[SentinelCallback(monitor, probes=True)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    ).fit(Model(), torch.utils.data.DataLoader(Data(), batch_size=4))
    (probed,) = (row for row in monitor.rows if "params/missing_from_optimizer" in row)
    assert probed["update_ratio/0"] > 0
    assert "data/input_mean" in probed
