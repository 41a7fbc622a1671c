"""Trainings that a probe does not understand go on as they would without it, and it says what it left out."""

import re
import threading

import pytest

torch = pytest.importorskip("torch", reason="probes are tested by `make test-probes`")

from torch import nn  # noqa: E402

import sentinel  # noqa: E402
from sentinel.probes.discovery import probe_sets  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, about what it calls a prototype or deprecated


def small(first=nn.Linear, **where):
    return nn.Sequential(first(12, 16, **where), nn.ReLU(), nn.Linear(16, 4, **where))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


class Wrapped(nn.Module):
    """A linear layer between what the batch needs before it and after it."""

    def __init__(self, before=lambda batch: batch, after=lambda outputs: outputs, **kept):
        super().__init__()
        self.layer = nn.Linear(12, 4)
        self.before = before
        self.after = after
        for name, part in kept.items():
            setattr(self, name, part)

    def forward(self, batch):
        return self.after(self.layer(self.before(batch)))


class OwnOptimizer:
    """Has groups of parameters, and no state, no rate and no hooks."""

    def __init__(self, model):
        self.param_groups = [{"params": [*model.parameters()]}]

    def zero_grad(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            parameter -= 0.1 * parameter.grad


def hooked():
    model = small()
    of_module = model[1].register_forward_hook(lambda *_: of_module.remove())
    of_tensor = model[0].weight.register_hook(lambda _: of_tensor.remove())
    return model


def normed():
    norms = nn.utils.parametrizations
    return nn.Sequential(
        norms.weight_norm(nn.Linear(12, 16)), nn.ReLU(), norms.spectral_norm(nn.Linear(16, 4))
    )


def rows(_):
    return torch.randn(8, 12)


def texts(_):
    return torch.randint(50, (8,))


def nested(layout):
    return lambda _: torch.nested.nested_tensor([torch.randn(3, 12), torch.randn(5, 12)], layout=layout)


def odd(_):
    sparse = torch.sparse_coo_tensor([[0]], [1.0], (3,))
    several = {"attention_mask": None, "labels": "text", "sparse": sparse, "object": object()}
    return {"x": [torch.randn(8, 12)], "rest": (several for _ in range(1)), **several}


TRAININGS = {
    "parametrised": (normed, sgd, rows, set()),
    "a hook that removes itself": (hooked, sgd, rows, set()),
    "sparse gradients": (
        lambda: nn.Embedding(50, 8, sparse=True),
        lambda model: torch.optim.SparseAdam([*model.parameters()], lr=0.1),
        texts,
        set(),
    ),
    "a rate on a device": (
        small,
        lambda model: torch.optim.AdamW(model.parameters(), torch.tensor(0.1), fused=True),
        rows,
        set(),
    ),
    "a closure": (small, lambda model: torch.optim.LBFGS(model.parameters(), max_iter=4), rows, set()),
    "a scalar and nothing": (
        lambda: Wrapped(scale=nn.Parameter(torch.tensor(2.0)), nothing=nn.Parameter(torch.zeros(0))),
        sgd,
        rows,
        set(),
    ),
    "batches of all sorts": (lambda: Wrapped(before=lambda batch: batch["x"][0]), sgd, odd, set()),
    "lazy": (
        lambda: small(lambda _, wide: nn.LazyLinear(wide)),
        sgd,
        rows,
        {"gradients", "carried_gradients"},
    ),
    "parts on meta": (
        lambda: Wrapped(far=nn.Linear(12, 4, device="meta"), norm=nn.BatchNorm1d(4, device="meta")),
        sgd,
        rows,
        {"updates", "modes"},
    ),
    "on meta": (
        lambda: small(device="meta"),
        sgd,
        lambda _: torch.randn(8, 12, device="meta"),
        {"carried_gradients", "dead_outputs", "gradients", "inputs", "loss_weight", "updates"},
    ),
    "nested": (
        lambda: Wrapped(after=lambda outputs: outputs.to_padded_tensor(0.0)),
        sgd,
        nested(torch.strided),
        {"batches", "inputs"},
    ),
    "jagged": (
        lambda: Wrapped(after=lambda outputs: outputs.values()),
        sgd,
        nested(torch.jagged),
        {"batches", "inputs"},
    ),
    "an optimizer without hooks": (
        small,
        OwnOptimizer,
        rows,
        {"carried_gradients", "gradients", "learning_rates", "missing_gradients", "schedules", "updates"},
    ),
}
"""A model, its optimizer, its batches, and the sets that cannot measure it."""


def trained(model, optimizer, batches, probed, steps=6):
    """The weights, the state of the random numbers and what the probes wrote."""
    torch.manual_seed(0)
    model = model()
    update = optimizer(model)
    written = []
    probe = sentinel.probe(model, update, to=lambda _, row: written.append(row), every=1, sets="cheap")
    if not probed:
        probe.close()
    for step in range(steps):
        batch = batches(step)

        def closure(batch=batch):
            update.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            return loss

        if isinstance(update, torch.optim.LBFGS):
            update.step(closure)
        else:
            closure()
            update.step()
        probe.step(batch=batch)
    if probed:
        probe.evaluate(batch=batch)
    probe.close()
    return [weights.detach() for weights in model.parameters()], torch.get_rng_state(), written


@pytest.mark.parametrize("name", TRAININGS)
def test_an_odd_training_goes_on_and_each_set_that_cannot_measure_it_says_so_once(name, caplog):
    *training, off = TRAININGS[name]
    bare, dice, none = trained(*training, probed=False)
    caplog.clear()
    weights, dice_of_probed, written = trained(*training, probed=True)
    assert torch.equal(dice, dice_of_probed)
    assert all(kept.is_meta or torch.equal(kept, other) for kept, other in zip(bare, weights, strict=True))
    assert not none
    assert len(written) >= 6
    said = re.findall(r"the probe (\w+) is off: ", caplog.text)
    assert sorted(said) == sorted(off)


def test_a_hook_that_hangs_is_interrupted_and_the_training_goes_on(monkeypatch, caplog):
    def hang(self, *_):
        threading.Event().wait()

    monkeypatch.setattr("sentinel.probes.deadline.HANG_SECONDS", 0.05)
    monkeypatch.setattr(probe_sets()["missing_gradients"], "_look", hang)
    bare, *_ = trained(small, sgd, rows, probed=False)
    weights, _, written = trained(small, sgd, rows, probed=True)
    assert all(map(torch.equal, bare, weights))
    assert len(written) >= 6
    assert caplog.text.count("the probe missing_gradients is off: TimeoutError: it did not end within") == 1


def test_sets_that_come_after_one_that_hangs_have_their_own_time(monkeypatch, caplog):
    def hang(self, _):
        threading.Event().wait()

    monkeypatch.setattr("sentinel.probes.deadline.HANG_SECONDS", 0.05)
    for name in "batches", "inputs":
        monkeypatch.setattr(probe_sets()[name], "measure", hang)
    *_, written = trained(small, sgd, rows, probed=True)
    assert re.findall(r"the probe (\w+) is off: TimeoutError", caplog.text) == ["batches", "inputs"]
    assert "params/untied" in written[0]


def test_no_set_waits_for_a_device(monkeypatch, caplog):
    """Tensors on meta have no numbers, so whatever asks for one raises. On a GPU it would wait."""
    monkeypatch.setattr("sentinel.probes.probe._on_the_way", lambda numbers: dict.fromkeys(numbers, 0.0))
    model = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 4))
    model = model.to("meta")
    update = torch.optim.AdamW(model.parameters(), lr=0.1)
    (group,) = update.param_groups
    reference = nn.Embedding(4, 4, device="meta").eval()
    written = []
    probe = sentinel.probe(
        model,
        update,
        to=lambda _, row: written.append(row),
        every=1,
        sets="cheap",
        reference=reference,
        loss_of=lambda batch: model(batch["images"]).mean(),
    )
    inputs = torch.randn(8, 12, device="meta")
    labels = torch.zeros(8, dtype=torch.long, device="meta")
    texts = torch.zeros(2, 32, dtype=torch.long, device="meta")
    batch = {"images": inputs, "labels": labels, "input_ids": texts, "attention_mask": texts}
    for _ in range(4):
        scores = model(inputs)
        update.zero_grad()
        nn.functional.cross_entropy(scores, labels).backward()
        update.step()
        group["lr"] = torch.tensor(0.1, device="meta")
        probe.step(batch=batch, outputs=scores, latents=inputs, condition_dropped=labels)
        group["lr"] = 0.1
    model.eval()
    probe.evaluate(batch=batch, outputs=scores)
    probe.close()
    assert not caplog.text
    assert {"update_ratio/0", "data/pad_fraction", "loss/weight", "dpo/reference_drift"} <= written[2].keys()
    assert {"eval/recall_min", "vlm/image_gain", "data/eval_input_shift"} <= written[-1].keys()
