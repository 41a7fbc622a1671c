"""SAC on Pendulum with skrl's sequential trainer, logged to TensorBoard.

skrl 2.1.1, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import gymnasium as gym
import torch
from skrl.agents.torch.sac import SAC
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from torch import nn


def layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, outputs))


class Actor(GaussianMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self, clip_actions=True)
        self.net = layers(self.num_observations, self.num_actions)
        self.log_std = nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs, _role):
        return 2 * torch.tanh(self.net(inputs["observations"])), {"log_std": self.log_std}


class Critic(DeterministicMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = layers(self.num_observations + self.num_actions, 1)

    def compute(self, inputs, _role):
        return self.net(torch.cat([inputs["observations"], inputs["taken_actions"]], dim=1)), {}


def main(directory: str, timesteps: int = 4000) -> None:
    socket.gethostname = lambda: "localhost"
    set_seed(0)
    torch.set_num_threads(1)
    env = wrap_env(gym.make_vec("Pendulum-v1", num_envs=4, vectorization_mode="sync"))
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": "cpu"}
    critics = ("critic_1", "critic_2", "target_critic_1", "target_critic_2")
    agent = SAC(
        models={"policy": Actor(**spaces), **{name: Critic(**spaces) for name in critics}},
        memory=RandomMemory(memory_size=timesteps, num_envs=env.num_envs, device="cpu"),
        **spaces,
        cfg={
            "batch_size": 128,
            "random_timesteps": 100,
            "learning_starts": 100,
            "learn_entropy": True,
            "rewards_shaper": lambda rewards, *_: rewards * 0.1,
            "experiment": {
                "directory": directory,
                "experiment_name": "sac",
                "write_interval": timesteps // 40,
                "checkpoint_interval": 0,
            },
        },
    )
    SequentialTrainer(cfg={"timesteps": timesteps}, env=env, agents=agent).train()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
