"""Each number says what it says it does, on a training that is wrong in one way."""

import pytest

torch = pytest.importorskip("torch", reason="probes are tested by `make test-probes`")

import sentinel  # noqa: E402

torch.set_num_threads(1)
cross_entropy = torch.nn.functional.cross_entropy


def net(dropout=0.0):
    return torch.nn.Sequential(
        torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(16, 4)
    )


def last(model=None, optimizer=None, steps=3, weight=1.0, clears=True, loss_of=None, **training):
    """The numbers of the last of some steps."""
    model = model or net()
    update = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    several = update if isinstance(update, list) else [update]
    found = {}
    with sentinel.probe(
        model, update, to=lambda _, row: found.update(row), every=1, sets="cheap", **training
    ) as probe:
        for _ in range(steps):
            batch = torch.randn(32, 12), torch.randint(0, 4, (32,))
            loss = loss_of(model, batch) if loss_of else cross_entropy(model(batch[0]), batch[1])
            if clears:
                model.zero_grad()
            (weight * loss).backward()
            for one in several:
                one.step()
            probe.step(batch=batch, loss=loss)
    return found


@pytest.mark.parametrize("weight", [1.0, 0.25, 8.0])
def test_the_weight_of_a_loss_is_seen_in_its_gradient(weight):
    assert last(weight=weight)["loss/weight"] == pytest.approx(weight, rel=1e-3)


def test_a_loss_that_is_no_cross_entropy_has_no_weight():
    found = last(loss_of=lambda model, batch: model(batch[0]).square().mean())
    assert "loss/weight" not in found


def test_what_zero_grad_left_is_seen():
    assert last()["grad/carried_over"] == 0
    assert last(clears=False)["grad/carried_over"] > 0.3


def test_a_tensor_that_no_gradient_reaches_is_counted():
    def half(model, batch):
        return cross_entropy(model[3](model[:3](batch[0]).detach()), batch[1])

    assert last(loss_of=half)["grad/never"] == 2
    assert last()["grad/never"] == 0


def test_tensors_in_two_optimizers_are_counted():
    model = net()
    pair = [torch.optim.SGD(one, lr=0.1) for one in (model.parameters(), model[3].parameters())]
    assert last(model, pair)["params/held_twice"] == 2


def test_a_frozen_tensor_that_moves_is_counted():
    model = net()
    update = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    last(model, update)
    model[0].requires_grad_(False)  # its gradient stays
    found = last(model, update, clears=False)
    assert found["params/frozen_moved"] == 2
    assert found["params/frozen_in_optimizer"] == 2


def test_sixteen_bits_lose_small_updates():
    model = net().to(torch.bfloat16)

    def of(inner, batch):
        return cross_entropy(inner(batch[0].to(torch.bfloat16)).float(), batch[1])

    found = last(model, torch.optim.AdamW(model.parameters(), lr=1e-6), loss_of=of)
    assert found["params/lost_updates"] > 0.9
    assert found["params/half_share"] == 1
    assert "params/lost_updates" not in last()


def test_gradients_in_fewer_bits_than_their_weights_are_counted():
    model = net()
    for weights in model[0].parameters():
        weights.grad_dtype = torch.bfloat16
    update = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    found = {}
    with sentinel.probe(model, update, to=lambda _, row: found.update(row), every=1, sets="dtypes") as probe:
        model(torch.randn(32, 12)).sum().backward()
        probe.step()
    assert found["grad/fewer_bits"] == 2
    assert last()["grad/fewer_bits"] == 0


def test_outputs_of_a_regression_are_no_logits():
    model = net()
    found = {}
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    with sentinel.probe(model, update, to=lambda _, row: found.update(row), sets="cheap") as probe:
        probe.step(batch={"labels": torch.zeros(32)}, outputs=torch.zeros(32, 1))
    assert "logits/log_z" not in found


def test_a_head_that_is_a_copy_of_the_embeddings_is_untied():
    class Tied(torch.nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.embed = torch.nn.Embedding(9, 4)
            self.head = torch.nn.Linear(4, 9, bias=False)
            self.head.weight = weight(self.embed.weight)

        def forward(self, tokens):
            return self.head(self.embed(tokens))

    def of(model, batch):
        return cross_entropy(model(batch[1]), batch[1])

    assert last(Tied(lambda one: one), loss_of=of)["params/untied"] == 0
    copied = Tied(lambda one: torch.nn.Parameter(one.detach().clone()))
    assert last(copied, loss_of=of)["params/untied"] == 1


def test_a_scheduler_that_was_not_restored_is_behind():
    model = net()
    update = torch.optim.AdamW(model.parameters(), lr=1e-3)
    last(model, update, steps=20)
    scheduler = torch.optim.lr_scheduler.LinearLR(update)
    update.register_step_post_hook(lambda *_: scheduler.step())
    found = last(model, update, scheduler=scheduler)
    assert found["optim/scheduler_rate"] == 1
    assert found["optim/scheduler_offset"] == 20
    assert found["optim/step_count"] == 23


def test_a_group_that_no_schedule_moves_is_counted():
    model = net()
    groups = [{"params": model[0].parameters()}, {"params": model[3].parameters()}]
    update = torch.optim.SGD(groups, lr=0.1)

    def of(model, batch):
        update.param_groups[0]["lr"] *= 0.9
        return cross_entropy(model(batch[0]), batch[1])

    assert last(model, update, loss_of=of)["optim/groups_left_behind"] == 1
    assert last()["optim/groups_left_behind"] == 0


def evaluated(model, of_training=None, **given):
    """The numbers of one evaluation after one step."""
    found = {}
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    with sentinel.probe(
        model, update, to=lambda _, row: found.update(row), sets="cheap", loss_of=of_training
    ) as probe:
        probe.step(batch=(torch.randn(64, 12), torch.randint(0, 4, (64,))))
        probe.evaluate(**given)
    return found


def test_the_dropout_of_a_recurrent_layer_is_seen_at_an_evaluation():
    model = torch.nn.LSTM(12, 8, 2, dropout=0.3)
    assert evaluated(model)["model/training_at_evaluation"] == 1
    assert evaluated(model.eval())["model/training_at_evaluation"] == 0


def test_dropout_in_training_mode_at_an_evaluation_is_seen():
    assert evaluated(net(0.1))["model/training_at_evaluation"] == 1
    assert evaluated(net(0.1).eval())["model/training_at_evaluation"] == 0


def test_inputs_that_are_normalised_otherwise_are_seen():
    inputs = torch.randn(64, 12)
    assert evaluated(net(), batch=[inputs])["data/eval_input_shift"] < 0.2
    assert evaluated(net(), batch=[255 * inputs])["data/eval_input_shift"] > 5


def test_a_model_that_predicts_one_class_is_seen():
    labels = torch.arange(40) % 4
    scores = torch.nn.functional.one_hot(torch.zeros_like(labels), 4).float()
    found = evaluated(net(), batch=(torch.randn(40, 12), labels), outputs=scores)
    assert found["eval/recall_min"] == 0
    assert found["eval/prediction_entropy"] == pytest.approx(0, abs=1e-6)


def test_boxes_and_features_of_an_evaluation_are_read():
    found = evaluated(net(), boxes=(200, 50), features=(torch.randn(99, 3), 5 + torch.randn(99, 3)))
    assert found["eval/boxes_kept"] == 0.25
    assert found["fid"] == pytest.approx(75, rel=0.3)


def test_images_that_change_nothing_have_no_gain():
    batch = {"images": torch.randn(4, 3), "labels": torch.arange(4)}
    blind = evaluated(net().eval(), of_training=lambda _: torch.ones(()), batch=batch)
    assert blind["vlm/image_gain"] == 0
    seen = evaluated(net().eval(), of_training=lambda b: b["images"][0].sum().abs(), batch=batch)
    assert seen["vlm/image_ablation_delta"] != 0


def rows_of(batches, **more):
    """The rows of a training on given batches."""
    model = net()
    rows = []
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    with sentinel.probe(model, update, to=lambda _, row: rows.append(row), every=10, sets="cheap") as probe:
        for at, batch in enumerate(batches):
            probe.step(batch=batch, **{name: of[at] for name, of in more.items()})
    return rows


def test_batches_and_augmentations_that_come_again_are_seen():
    batches = torch.randn(80, 4, 12)
    twice = batches.repeat_interleave(2, 0)
    assert rows_of(batches)[-1]["data/batches_again"] == 0
    assert rows_of(twice)[-1]["data/batches_again"] == 0.5
    assert rows_of([*batches, *batches])[-1]["data/batches_in_old_order"] == 1
    alike = rows_of(batches, augmentation=torch.randn(40, 8).repeat_interleave(2, 0))
    assert alike[-1]["data/augmentations_again"] == 0.5


def test_a_reference_that_moves_is_seen():
    embed = torch.nn.Embedding(9, 9)
    rows = []
    tokens = {"input_ids": torch.arange(8).reshape(1, 8)}
    update = torch.optim.SGD(embed.parameters(), lr=0.5)
    with sentinel.probe(
        embed, update, to=lambda _, row: rows.append(row), every=1, sets=["reference"], reference=embed
    ) as probe:
        for _ in range(3):
            probe.step(batch=tokens)
            with torch.no_grad():
                embed.weight[0, 1] += 1
    assert rows[0]["dpo/reference_drift"] == 0
    assert rows[-1]["dpo/reference_drift"] > 0.1


def test_a_loop_hands_over_latents_and_logits_and_buffers():
    model = net()
    found = {}
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    with sentinel.probe(
        model, update, to=lambda _, row: found.update(row), sets="cheap", replay=[1, 2, 3]
    ) as probe:
        logits = torch.zeros(2, 32, 5)
        batch = {"labels": torch.zeros(2, 32, dtype=torch.long)}
        probe.step(batch=batch, outputs=logits, latents=5 * torch.randn(999), condition_dropped=[0.0, 1.0])
    assert found["latents/std"] == pytest.approx(5, rel=0.1)
    assert found["data/condition_dropped"] == 0.5
    assert found["logits/log_z"] == pytest.approx(1.609, abs=1e-3)
    assert found["loss/late_early_ratio"] == pytest.approx(1)
    assert found["rl/replay_size"] == 3
    assert found["host/rss"] > 0
