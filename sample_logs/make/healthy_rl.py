"""PPO learns to balance a pole."""

from pathlib import Path

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure


def train(logs: Path) -> None:
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=4, seed=0), n_steps=128, seed=0, device="cpu")
    model.set_logger(configure(str(logs), ["tensorboard"]))
    model.learn(60_000)
