"""PPO that learns to hold point masses at the origin, with rsl_rl's on-policy runner; TensorBoard and W&B.

rsl-rl-lib 5.5.1, torch 2.13.0 on a CPU, wandb 0.31.0 offline.
"""

import os
import socket
import sys
from dataclasses import dataclass

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict


@dataclass
class Settings:
    episode_length: int = 40


class PointMasses(VecEnv):
    """A force moves each mass on a line; it starts anew after a while."""

    num_envs = 32
    num_actions = 1
    device = "cpu"
    cfg = Settings()
    max_episode_length = cfg.episode_length

    def __init__(self):
        self.state = 2 * torch.rand(self.num_envs, 2) - 1
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)

    def get_observations(self):
        return TensorDict({"policy": self.state.clone()}, batch_size=self.num_envs)

    def step(self, actions):
        place, speed = self.state.unbind(1)
        speed = 0.9 * speed + 0.2 * actions[:, 0].clamp(-1, 1)
        self.state = torch.stack([place + 0.2 * speed, speed], dim=1)
        self.episode_length_buf += 1
        rewards = -(self.state[:, 0] ** 2) - 0.1 * speed**2
        dones = self.episode_length_buf >= self.max_episode_length
        log = {"Episode_Reward/position": rewards.mean(), "Episode_Termination/time_out": dones.sum()}
        self.state[dones] = 2 * torch.rand(int(dones.sum()), 2) - 1
        self.episode_length_buf[dones] = 0
        return self.get_observations(), rewards, dones.long(), {"time_outs": dones, "log": log}


def main(directory: str, iterations: int = 25) -> None:
    socket.gethostname = lambda: "localhost"
    os.environ |= {"WANDB_MODE": "offline", "WANDB_DIR": directory, "WANDB_CONSOLE": "off"}
    os.environ |= {"WANDB_X_DISABLE_META": "true", "WANDB_X_DISABLE_STATS": "true"}
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    settings = {
        "num_steps_per_env": 24,
        "save_interval": 10_000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**model, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
        "critic": model.copy(),
        "algorithm": {"class_name": "PPO", "learning_rate": 1e-3, "schedule": "adaptive", "desired_kl": 0.01},
        "logger": {"class_name": "WandbLogWriter", "project_name": "point-masses"},
    }
    runner = OnPolicyRunner(PointMasses(), settings, log_dir=f"{directory}/ppo", device="cpu")
    runner.logger.git_status_repos.clear()
    runner.learn(iterations)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
