"""Stable-Baselines3's PPO on a pole, with all of its loggers.

Stable-Baselines3 2.9.2, Gymnasium 1.4.0, Torch 2.13.0, TensorBoard 2.21.0; a few seconds on one CPU.
"""

import socket
import sys
from pathlib import Path

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure


def main(directory: Path) -> None:
    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    poles = make_vec_env("CartPole-v1", n_envs=2, seed=0, monitor_dir=str(directory / "monitors"))
    model = PPO("MlpPolicy", poles, n_steps=128, seed=0, device="cpu")
    model.set_logger(configure(str(directory), ["csv", "json", "tensorboard", "log"]))
    model.learn(5000)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
