"""YOLO11n from random weights, detecting and classifying bright rectangles.

ultralytics 8.4.190, torch 2.14.1. Each training writes results.csv, args.yaml and TensorBoard event files
(without the model's graph, which is large). What both print goes to LOG/train.log:
`python -m tests.frameworks.ultralytics.train LOG > LOG/train.log 2>&1`.
"""

import os
import socket
import sys
import tempfile
from pathlib import Path

socket.gethostname = lambda: "localhost"
SCRATCH = Path(tempfile.mkdtemp())
os.environ["YOLO_CONFIG_DIR"] = str(SCRATCH)
os.environ["YOLO_OFFLINE"] = "true"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from torch.utils.tensorboard import SummaryWriter  # noqa: E402
from ultralytics import YOLO, settings  # noqa: E402

SummaryWriter.add_graph = lambda *_: None


def make_data(folder: Path) -> None:
    """Images of a rectangle each, in the layouts for detection and for classification (wide or tall)."""
    random = np.random.default_rng(0)
    for part, count in (("train", 16), ("val", 8)):
        for below in (f"images/{part}", f"labels/{part}", f"kinds/{part}/wide", f"kinds/{part}/tall"):
            (folder / below).mkdir(parents=True)
        for i in range(count):
            left, top, width, height = (*random.integers(0, 24, 2), *random.integers(12, 40, 2))
            pixels = random.integers(0, 60, (64, 64, 3), dtype=np.uint8)
            pixels[top : top + height, left : left + width] = 220
            image = Image.fromarray(pixels)
            image.save(folder / "images" / part / f"{i}.png")
            image.save(folder / "kinds" / part / ("wide" if width > height else "tall") / f"{i}.png")
            box = np.array([left + width / 2, top + height / 2, width, height]) / 64
            (folder / "labels" / part / f"{i}.txt").write_text("0 " + " ".join(map(str, box)) + "\n")
    described = f"path: {folder}\ntrain: images/train\nval: images/val\nnames: {{0: rectangle}}\n"
    (folder / "data.yaml").write_text(described)


def main(log: Path) -> None:
    torch.set_num_threads(1)
    settings.update({"tensorboard": True, "sync": False})
    data = SCRATCH / "data"
    make_data(data)
    places = {"project": log.resolve(), "exist_ok": True, "plots": False, "device": "cpu", "workers": 0}
    sizes = {"batch": 4, "imgsz": 64, "seed": 0}
    YOLO("yolo11n.yaml").train(data=data / "data.yaml", name="detect", epochs=15, **sizes, **places)
    YOLO("yolo11n-cls.yaml").train(data=data / "kinds", name="classify", epochs=20, **sizes, **places)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
