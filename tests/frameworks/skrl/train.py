"""PPO on Pendulum with skrl's sequential trainer, logged to TensorBoard.

skrl 2.1.1, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import gymnasium as gym
import torch
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.resources.schedulers.torch import KLAdaptiveLR
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from torch import nn


def layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 32), nn.Tanh(), nn.Linear(32, outputs))


class Policy(GaussianMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        self.net = layers(self.num_observations, self.num_actions)
        self.log_std = nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs, _role):
        return 2 * torch.tanh(self.net(inputs["observations"])), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = layers(self.num_observations, 1)

    def compute(self, inputs, _role):
        return self.net(inputs["observations"]), {}


def main(directory: str, timesteps: int = 6400) -> None:
    socket.gethostname = lambda: "localhost"
    set_seed(0)
    torch.set_num_threads(1)
    env = wrap_env(gym.make_vec("Pendulum-v1", num_envs=4, vectorization_mode="sync"))
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": "cpu"}
    agent = PPO(
        models={"policy": Policy(**spaces), "value": Value(**spaces)},
        memory=RandomMemory(memory_size=128, num_envs=env.num_envs, device="cpu"),
        **spaces,
        cfg={
            "rollouts": 128,
            "learning_epochs": 4,
            "mini_batches": 4,
            "entropy_loss_scale": 0.01,
            "learning_rate_scheduler": KLAdaptiveLR,
            "rewards_shaper": lambda rewards, *_: rewards * 0.01,
            "experiment": {
                "directory": directory,
                "experiment_name": "ppo",
                "write_interval": 128,
                "checkpoint_interval": 0,
            },
        },
    )
    SequentialTrainer(cfg={"timesteps": timesteps}, env=env, agents=agent).train()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
