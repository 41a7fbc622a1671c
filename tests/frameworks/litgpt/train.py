"""A tiny GPT pretrained on a noisy cycle of tokens: LitGPT 0.5.13, Lightning 2.6.6, torch 2.13.0.

python -m tests.frameworks.litgpt.train DIR > DIR/train.log 2>&1
"""

import os
import shutil
import socket
import sys
from pathlib import Path

os.environ["TORCHDYNAMO_DISABLE"] = "1"
os.environ["JSONARGPARSE_DEPRECATION_WARNINGS"] = "off"
import torch
from litgpt.args import EvalArgs, TrainArgs
from litgpt.config import Config
from litgpt.data import DataModule
from litgpt.pretrain import setup
from torch.utils.data import DataLoader

socket.gethostname = lambda: "localhost"

VOCABULARY = 64
LENGTH = 32  # tokens


class NoisyCycle(DataModule):
    """Each token is the one before plus 3, but for one in ten."""

    def connect(self, batch_size, **_):
        self.batch_size = batch_size

    def batches(self, count: int, seed: int) -> DataLoader:
        random = torch.Generator().manual_seed(seed)
        steps = torch.randint(VOCABULARY, (count, LENGTH + 1), generator=random)
        usual = torch.rand((count, LENGTH + 1), generator=random) < 0.9
        steps[:, 1:][usual[:, 1:]] = 3
        return DataLoader(steps.cumsum(1) % VOCABULARY, self.batch_size)

    def train_dataloader(self) -> DataLoader:
        return self.batches(100_000, seed=0)

    def val_dataloader(self) -> DataLoader:
        return self.batches(32, seed=1)


def main(directory: Path, steps: int) -> None:
    """Train for ``steps`` optimizer steps of two micro-batches each."""
    del sys.argv[2:]  # LitGPT would read them as its own
    torch.set_num_threads(1)
    size = {"n_layer": 2, "n_embd": 64, "n_head": 4, "block_size": LENGTH, "padded_vocab_size": VOCABULARY}
    setup(
        "pythia-14m",
        Config.from_name("pythia-14m", **size),
        out_dir=directory,
        precision="32-true",
        devices=1,
        data=NoisyCycle(),
        train=TrainArgs(
            global_batch_size=16,
            micro_batch_size=8,
            log_interval=1,
            save_interval=None,
            max_tokens=steps * 16 * LENGTH,
            max_norm=1.0,
            lr_warmup_steps=20,
            min_lr=1e-4,
        ),
        eval=EvalArgs(interval=40, max_iters=4),
        optimizer={"class_path": "torch.optim.AdamW", "init_args": {"lr": 3e-3}},
        logger_name="csv",
    )
    shutil.rmtree(directory / "final")  # the checkpoint


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
