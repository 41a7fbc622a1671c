"""DQN on CartPole with Stable-Baselines3, through its four loggers: console, TensorBoard, CSV and JSON.

stable-baselines3 2.9.2, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import gymnasium as gym
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor


def main(directory: str, steps: int = 10_000) -> None:
    socket.gethostname = lambda: "localhost"
    torch.set_num_threads(1)
    model = DQN(
        "MlpPolicy",
        Monitor(gym.make("CartPole-v1"), f"{directory}/dqn/0"),
        learning_rate=1e-3,
        learning_starts=500,
        batch_size=64,
        target_update_interval=250,
        train_freq=8,
        gradient_steps=4,
        exploration_fraction=0.3,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
    )
    model.set_logger(configure(f"{directory}/dqn", ["stdout", "tensorboard", "csv", "json"]))
    watch = EvalCallback(
        Monitor(gym.make("CartPole-v1")), eval_freq=steps // 5, n_eval_episodes=3, log_path=f"{directory}/dqn"
    )
    model.learn(steps, log_interval=20, callback=watch)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
