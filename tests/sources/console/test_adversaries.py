"""The log of a conditional GAN, as the visualizer of pytorch-CycleGAN-and-pix2pix prints it, is judged."""

from pathlib import Path

import numpy as np
import pytest

import sentinel

ROWS = 400


def write(log: Path, *, restores: bool) -> None:
    """Write the losses of a discriminator that comes to tell all samples apart."""
    rng = np.random.default_rng(5)
    share = np.linspace(0, 1, ROWS)
    sure = 0.35 * 10 ** (-3 * share) * rng.lognormal(0, 0.2, (2, ROWS))
    fooled = 1.5 + 7 * share + rng.normal(0, 0.2, ROWS)
    far = 20 * (1 - 0.3 * share if restores else 1 + 0.2 * share) + rng.normal(0, 0.3, ROWS)
    with log.open("w") as file:
        file.write("================ Training Loss (Tue Mar 19 00:36:42 2019) ================\n")
        for row, (real, fake, gan, l1) in enumerate(zip(*sure, fooled, far, strict=True)):
            epoch, step = divmod(row, 20)
            head = f"(epoch: {epoch + 1}, iters: {(step + 1) * 100}, time: 0.125, data: 0.002)"
            file.write(f"{head} G_GAN: {gan:.3f} G_L1: {l1:.3f} D_real: {real:.3f} D_fake: {fake:.3f} \n")


@pytest.mark.parametrize(("restores", "severity"), [(False, "warning"), (True, "info")])
def test_a_discriminator_that_is_logged_in_two_parts_wins(tmp_path, restores, severity):
    """A page where what the generator restores got worse meanwhile, and a note where it got better."""
    write(tmp_path / "loss_log.txt", restores=restores)
    (run,) = sentinel.replay(tmp_path).runs
    (incident,) = (one for one in run.incidents if one.detector == "discriminator-wins")
    assert (incident.tag, incident.severity.name.lower()) == ("D_fake + D_real", severity)
