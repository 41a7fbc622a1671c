"""Errors in modes, statistics and evaluations."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from studies.silent.error import STEPS, Blobs, Run, descend, evaluate, layers, silent

OFTEN = 20


@silent("O5", title="the evaluation runs with dropout")
def dropout_at_evaluation(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 10, dropout=0.2)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            descend(run, probe, step, model, optimizer, task.batch())
            if step % OFTEN == OFTEN - 1:
                model.train(run.broken)
                evaluate(run, probe, step, model, task.evaluation)
                model.train()


@silent("O5", title="the model stays in evaluation mode after the first evaluation")
def evaluation_mode_stays(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 10, dropout=0.2)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            descend(run, probe, step, model, optimizer, task.batch())
            if step % OFTEN == OFTEN - 1:
                model.eval()
                evaluate(run, probe, step, model, task.evaluation)
                model.train(not run.broken)


@silent("O18", title="BatchNorm of a frozen backbone keeps averaging new data")
def frozen_statistics(run: Run) -> None:
    task = Blobs()
    backbone = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU())
    for _ in range(50):  # its pretraining
        backbone(task.batch()[0])
    backbone.requires_grad_(False)
    model = nn.Sequential(backbone, nn.Linear(64, 10))
    shift = 0.5 * torch.randn(32)
    optimizer = torch.optim.AdamW(model[1].parameters(), 1e-3)
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            backbone.train(run.broken)
            inputs, labels = task.batch()
            loss = cross_entropy(model(inputs + shift), labels)
            descend(run, probe, step, model, optimizer, (inputs, labels), loss)


@silent("V1", "DP10", title="the inputs of the evaluation are normalised by other statistics")
def normalised_otherwise(run: Run) -> None:
    task = Blobs()
    model = layers(32, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    inputs, labels = task.evaluation
    seen = (inputs - 0.45) / 0.5 if run.broken else inputs
    with run.probe(model, optimizer) as probe:
        for step in range(STEPS):
            descend(run, probe, step, model, optimizer, task.batch())
            if step % OFTEN == OFTEN - 1:
                model.eval()
                evaluate(run, probe, step, model, (seen, labels))
                model.train()
