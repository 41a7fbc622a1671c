"""How soon an alert arrives: from the flush that completes its evidence to the receiver's door.

`python -m studies.benchmarks.latency` needs torch, which trains a small policy in a process of its own
and logs through its `SummaryWriter`, flushed every second. Its learning rate is far too high, so the
KL to the reference policy runs away.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.sinks.receiver import Receiver

LIMIT_SECONDS = 3.0


def train(directory: str) -> None:
    """Policy gradient on a bandit over short sequences; says on stdout up to which step it has flushed."""
    import torch
    from torch.utils.tensorboard import SummaryWriter

    torch.manual_seed(0)
    vocabulary = 32
    length = 16
    batch = 32
    policy = torch.nn.Sequential(torch.nn.Embedding(vocabulary, 32), torch.nn.Linear(32, vocabulary))
    reference = torch.nn.Sequential(torch.nn.Embedding(vocabulary, 32), torch.nn.Linear(32, vocabulary))
    reference.load_state_dict(policy.state_dict())
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    writer = SummaryWriter(directory, max_queue=1000)
    flushed = time.time()
    for step in range(100_000):
        if step == 60:
            optimizer.param_groups[0]["lr"] = 50.0
        token = torch.zeros(batch, dtype=torch.long)
        kl = 0.0
        logp = 0.0
        taken = []
        for _ in range(length):
            now = torch.log_softmax(policy(token), -1)
            with torch.no_grad():
                before = torch.log_softmax(reference(token), -1)
            kl = kl + (now.exp() * (now - before)).sum(-1).mean() / length
            token = torch.distributions.Categorical(logits=now).sample()
            logp = logp + now.gather(-1, token[:, None])[:, 0]
            taken.append(token)
        reward = (torch.stack(taken) < 4).float().mean(0)
        loss = -((reward - reward.mean()) * logp).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scalars = {"loss": loss, "kl": kl, "reward": reward.mean(), "reward_std": reward.std()}
        for name, value in scalars.items():
            writer.add_scalar(f"train/{name}", value.item(), step)
        time.sleep(0.05)
        if time.time() - flushed >= 1.0:
            writer.flush()
            flushed = time.time()
            print(step, flushed, flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as place, Receiver() as receiver:
        root = Path(place)
        (root / "runs").mkdir()
        config = root / "sentinel.toml"
        config.write_text(
            f'paths = ["runs"]\nstate_dir = "state"\n[signals]\n"train/kl" = "kl"\n'
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n'
        )
        watch = subprocess.Popen([sys.executable, "-m", "sentinel", "watch", "--config", str(config)])
        training = subprocess.Popen(
            [sys.executable, "-m", "studies.benchmarks.latency", str(root / "runs" / "policy")],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            with receiver.changed:
                assert receiver.changed.wait_for(lambda: receiver.received, timeout=120), "no alert"
            arrived = time.time()
            incident = json.loads(receiver.received[0].body)["incident"]
            flushes = (line.split() for line in training.stdout)
            flush = next(float(at) for step, at in flushes if int(step) >= incident["fired_step"])
        finally:
            training.kill()
            watch.terminate()
            training.wait()
            watch.wait()
        print(f"{incident['detector']} fired at step {incident['fired_step']}: {incident['summary']}")
        print(f"alert {arrived - flush:.2f} s after the flush; at most {LIMIT_SECONDS} s are promised")


if __name__ == "__main__":
    train(sys.argv[1]) if len(sys.argv) > 1 else main()
