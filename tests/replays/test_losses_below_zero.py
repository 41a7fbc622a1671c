"""Losses that cross zero: likelihoods of flows, Dice losses. No rule about curves may mistake their sign."""

import json

import numpy as np
import pytest

from sentinel.api import replay


def log(directory, rows):
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def pages(directory):
    (run,) = replay(directory).to_dict()["runs"]
    return {
        one["detector"]
        for one in run["incidents"]
        if one["severity"] in ("warning", "critical") and not one["inhibited_by"]
    }


def curve(points, first, last, shape):
    """A loss that falls from ``first`` to ``last``, fast at first."""
    progress = np.linspace(0, 1, points)
    return last + (first - last) * (np.exp(-shape * progress) - np.exp(-shape)) / (1 - np.exp(-shape))


HEALTHY = {
    "flow": (1.3, -1.9),
    "density of images": (0.4, -3.6),
    "Dice and cross-entropy": (0.2, -0.8),
    "similarity of two views": (-0.05, -0.93),
    "around zero": (0.5, -0.05),
}


@pytest.mark.slow
@pytest.mark.parametrize("points", [12, 40, 120, 600])
@pytest.mark.parametrize("name", HEALTHY)
def test_a_likelihood_that_crosses_zero_is_no_trouble(tmp_path, name, points):
    first, last = HEALTHY[name]
    random = np.random.default_rng(points)
    train = curve(points, first, last, 4) + 0.02 * random.standard_normal(points)
    held_out = curve(points, first + 0.05, last + 0.12, 4) + 0.02 * random.standard_normal(points)
    rows = zip(range(points), train.tolist(), held_out.tolist(), strict=True)
    log(tmp_path, ({"epoch": at, "train_loss": one, "val_loss": other} for at, one, other in rows))
    assert pages(tmp_path) == set()


@pytest.mark.slow
@pytest.mark.parametrize("points", [120, 600])
@pytest.mark.parametrize("name", ["flow", "density of images"])
def test_a_likelihood_that_leaves_its_level_below_zero_is_told(tmp_path, name, points):
    first, last = HEALTHY[name]
    random = np.random.default_rng(points)
    falls = curve(points * 2 // 3, first, last, 6)
    train = np.append(falls, np.linspace(last, first, points - len(falls)))
    train = train + 0.02 * random.standard_normal(points)
    log(tmp_path, ({"step": at, "loss": one} for at, one in enumerate(train.tolist())))
    assert "loss-divergence" in pages(tmp_path)


@pytest.mark.slow
def test_held_out_data_that_get_worse_across_zero_are_told(tmp_path):
    first, last = HEALTHY["flow"]
    points = 120
    random = np.random.default_rng(points)
    train = curve(points, first, last - 1, 4) + 0.02 * random.standard_normal(points)
    held_out = np.append(curve(40, first, last, 6), np.linspace(last, first, 80))
    rows = zip(range(points), train.tolist(), held_out.tolist(), strict=True)
    log(tmp_path, ({"epoch": at, "train_loss": one, "val_loss": other} for at, one, other in rows))
    assert pages(tmp_path) & {"generalization-gap", "loss-divergence"}
