"""A tiny CLIP trained on plain colours and their names: OpenCLIP 3.3.0, torch 2.13.0."""

import json
import random
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import open_clip
import torch
from open_clip_train.main import main as train
from PIL import Image

socket.gethostname = lambda: "localhost"

VISION = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 16}
TEXT = {"context_length": 12, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1}
MODEL = {"embed_dim": 32, "vision_cfg": VISION, "text_cfg": TEXT}


def write_colours(directory: Path, name: str, count: int) -> Path:
    """Images of one colour each and a table of them with captions."""
    rows = ["filepath\ttitle"]
    for number in range(count):
        red, green, blue = (random.randrange(10) for _ in range(3))
        path = directory / f"{name}{number}.png"
        Image.new("RGB", (32, 32), (25 * red, 25 * green, 25 * blue)).save(path)
        rows.append(f"{path}\tred {red} green {green} blue {blue}")
    table = directory / f"{name}.csv"
    table.write_text("\n".join(rows))
    return table


def main(directory: Path, epochs: int) -> None:
    torch.set_num_threads(1)
    random.seed(0)
    with TemporaryDirectory(dir=".") as data:
        Path(data, "tiny-clip.json").write_text(json.dumps(MODEL))
        open_clip.add_model_config(Path(data, "tiny-clip.json"))
        options = {
            "model": "tiny-clip",
            "dataset-type": "csv",
            "train-data": write_colours(Path(data), "train", 640),
            "val-data": write_colours(Path(data), "val", 64),
            "logs": directory,
            "name": "colours",
            "report-to": "tensorboard",
            "epochs": epochs,
            "batch-size": 32,
            "lr": 1e-3,
            "warmup": 20,
            "log-every-n-steps": 2,
            "workers": 0,
            "save-frequency": 0,
            "device": "cpu",
            "precision": "fp32",
            "seed": 0,
        }
        train([f"--{name}={value}" for name, value in options.items()])
    for checkpoint in directory.rglob("*.pt"):
        checkpoint.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 6)
