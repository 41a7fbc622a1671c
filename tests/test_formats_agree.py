"""One training, logged in every format: the same incidents at the same steps."""

import random
from itertools import islice
from pathlib import Path

import numpy as np

from sentinel.config import Config
from sentinel.replay import replay
from tests.sources.writers import WRITERS
from tests.survival import rows

STEPS = 220


def test_the_same_training_gives_the_same_incidents_from_every_format(tmp_path: Path) -> None:
    logged = [
        {tag: float(np.float32(value)) for tag, value in row.items()}  # all that TensorBoard keeps
        for row in islice(rows(random.Random(3)), STEPS)
    ]
    told = {}
    for format_, writer in WRITERS.items():
        directory = tmp_path / format_
        directory.mkdir()
        log = writer()
        log.start(directory)
        for step, row in enumerate(logged):
            log.log(step, row)
        log.close()
        (run,) = replay([directory], Config(), lambda *_: None).runs
        told[format_] = [
            (i.detector, i.severity, i.onset_step, i.fired_step, i.state, i.summary)
            for i in run.incidents.values()
        ]
    expected = told["jsonl"]
    assert {detector for detector, *_ in expected} == {
        "clipped-completion-ratio",
        "kl-blowup",
        "reward-zero-std",
    }
    assert told == dict.fromkeys(WRITERS, expected)
