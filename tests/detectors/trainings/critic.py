"""PPO of Stable-Baselines3 on a pendulum. Sick: no weight of the loss is left for the critic.

python -m tests.detectors.trainings.critic sick > tests/detectors/trainings/critic-sick.jsonl
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure


def train(weight: float) -> None:
    """Learn for 100,000 steps with the settings that are known to work."""
    with TemporaryDirectory() as directory:
        model = PPO(
            "MlpPolicy",
            make_vec_env("Pendulum-v1", n_envs=4, seed=0),
            gamma=0.9,
            learning_rate=1e-3,
            n_steps=512,
            batch_size=64,
            use_sde=True,
            sde_sample_freq=4,
            vf_coef=weight,
            seed=0,
            device="cpu",
        )
        model.set_logger(configure(directory, ["json"]))
        model.learn(100_000)
        print((Path(directory) / "progress.json").read_text(), end="")


if __name__ == "__main__":
    train(0.5 if sys.argv[1] == "healthy" else 0.0)
