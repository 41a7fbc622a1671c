"""A tiny Llama finetuned on a noisy cycle of tokens: torchtune 0.6.1, torchao 0.10.0, torch 2.13.0.

The recipe runs twice, once with each logger that needs no account.
"""

import runpy
import shutil
import socket
import sys
import warnings
from pathlib import Path

import torch
import torchtune
from omegaconf import OmegaConf
from torch.utils.data import Dataset
from torchtune.models.llama3 import llama3

socket.gethostname = lambda: "localhost"

VOCABULARY = 64
MODEL = {
    "vocab_size": VOCABULARY,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "embed_dim": 64,
    "max_seq_len": 64,
}


class NoTokenizer:
    """What the data are padded with; they are tokens already."""

    pad_id = 0


class NoisyCycle(Dataset):
    """Each token is the one before plus 3, but for one in ten."""

    def __init__(self, _: NoTokenizer, size: int):
        steps = torch.randint(VOCABULARY, (size, 32))
        usual = torch.rand(size, 32) < 0.9
        steps[:, 1:][usual[:, 1:]] = 3
        self.tokens = steps.cumsum(1) % VOCABULARY

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        return {"tokens": self.tokens[index].tolist(), "labels": self.tokens[index].tolist()}


def finetune(directory: Path, logger: dict[str, str], steps: int) -> None:
    """One training of two epochs and ``steps`` optimizer steps in all."""
    base = directory / "base"
    base.mkdir(parents=True)
    torch.manual_seed(0)
    torch.save(llama3(**MODEL).state_dict(), base / "model.pt")
    config = OmegaConf.create(
        {
            "output_dir": str(directory),
            "device": "cpu",
            "dtype": "fp32",
            "seed": 0,
            "model": {"_component_": "torchtune.models.llama3.llama3", **MODEL},
            "tokenizer": {"_component_": "__main__.NoTokenizer"},
            "dataset": {"_component_": "__main__.NoisyCycle", "size": 8 * steps},
            "shuffle": True,
            "batch_size": 8,
            "epochs": 2,
            "max_steps_per_epoch": None,
            "gradient_accumulation_steps": 2,
            "clip_grad_norm": 1.0,
            "compile": False,
            "optimizer_in_bwd": False,
            "optimizer": {"_component_": "torch.optim.AdamW", "lr": 3e-3},
            "lr_scheduler": {
                "_component_": "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup",
                "num_warmup_steps": 10,
            },
            "loss": {"_component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"},
            "checkpointer": {
                "_component_": "torchtune.training.FullModelTorchTuneCheckpointer",
                "checkpoint_dir": str(base),
                "checkpoint_files": ["model.pt"],
                "model_type": "LLAMA3",
                "output_dir": str(directory / "checkpoints"),
            },
            "resume_from_checkpoint": False,
            "metric_logger": logger | {"log_dir": str(directory / "logs")},
            "log_every_n_steps": 1,
        }
    )
    recipes = Path(torchtune.__file__).parents[1] / "recipes"  # files to run, no package
    recipe_class = runpy.run_path(str(recipes / "full_finetune_single_device.py"))[
        "FullFinetuneRecipeSingleDevice"
    ]
    recipe = recipe_class(cfg=config)
    recipe.setup(cfg=config)
    recipe.train()
    recipe.cleanup()
    shutil.rmtree(base)
    shutil.rmtree(directory / "checkpoints")


def main(directory: Path, steps: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    metric_logging = "torchtune.training.metric_logging"
    finetune(directory / "disk", {"_component_": f"{metric_logging}.DiskLogger"}, steps)
    finetune(directory / "tensorboard", {"_component_": f"{metric_logging}.TensorBoardLogger"}, steps)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
