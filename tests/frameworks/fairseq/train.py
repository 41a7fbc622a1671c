"""A small language model of counted words, trained by fairseq's command line, once for each log format.

fairseq 0.12.2, torch 1.12.1, Python 3.8. Both write TensorBoard event files; `simple` and `json` are the
formats of their console logs.
"""

import multiprocessing
import random
import socket
import sys
import tempfile
from pathlib import Path

socket.gethostname = lambda: "localhost"

from fairseq_cli import preprocess, train  # noqa: E402

MODEL = [
    *("--arch", "transformer_lm", "--decoder-embed-dim", "32", "--decoder-ffn-embed-dim", "64"),
    *("--decoder-layers", "2", "--decoder-attention-heads", "2", "--dropout", "0"),
]
TRAINING = [
    *("--optimizer", "adam", "--lr", "0.005", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "20"),
    *("--clip-norm", "1", "--tokens-per-sample", "32", "--batch-size", "16", "--max-update", "120"),
    *(
        "--log-interval",
        "10",
        "--validate-interval-updates",
        "40",
        "--no-save",
        "--cpu",
        "--num-workers",
        "0",
    ),
]


def make_data(folder):
    """Sentences that count up by threes."""
    for part, count in (("train", 2000), ("valid", 100)):
        starts = [random.randrange(50) for _ in range(count)]
        lines = [" ".join(f"w{(start + 3 * i) % 50}" for i in range(12)) for start in starts]
        (folder / part).write_text("\n".join(lines) + "\n")
    sys.argv = ["fairseq-preprocess", "--only-source", "--trainpref", str(folder / "train")]
    sys.argv += ["--validpref", str(folder / "valid"), "--destdir", str(folder / "data"), "--workers", "1"]
    preprocess.cli_main()


def main(log):
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        make_data(Path(folder))
        for form in ("simple", "json"):
            place = log / form
            place.mkdir(parents=True, exist_ok=True)
            sys.argv = ["fairseq-train", f"{folder}/data", "--task", "language_modeling", "--seed", "1"]
            sys.argv += [*MODEL, *TRAINING, "--log-format", form, "--log-file", str(place / "train.log")]
            sys.argv += ["--tensorboard-logdir", str(place / "tensorboard")]
            training = multiprocessing.Process(target=train.cli_main)
            training.start()
            training.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
