"""A tiny Llama trained by Levanter 1.2.dev1644 (jax 0.7.2) on a noisy cycle of tokens; TensorBoard."""

import logging
import os
import shutil
import socket
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

import haliax as hax
import jax
import levanter
import numpy as np
from levanter import callbacks
from levanter.data import ListAsyncDataset
from levanter.distributed import RayConfig
from levanter.models.llama import LlamaConfig
from levanter.models.lm_model import LmExample, compute_next_token_loss
from levanter.optim import AdamConfig
from levanter.run_pipeline.json_logger import JsonLoggerConfig
from levanter.run_pipeline.tensorboard import TensorboardConfig
from levanter.trainer import Trainer, TrainerConfig

socket.gethostname = lambda: "localhost"

VOCABULARY = 64
LENGTH = 32
BATCH = 16


def examples(count: int, seed: int, length: hax.Axis) -> ListAsyncDataset:
    """Each token is the one before plus 3, but for one in ten."""
    random = np.random.default_rng(seed)
    shape = (count, LENGTH)
    steps = np.where(random.random(shape) < 0.9, 3, random.integers(VOCABULARY, size=shape))
    tokens = (steps.cumsum(1) % VOCABULARY).astype(np.int32)
    return ListAsyncDataset([LmExample.causal(hax.named(row, length)) for row in tokens], is_complete=True)


def main(directory: Path, steps: int) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    config = TrainerConfig(
        id="cycle",
        run_pipeline=(TensorboardConfig(logdir=str(directory / "tensorboard")), JsonLoggerConfig()),
        log_dir=directory / "text",
        train_batch_size=BATCH,
        num_train_steps=steps,
        steps_per_eval=20,
        log_jaxprs=False,
        log_xla_hlo=False,
        checkpointer=levanter.checkpoint.CheckpointerConfig(base_path=str(directory / "checkpoints")),
        load_checkpoint=False,
        ray=RayConfig(auto_start_cluster=False),
        require_accelerator=False,
    )
    config.initialize()
    model = LlamaConfig(
        seq_len=LENGTH, hidden_dim=64, intermediate_dim=128, num_layers=2, num_heads=4, num_kv_heads=2
    )
    optimizer = AdamConfig(learning_rate=3e-3, warmup=10).build(steps)
    with Trainer(config, optimizer, compute_next_token_loss) as trainer:
        model_key, training_key = jax.random.split(jax.random.PRNGKey(0))
        vocabulary = hax.Axis("vocab", VOCABULARY)
        state = trainer.initial_state(training_key, model_init=lambda: model.build(vocabulary, key=model_key))
        trainer.add_eval_hook(examples(64, 1, model.Pos))
        trainer.add_hook(
            callbacks.log_performance_stats(LENGTH, trainer.config.batch_schedule, None), every=1
        )
        loader = trainer.data_loader(examples(BATCH * steps, 0, model.Pos))
        trainer.train(state, loader.iter_from_step(0))
    trainer.run_pipeline.finish()
    shutil.rmtree(directory / "checkpoints", ignore_errors=True)
    shutil.rmtree(directory / "text")  # the JSON logger's lines


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60)
