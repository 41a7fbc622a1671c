"""A tiny Llama trained by OLMo-core 3.0.0 (torch 2.13.0) on a noisy cycle of tokens; its console."""

import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from olmo_core.data import NumpyDataLoaderConfig, NumpyFSLDatasetConfig, TokenizerConfig
from olmo_core.nn.attention import AttentionBackendName
from olmo_core.nn.transformer import TransformerConfig
from olmo_core.optim import AdamWConfig, CosWithWarmup
from olmo_core.train import (
    Duration,
    TrainerConfig,
    prepare_training_environment,
    teardown_training_environment,
)
from olmo_core.train.callbacks import ConsoleLoggerCallback, MetricSaverCallback, SpeedMonitorCallback
from olmo_core.train.train_module import TransformerTrainModuleConfig

socket.gethostname = lambda: "localhost"

VOCABULARY = 64
LENGTH = 32


def write_tokens(path: Path, count: int) -> None:
    """Each token is the one before plus 3, but for one in ten."""
    random = np.random.default_rng(0)
    steps = np.where(random.random(count) < 0.9, 3, random.integers(VOCABULARY, size=count))
    (steps.cumsum() % VOCABULARY).astype(np.uint16).tofile(path)


def main(directory: Path, steps: int) -> None:
    torch.set_num_threads(1)
    prepare_training_environment(seed=0, backend=None)
    with TemporaryDirectory(dir=".") as data:
        write_tokens(Path(data, "tokens.npy"), 16 * LENGTH * (steps + 20))
        model = TransformerConfig.llama_like(
            d_model=64, vocab_size=VOCABULARY, n_layers=2, n_heads=4, attn_backend=AttentionBackendName.torch
        )
        module = TransformerTrainModuleConfig(
            rank_microbatch_size=8 * LENGTH,
            max_sequence_length=LENGTH,
            optim=AdamWConfig(lr=3e-3),
            max_grad_norm=1.0,
            scheduler=CosWithWarmup(warmup_steps=10),
        ).build(model.build(init_device="cpu"), torch.device("cpu"))
        tokenizer = TokenizerConfig(
            vocab_size=VOCABULARY, eos_token_id=VOCABULARY, pad_token_id=VOCABULARY + 1
        )
        dataset = NumpyFSLDatasetConfig(
            paths=[f"{data}/tokens.npy"], sequence_length=LENGTH, tokenizer=tokenizer, work_dir=data
        ).build()
        loader = NumpyDataLoaderConfig(global_batch_size=16 * LENGTH, seed=0, num_workers=0).build(dataset)
        trainer = TrainerConfig(
            save_folder=str(directory / "save"),
            save_overwrite=True,
            no_checkpoints=True,
            device="cpu",
            max_duration=Duration.steps(steps),
            metrics_collect_interval=2,
            callbacks={
                "console_logger": ConsoleLoggerCallback(metrics_log_interval=2),
                "metric_saver": MetricSaverCallback(),
                "speed_monitor": SpeedMonitorCallback(),
            },
        ).build(module, loader)
        trainer.fit()
    teardown_training_environment()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
