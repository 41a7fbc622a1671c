"""torchtitan's debug Llama, pretrained on sums by one process on a CPU: torchtitan 0.3.0, torch 2.13.0.

python -m tests.frameworks.torchtitan.train DIR > DIR/train.log 2>&1
"""

import json
import os
import random
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29533")
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", TORCHDYNAMO_DISABLE="1")
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers

LENGTH = 32  # tokens


def write_tokenizer(directory: Path) -> None:
    """One of characters."""
    directory.mkdir(parents=True)
    tokens = ["<s>", "</s>", "<unk>", *map(chr, range(32, 127))]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>"))
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))


def sums(seed: str) -> Dataset:
    numbers = random.Random(seed)
    pairs = [(numbers.randrange(50), numbers.randrange(50)) for _ in range(2000)]
    return Dataset.from_dict({"text": [f"{a} and {b} are {a + b}." for a, b in pairs]})


def pretend_to_be_an_accelerator() -> None:
    """torchtitan asks the accelerator's module for its memory; without an accelerator it means CUDA's."""
    torch.cpu.get_device_name = lambda _: "CPU"
    torch.cpu.get_device_properties = lambda _: SimpleNamespace(total_memory=16 * 2**30)
    torch.cpu.memory_stats = lambda _: {}
    torch.cpu.reset_peak_memory_stats = torch.cpu.empty_cache = lambda: None
    torch.cpu.current_device = lambda: 0
    torch.distributed.set_timeout = lambda *_: None  # of a newer torch
    torch._utils._get_available_device_type = lambda: "cpu"


def main(directory: Path, steps: int) -> None:
    pretend_to_be_an_accelerator()
    from torchtitan.components.loss import CrossEntropyLoss
    from torchtitan.components.metrics import MetricsProcessor
    from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
    from torchtitan.components.validate import Validator
    from torchtitan.config import TrainingConfig
    from torchtitan.hf_datasets import DatasetConfig, text_datasets
    from torchtitan.models.common.attention import ScaledDotProductAttention
    from torchtitan.models.llama3 import model_registry
    from torchtitan.tools.logging import init_logger
    from torchtitan.trainer import Trainer

    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    init_logger()
    write_tokenizer(directory.parent / "tokenizer")
    text_datasets.DATASETS["sums"] = DatasetConfig("sums", sums, lambda row: row["text"])
    data = text_datasets.HuggingFaceTextDataLoader.Config(dataset="sums")
    model = model_registry("debugmodel")
    del model.model.layers[2:]
    for layer in model.model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()  # the usual one needs a GPU
    config = Trainer.Config(
        model_spec=model,
        hf_assets_path=str(directory.parent / "tokenizer"),
        dump_folder=str(directory),
        loss=CrossEntropyLoss.Config(global_vocab_size=2048),
        optimizer=default_adamw(lr=1e-3),
        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=5),
        training=TrainingConfig(local_batch_size=2, seq_len=LENGTH, steps=steps, disable_cuda_graphs=True),
        dataloader=data,
        metrics=MetricsProcessor.Config(log_freq=2, enable_tensorboard=True, enable_wandb=True),
        validator=Validator.Config(enable=True, freq=10, steps=2, dataloader=data),
        activation_checkpoint=None,
    )
    config.debug.seed = 0
    trainer = config.build()
    trainer.train()
    trainer.close()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
