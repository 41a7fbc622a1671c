"""PPO on CartPole with tianshou's on-policy trainer, logged to TensorBoard.

tianshou 2.0.1, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import gymnasium as gym
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils import TensorboardLogger
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from torch.utils.tensorboard import SummaryWriter


def environments(count: int, seed: int) -> DummyVectorEnv:
    made = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(count)])
    made.seed(seed)
    return made


def main(directory: str, epochs: int = 5) -> None:
    socket.gethostname = lambda: "localhost"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    training = environments(4, 1)
    testing = environments(2, 2)
    space = training.action_space[0]
    body = Net(state_shape=4, hidden_sizes=[32])
    algorithm = PPO(
        policy=ProbabilisticActorPolicy(
            actor=DiscreteActor(preprocess_net=body, action_shape=2),
            dist_fn=torch.distributions.Categorical,
            action_space=space,
            action_scaling=False,
            action_bound_method=None,
        ),
        critic=DiscreteCritic(preprocess_net=Net(state_shape=4, hidden_sizes=[32])),
        optim=AdamOptimizerFactory(lr=2e-3),
    )
    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=Collector(algorithm, training, VectorReplayBuffer(4000, 4)),
            test_collector=Collector(algorithm, testing),
            test_step_num_episodes=4,
            max_epochs=epochs,
            epoch_num_steps=2000,
            collection_step_num_env_steps=400,
            update_step_num_repetitions=4,
            logger=TensorboardLogger(
                SummaryWriter(f"{directory}/tb"), training_interval=1, update_interval=1
            ),
            show_progress=False,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
