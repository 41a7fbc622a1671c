"""A small regression trained by DeepSpeed 0.19.8 (torch 2.13.0) in one process: monitors and console."""

import os
import socket
import sys
from pathlib import Path

import deepspeed
import torch
from deepspeed.utils.logging import set_log_level_from_string
from torch import nn

socket.gethostname = lambda: "localhost"

SIZE = 16


def main(directory: Path, steps: int) -> None:
    """Train for ``steps`` optimizer steps of two micro-batches each."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    set_log_level_from_string("info")
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    network = nn.Sequential(nn.Linear(SIZE, 64), nn.ReLU(), nn.Linear(64, 1))
    monitor = {"enabled": True, "output_path": str(directory), "job_name": "regression"}
    engine, _, _, _ = deepspeed.initialize(
        model=network,
        model_parameters=network.parameters(),
        config={
            "train_micro_batch_size_per_gpu": 32,
            "gradient_accumulation_steps": 2,
            "gradient_clipping": 1.0,
            "steps_per_print": 5,
            "wall_clock_breakdown": True,
            "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "torch_adam": True}},
            "scheduler": {
                "type": "WarmupDecayLR",
                "params": {"warmup_max_lr": 3e-3, "warmup_num_steps": 10, "total_num_steps": steps},
            },
            "csv_monitor": monitor | {"job_name": "csv"},
            "tensorboard": monitor | {"job_name": "tensorboard"},
        },
        dist_init_required=True,
    )
    weights = torch.randn(SIZE, 1)
    for _ in range(2 * steps):
        inputs = torch.randn(32, SIZE)
        targets = torch.tanh(inputs @ weights) + 0.1 * torch.randn(32, 1)
        loss = nn.functional.mse_loss(engine(inputs), targets)
        engine.backward(loss)
        engine.step()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60)
