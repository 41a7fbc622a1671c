"""Probes measure what they say, and the training does not feel them."""

import json
import logging
import math
import signal
import threading
from contextlib import nullcontext
from functools import cache, partial

import pytest

torch = pytest.importorskip("torch", reason="probes are tested by `make test-probes`")

from torch.utils.checkpoint import checkpoint  # noqa: E402

import sentinel  # noqa: E402
from sentinel.probes.discovery import probe_sets  # noqa: E402

torch.set_num_threads(1)  # the models are small, and other programs run beside them


class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(
            torch.nn.Linear(12, 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 16),
            torch.nn.Tanh(),
            torch.nn.Linear(16, 4),
        )


class Checkpointed(torch.nn.Module):
    """Computes the first layers again in the backward pass."""

    def __init__(self, inner):
        super().__init__()
        self.first = torch.nn.Sequential(*list(inner)[:5])
        self.last = torch.nn.Sequential(*list(inner)[5:])

    def forward(self, x):
        return self.last(checkpoint(self.first, x, use_reentrant=False))


def adapted(model):
    """LoRA on two layers; the rest is frozen."""
    peft = pytest.importorskip("peft")
    return peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["0", "4"]))


KINDS = {
    "compiled": partial(torch.compile, backend="aot_eager"),
    "checkpointed": Checkpointed,
    "lora": adapted,
}


def trained(steps=60, every=None, to=None, kind="plain", optimizer=torch.optim.AdamW, only=None):
    """The weights after some steps, the state of the random numbers, and what the probes wrote."""
    torch.manual_seed(0)
    model = Net()
    used = KINDS.get(kind, lambda model: model)(model)
    update = optimizer([one for one in model.parameters() if one.requires_grad], lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", 2.0**8) if kind == "scaled" else None
    written = []
    micro_steps = 2 if kind == "accumulated" else 1
    write = to or (lambda *row: written.append(row))
    more = {"reference": torch.nn.Embedding(4, 4).requires_grad_(False).eval(), "replay": [0]}
    if kind != "compiled":  # it would be compiled once more to evaluate
        more["loss_of"] = lambda batch: used(batch["images"]).square().mean()
    probe = sentinel.probe(used, update, to=write, every=every or 1, sets=[only] if only else "cheap", **more)
    if every is None:
        probe.close()
    for step in range(steps):
        for _ in range(micro_steps):
            inputs = torch.randn(32, 12)
            labels = torch.randint(0, 4, (32,))
            mixed = torch.autocast("cpu", torch.bfloat16) if kind == "mixed" else nullcontext()
            with mixed:
                scores = used(inputs)
                loss = torch.nn.functional.cross_entropy(scores, labels) / micro_steps
            (scaler.scale(loss) if scaler else loss).backward()
        if kind == "clipped":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if scaler:
            scaler.step(update)
            scaler.update()
        else:
            update.step()
        update.zero_grad()
        batch = {"x": inputs, "images": inputs, "labels": labels, "input_ids": labels.reshape(4, 8)}
        of_batch = {"augmentation": inputs, "latents": inputs, "condition_dropped": labels == 0}
        probe.step(batch=batch, loss=loss, scaler=scaler, outputs=scores, **of_batch)
        if step % 100 == 99:
            used.eval()
            probe.evaluate(batch=batch, outputs=scores, boxes=(9, 3), features=(inputs, inputs))
            used.train()
    probe.close()
    return [one.clone() for one in model.parameters()], torch.get_rng_state(), written


LONG = 200  # steps
WAYS = ["plain", "clipped", "accumulated", "mixed", "scaled", *KINDS]
NOT_HERE = {"ranks", "loss_by_position", "loss_scale", "environment", "batch_tokens"}
unprobed = cache(partial(trained, LONG))


def assert_equal(training, other):
    """The weights and the state of the random numbers are those of the other training, bit for bit."""
    assert all(map(torch.equal, training[0], other[0]))
    assert torch.equal(training[1], other[1])


@pytest.mark.parametrize("kind", WAYS)
def test_a_training_is_the_same_with_all_probes_and_without(kind):
    probed = trained(LONG, kind=kind, every=3)
    assert_equal(probed, unprobed(kind=kind))
    assert len(probed[2]) == 67 + 2  # with the evaluations
    assert not unprobed(kind=kind)[2]


@pytest.mark.parametrize("kind", [kind for kind in WAYS if kind != "compiled"])  # that takes seconds
@pytest.mark.parametrize("name", probe_sets())
def test_a_training_is_the_same_with_each_set(name, kind):
    *training, rows = trained(LONG, kind=kind, every=5, only=name)
    assert_equal(training, unprobed(kind=kind))
    assert rows or name in NOT_HERE


def test_no_number_is_written_that_no_set_declares():
    *_, rows = trained(every=1, kind="clipped")
    declared = {name.split("<")[0] for one in probe_sets().values() for name in one.shows}
    assert {number for _, row in rows for number in row if not number.startswith(tuple(declared))} == set()
    assert [step for step, _ in rows] == list(range(60))


def test_the_numbers_are_what_they_say():
    *_, rows = trained(every=10, kind="clipped")
    _, row = rows[1]
    assert 1e-5 < row["update_ratio/0"] < 0.5
    assert row["params/unchanged_after_step"] == 0
    assert row["params/missing_from_optimizer"] == 0
    assert row["params/trainable_fraction"] == 1
    assert row["grad/norm_after_clipping"] == pytest.approx(0.1, rel=1e-4)
    assert row["grad/norm_before_clipping"] > 0.1
    assert row["lr/0"] == 1e-2
    assert row["model/training"] == 1
    assert row["bn/running_stat_drift"] > 0
    assert abs(row["data/input_mean"]) < 0.2
    assert row["data/input_std"] == pytest.approx(1, abs=0.15)
    assert 0 <= row["dead_fraction/2"] < 1


def faulty(change, batch=None, scaler=None):
    """The last row of a training of five steps whose model or optimizer was changed."""
    torch.manual_seed(0)
    model = Net()
    rows = []
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    change(model, update)
    with sentinel.probe(model, update, to=lambda _, row: rows.append(row), every=1, sets="cheap") as probe:
        for _ in range(5):
            loss = model(torch.randn(8, 12)).square().mean()
            if loss.requires_grad:
                loss.backward()
            update.step()
            update.zero_grad()
            probe.step(batch=batch, scaler=scaler)
    return rows[-1]


def test_a_layer_that_no_optimizer_holds_is_counted():
    def add(model, _):
        model.append(torch.nn.Linear(4, 4))

    assert faulty(add)["params/missing_from_optimizer"] == 2


def test_a_frozen_tensor_in_the_optimizer_is_counted():
    def freeze(model, _):
        model[0].weight.requires_grad_(False)

    row = faulty(freeze)
    assert row["params/frozen_in_optimizer"] == 1
    assert row["params/trainable_fraction"] < 1


def test_weights_that_a_step_leaves_as_they_are_are_seen():
    def stop(_, update):
        update.param_groups[0]["lr"] = 0.0

    row = faulty(stop)
    assert row["params/unchanged_after_step"] == 1
    assert row["update_ratio/0"] == 0


def test_evaluation_mode_in_training_is_seen():
    assert faulty(lambda model, _: model.eval())["model/training"] == 0


def test_a_dead_layer_is_seen():
    def kill(model, _):
        torch.nn.init.constant_(model[1].bias, -100.0)

    assert faulty(kill)["dead_fraction/2"] == 1


def test_padding_and_masked_labels_are_counted():
    batch = {"attention_mask": torch.tensor([[1, 1, 0, 0]]), "labels": torch.tensor([[-100, 5, -100, -100]])}
    row = faulty(lambda *_: None, batch)
    assert row["data/pad_fraction"] == 0.5
    assert row["data/valid_tokens"] == 2
    assert row["data/masked_label_fraction"] == 0.75
    assert row["data/batches_all_masked"] == 0


def test_batches_without_a_label_are_counted_at_each_step(tmp_path):
    log = tmp_path / "log.jsonl"
    model = Net()
    labels = torch.full((2, 4), -100)
    with sentinel.probe(model, torch.optim.SGD(model.parameters(), 0.1), to=log, every=4) as probe:
        for step in range(9):
            probe.step(batch={"labels": labels if step % 2 else labels + 100})
    shares = [json.loads(line)["data/batches_all_masked"] for line in log.read_text().splitlines()]
    assert shares == pytest.approx([0, 2 / 5, 4 / 9])


def test_the_scale_is_that_of_the_scaler():
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(torch.ones(1))
    assert faulty(lambda *_: None, scaler=scaler)["amp/scale"] == 1024


def test_between_two_measurements_nothing_is_hooked():
    model = Net()
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = sentinel.probe(model, update, to=lambda *_: None, every=3, sets="cheap")
    hooked = []
    for _ in range(7):
        hooked.append(bool(model[2]._forward_hooks) and bool(update._optimizer_step_pre_hooks))
        model(torch.randn(8, 12)).sum().backward()
        update.step()
        probe.step()
    assert hooked == [True, False, False, True, False, False, True]
    probe.close()
    assert not update._optimizer_step_pre_hooks
    assert not model[2]._forward_hooks
    assert not any(one._post_accumulate_grad_hooks for one in model.parameters())


def test_no_tensor_outlives_its_measurement():
    model = Net()
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = sentinel.probe(model, update, to=lambda *_: None, every=5, sets="cheap")
    for _ in range(7):
        model(torch.randn(8, 12)).sum().backward()
        update.step()
        probe.step()
    kept = [v for one in probe._sets.values() for v in vars(one).values() if isinstance(v, dict | list)]
    assert not [one for held in kept for one in held if isinstance(one, torch.Tensor)]


def test_a_set_that_raises_is_switched_off_with_one_line_and_the_training_goes_on(monkeypatch, caplog):
    def fail(self, moment):
        raise RuntimeError("what is this model\x1b[2J")

    monkeypatch.setattr(probe_sets()["inputs"], "measure", fail)
    with caplog.at_level(logging.WARNING):
        *_, rows = trained(every=10)
    assert len(rows) == 6
    assert [r.getMessage() for r in caplog.records] == [
        "the probe inputs is off: RuntimeError: what is this model"
    ]


def test_a_slow_set_is_switched_off(monkeypatch, caplog):
    monkeypatch.setattr("sentinel.probes.probe.SLOW_SECONDS", -1.0)
    *_, rows = trained(every=10)
    assert len(rows) == 1
    assert "the probe inputs is off: a measurement took" in caplog.text


def test_a_logger_that_raises_ends_the_probes_and_not_the_training(caplog):
    def refuse(step, numbers):
        raise OSError("No space left on device")

    weights, *_ = trained(every=10, to=refuse)
    assert all(map(torch.equal, weights, trained()[0]))
    assert caplog.text.count("probes are off: the numbers cannot be written: OSError: No space left") == 1


def test_a_compiled_model_has_no_hooks_and_says_so(caplog):
    trained(every=10, kind="compiled")
    assert caplog.text.count("the probe dead_outputs is off") == 1


def test_the_numbers_go_to_json_lines(tmp_path):
    path = tmp_path / "probes.jsonl"
    trained(every=20, to=path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 20, 40]
    assert all(math.isfinite(value) for row in rows for value in row.values())


def test_the_numbers_go_to_tensorboard_and_sentinel_knows_them(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        trained(every=2, to=writer)
    (run,) = sentinel.replay(tmp_path).runs
    assert {"update_ratio", "dead_fraction"} <= {*run.tags}


def test_a_monitor_judges_the_numbers():
    from sentinel.callbacks.monitor import Monitor

    with Monitor(every_seconds=0.01) as monitor:
        trained(every=1, to=monitor)
    assert monitor.failure is None


def test_several_optimizers_are_probed():
    model = Net()
    rows = []
    first = torch.optim.SGD([{"params": model[0].parameters(), "name": "body"}], lr=0.1)
    second = torch.optim.SGD(model[6].parameters(), lr=0.2)
    with sentinel.probe(
        model, [first, second], to=lambda _, row: rows.append(row), every=1, sets="cheap"
    ) as probe:
        model(torch.randn(8, 12)).sum().backward()
        for update in (first, second):
            update.step()
        probe.step()
    assert {"update_ratio/body", "update_ratio/1"} <= rows[0].keys()
    assert rows[0]["params/missing_from_optimizer"] == 4


@pytest.mark.parametrize(("given", "error"), [({"every": 0}, ValueError), ({"to": 3}, TypeError)])
def test_what_cannot_be_used_is_said_at_once(given, error):
    model = Net()
    make = partial(sentinel.probe, model, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(error):
        make(**{"to": print, **given})


def test_a_set_that_hangs_is_interrupted_and_switched_off(monkeypatch, caplog):
    def hang(self, moment):
        threading.Event().wait()

    monkeypatch.setattr("sentinel.probes.deadline.HANG_SECONDS", 0.05)
    monkeypatch.setattr(probe_sets()["inputs"], "measure", hang)
    *_, rows = trained(every=10, only="inputs")
    assert not rows
    assert "the probe inputs is off: TimeoutError: it did not end within 0.05 s" in caplog.text
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_hook_that_raises_ends_its_set_and_not_the_training(monkeypatch, caplog):
    def fail(self, *_):
        raise RuntimeError("in a hook")

    monkeypatch.setattr(probe_sets()["updates"], "_compare", fail)
    weights, *_ = trained(every=10)
    assert all(map(torch.equal, weights, trained()[0]))
    assert caplog.text.count("the probe updates is off: RuntimeError: in a hook") == 1
