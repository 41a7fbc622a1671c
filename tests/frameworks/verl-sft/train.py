"""A tiny Llama finetuned to add by verl's SFT trainer, on a CPU: verl 0.9.1, torch 2.13.0.

python -m tests.frameworks.verl-sft.train DIR > DIR/train.log 2>&1
"""

import logging
import os
import random
import socket
import sys
from pathlib import Path

os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29535")
os.environ.update(VERL_PLATFORM="cpu", VERL_ENGINE_DEVICE="cuda")
os.environ["TORCHDYNAMO_DISABLE"] = "1"
import torch
from datasets import Dataset
from hydra import compose, initialize_config_module
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from verl.plugin.platform import PlatformRegistry
from verl.plugin.platform.platform_cuda import PlatformCUDA

for counter in ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"):
    setattr(torch.cpu, counter, lambda: 0)  # an accelerator has these
torch.cpu.empty_cache = lambda: None
torch.cpu.mem_get_info = lambda: (2**30, 2**30)
torch.cpu.get_rng_state = torch.get_rng_state
torch.cpu.set_rng_state = torch.set_rng_state

TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"


@PlatformRegistry.register("cpu")
class CPU(PlatformCUDA):
    """verl knows accelerators only; this one needs none."""

    device_name = "cpu"
    device_module = torch.cpu

    def is_available(self):
        return True

    def current_device(self):
        return "cpu"

    def set_device(self, device_index):
        pass

    def manual_seed(self, seed):
        torch.manual_seed(seed)

    def empty_cache(self):
        pass

    def synchronize(self, device_index=None):
        pass

    def communication_backend_name(self):
        return "gloo"


def write_model(directory: Path) -> None:
    """A Llama with random weights and a tokenizer of characters."""
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    tokens = [*special.values(), "\n", *map(chr, range(32, 127))]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE, **special).save_pretrained(
        directory
    )
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=128, **size)).save_pretrained(directory)


def write_sums(path: Path, count: int) -> None:
    numbers = random.Random(str(path))
    pairs = [(numbers.randrange(50), numbers.randrange(50)) for _ in range(count)]
    chats = [[("user", f"Add {a} and {b}."), ("assistant", str(a + b))] for a, b in pairs]
    rows = [[{"role": role, "content": text} for role, text in chat] for chat in chats]
    Dataset.from_dict({"messages": rows}).to_parquet(path)


def main(directory: Path, steps: int) -> None:
    from verl.trainer.sft_trainer import SFTTrainer

    socket.gethostname = lambda: "localhost"
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)  # it warns with a path
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.update(TENSORBOARD_DIR=str(directory / "tensorboard"), VERL_FILE_LOGGER_ROOT=str(directory))
    write_model(Path("model"))
    write_sums(Path("train.parquet"), 8 * steps)
    write_sums(Path("val.parquet"), 16)
    torch.distributed.init_process_group("gloo")
    settings = [
        "model.path=model",
        "model.use_remove_padding=False",
        "+model.override_config.attn_implementation=sdpa",
        "engine.strategy=fsdp2",
        "optim.lr=3e-3",
        "data.train_files=train.parquet",
        "data.val_files=val.parquet",
        "data.train_batch_size=8",
        "data.micro_batch_size_per_gpu=8",
        "data.use_dynamic_bsz=False",
        "data.num_workers=0",
        "data.max_length=64",
        "data.ignore_input_ids_mismatch=True",
        "trainer.device=cpu",
        "trainer.logger=[console,file,tensorboard]",
        "trainer.project_name=sft",
        "trainer.experiment_name=sums",
        "trainer.total_epochs=1",
        "trainer.test_freq=20",
        "trainer.resume_mode=disable",
        "checkpoint.save_contents=[]",
    ]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("sft_trainer_engine", settings)
    SFTTrainer(config).fit()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
