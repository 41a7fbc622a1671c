"""A small classifier under Keras's fit, with validation.

keras 3.15.1 on tensorflow-cpu 2.21.0. Writes TensorBoard event files of train/ and validation/, by epoch and
by batch, and CSVLogger's file. What fit prints goes to LOG/train.log:
`python -m tests.frameworks.keras.train LOG > LOG/train.log 2>&1`. TensorFlow puts the host's name into the
names of files; `unshare --uts` gives another one.
"""

import os
import socket
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"
socket.gethostname = lambda: "localhost"

import keras  # noqa: E402
import numpy as np  # noqa: E402


def main(log):
    keras.utils.set_random_seed(0)
    points = np.random.default_rng(0).random((1200, 2), dtype=np.float32)
    kinds = (points.sum(1) * 1.5).astype(int)
    layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((2,)), *layers])
    model.compile(
        optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 400)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        points[:800],
        kinds[:800],
        validation_data=(points[800:], kinds[800:]),
        batch_size=32,
        epochs=16,
        callbacks=[
            keras.callbacks.TensorBoard(log / "tensorboard", write_graph=False, update_freq=10),
            keras.callbacks.CSVLogger(log / "csv" / "history.csv"),
        ],
    )


if __name__ == "__main__":
    (Path(sys.argv[1]) / "csv").mkdir(parents=True, exist_ok=True)
    main(Path(sys.argv[1]))
