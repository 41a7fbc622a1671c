"""A linear classifier in JAX, logged through flax's SummaryWriter and CLU's metric writers.

flax 0.12.8, clu 0.0.12, jax 0.10.2, tensorflow-cpu 2.21.0. Writes TensorBoard event files; `clu` logs the
same through create_default_writer. TensorFlow puts the host's name into the names of files; `unshare --uts`
gives another one.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
from clu import metric_writers
from flax.metrics.tensorboard import SummaryWriter


def main(log):
    points = jax.random.uniform(jax.random.key(0), (800, 2))
    kinds = (points.sum(1) * 1.5).astype(int)
    weights = {"first": jax.random.normal(jax.random.key(1), (2, 32)), "last": jnp.zeros((32, 3))}
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.02, 20, 240)
    optimizer = optax.adam(schedule)
    state = optimizer.init(weights)

    def objective(weights, points, kinds):
        scores = jax.nn.relu(points @ weights["first"]) @ weights["last"]
        loss = optax.softmax_cross_entropy_with_integer_labels(scores, kinds).mean()
        return loss, (scores.argmax(1) == kinds).mean()

    @jax.jit
    def update(weights, state, points, kinds):
        (loss, right), slopes = jax.value_and_grad(objective, has_aux=True)(weights, points, kinds)
        changes, state = optimizer.update(slopes, state, weights)
        return optax.apply_updates(weights, changes), state, loss, right, optax.global_norm(slopes)

    board = SummaryWriter(log / "flax")
    writer = metric_writers.create_default_writer(str(log / "clu"), asynchronous=False)
    for step in range(1, 241):
        batch = jnp.arange(32) * 20 + step % 20
        weights, state, loss, right, norm = update(weights, state, points[batch], kinds[batch])
        if step % 5 == 0:
            logged = {"train_loss": loss, "train_accuracy": right, "grad_norm": norm}
            writer.write_scalars(step, {**logged, "learning_rate": schedule(step)})
            for name, value in {**logged, "learning_rate": schedule(step)}.items():
                board.scalar(name, value, step)
    board.flush()
    writer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
