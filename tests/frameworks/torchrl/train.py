"""PPO on CartPole with TorchRL's trainer and its TensorBoard logger.

torchrl 0.14.1, gymnasium 1.4.0, torch 2.13.0 on a CPU.
"""

import socket
import sys

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer, SamplerWithoutReplacement
from torchrl.envs import GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.record import TensorboardLogger
from torchrl.trainers.algorithms.ppo import PPOTrainer

FRAMES = 512


def layers(outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, outputs))


def main(directory: str, iterations: int = 25) -> None:
    socket.gethostname = lambda: "localhost"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    env = TransformedEnv(GymEnv("CartPole-v1", categorical_action_encoding=True), RewardSum())
    env.append_transform(StepCounter())
    actor = ProbabilisticActor(
        TensorDictModule(layers(2), in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        spec=env.action_spec,
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(layers(1), in_keys=["observation"])
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    PPOTrainer(
        collector=Collector(env, actor, frames_per_batch=FRAMES, total_frames=iterations * FRAMES),
        total_frames=iterations * FRAMES,
        frame_skip=1,
        optim_steps_per_batch=4,
        loss_module=loss,
        optimizer=torch.optim.Adam(loss.parameters(), lr=3e-3),
        logger=TensorboardLogger(exp_name="ppo", log_dir=directory),
        replay_buffer=ReplayBuffer(
            storage=LazyTensorStorage(FRAMES), sampler=SamplerWithoutReplacement(), batch_size=128
        ),
        log_interval=1,
        progress_bar=False,
    ).train()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
