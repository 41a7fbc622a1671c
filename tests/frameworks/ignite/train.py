"""A small classifier under PyTorch-Ignite's engines, with its TensorBoard logger.

pytorch-ignite 0.5.5, torch 2.13.0. What its setup_logger prints goes to LOG/train.log:
`python -m tests.frameworks.ignite.train LOG > LOG/train.log 2>&1`.
"""

import socket
import sys
from pathlib import Path

socket.gethostname = lambda: "localhost"

import torch  # noqa: E402
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer  # noqa: E402
from ignite.handlers.tensorboard_logger import TensorboardLogger  # noqa: E402
from ignite.metrics import Accuracy, Loss, RunningAverage  # noqa: E402
from ignite.utils import manual_seed, setup_logger  # noqa: E402


def main(log):
    manual_seed(0)
    torch.set_num_threads(1)
    points = torch.rand(800, 2)
    data = torch.utils.data.TensorDataset(points, (points.sum(1) * 1.5).long())
    training, validation = (
        torch.utils.data.DataLoader(part, batch_size=16, shuffle=True)
        for part in torch.utils.data.random_split(data, [640, 160])
    )
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    objective = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, optimizer, objective)
    trainer.logger = setup_logger("trainer")
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running_loss")
    metrics = {"accuracy": Accuracy(), "loss": Loss(objective)}
    evaluators = {
        name: create_supervised_evaluator(model, metrics=metrics) for name in ("training", "validation")
    }

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate():
        evaluators["training"].run(training)
        evaluators["validation"].run(validation)

    with TensorboardLogger(log_dir=log / "tensorboard") as board:
        board.attach_output_handler(
            trainer,
            event_name=Events.ITERATION_COMPLETED(every=4),
            tag="training",
            output_transform=lambda loss: {"batch_loss": loss},
            metric_names=["running_loss"],
        )
        board.attach_opt_params_handler(
            trainer, event_name=Events.ITERATION_COMPLETED(every=4), optimizer=optimizer
        )
        for name, evaluator in evaluators.items():
            board.attach_output_handler(
                evaluator,
                event_name=Events.EPOCH_COMPLETED,
                tag=name,
                metric_names=list(metrics),
                global_step_transform=lambda *_: trainer.state.iteration,
            )
        trainer.run(training, max_epochs=6)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
