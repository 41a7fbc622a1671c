"""A tiny OLMo pretrained on a noisy cycle of tokens: ai2-olmo 0.6.0, torch 2.13.0.

python -m tests.frameworks.olmo.train DIR > DIR/train.log 2>&1
"""

import os
import socket
import sys
from pathlib import Path

os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29534")
os.environ.update(NODE_RANK="0", LOCAL_WORLD_SIZE="1", FS_LOCAL_RANK="0")
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
import torch
import wandb
from olmo.config import (
    DistributedStrategy,
    EvaluatorType,
    ModelConfig,
    OptimizerConfig,
    SchedulerConfig,
    SpeedMonitorConfig,
    TrainConfig,
    WandbConfig,
)
from olmo.data import DataCollator, IterableDataset
from olmo.eval import Evaluator
from olmo.model import OLMo
from olmo.optim import build_optimizer, build_scheduler
from olmo.train import Trainer
from olmo.util import prepare_cli_environment
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchmetrics import MeanMetric

VOCABULARY = 64
LENGTH = 32  # tokens
BATCH = 8


def noisy_cycles(count: int, seed: int) -> list[torch.Tensor]:
    """Each token is the one before plus 3, but for one in ten."""
    random = torch.Generator().manual_seed(seed)
    steps = torch.randint(VOCABULARY, (count, LENGTH), generator=random)
    usual = torch.rand((count, LENGTH), generator=random) < 0.9
    steps[:, 1:][usual[:, 1:]] = 3
    return list(steps.cumsum(1) % VOCABULARY)


def main(directory: Path, steps: int) -> None:
    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo")
    prepare_cli_environment()
    size = {"d_model": 64, "n_heads": 2, "n_layers": 2, "max_sequence_length": LENGTH}
    tokens = {"vocab_size": VOCABULARY, "embedding_size": VOCABULARY, "eos_token_id": 0, "pad_token_id": 0}
    config = TrainConfig(
        model=ModelConfig(**size, **tokens),
        optimizer=OptimizerConfig(learning_rate=3e-3, metrics_log_interval=steps + 1),
        scheduler=SchedulerConfig(t_warmup=5),
        save_folder=str(directory),
        save_num_checkpoints_to_keep=0,
        global_train_batch_size=BATCH,
        device_train_batch_size=BATCH,
        device_train_microbatch_size=BATCH,
        max_duration=steps,
        console_log_interval=4,
        max_grad_norm=1.0,
        eval_interval=20,
        speed_monitor=SpeedMonitorConfig(window_size=10),
        wandb=WandbConfig(log_interval=4),
        distributed_strategy=DistributedStrategy.ddp,
        precision="fp32",
    )
    finish = wandb.finish
    wandb.finish = lambda exit_code, **_: finish(exit_code)  # OLMo knows an older one
    wandb.init(dir=directory, project="olmo", config=config.asdict(exclude=["wandb"]))
    model = OLMo(config.model)
    collate = DataCollator.from_train_config(config)
    train = IterableDataset(noisy_cycles(BATCH * steps, seed=0), BATCH)
    held_out = [{"input_ids": row, "metadata": {}} for row in noisy_cycles(32, seed=1)]
    eval_loader = DataLoader(held_out, BATCH, collate_fn=collate)
    optimizer = build_optimizer(config, model)
    trainer = Trainer(
        cfg=config,
        model=model,
        dist_model=DistributedDataParallel(model),
        optim=optimizer,
        scheduler=build_scheduler(config),
        train_loader=DataLoader(train, BATCH, collate_fn=collate),
        device=torch.device("cpu"),
        evaluators=[Evaluator("cycles", EvaluatorType.lm, eval_loader, MeanMetric(nan_strategy="error"))],
    )
    with trainer:
        trainer.fit()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
