"""The line of a training that would log a signal, in plain PyTorch and in frameworks with one of their own.

``log(name, value)`` stands for the logger at hand. Where a name does not tell the unit, a comment gives the
line of sentinel.toml that does. The lines are those of the frameworks' documentation.
"""

from collections.abc import Mapping

from sentinel.detectors.signals import Signal

HUGGING_FACE = ("hf-trainer", "trl", "axolotl", "unsloth", "llama-factory", "ms-swift")
_FAMILY = "hugging-face"
PROBE = "sentinel.probe(model, optimizer, to=writer"
"""How the lines begin that log what no trainer logs by itself."""

_PROBE = f"{PROBE})  # then probe.step() after each step"
_CHEAP = f'{PROBE}, sets="cheap")  # then probe.step() after each step'
LINES: Mapping[Signal, Mapping[str, str]] = {
    Signal.LOSS: {"": 'log("loss", loss.item())', "lightning": 'self.log("train_loss", loss)'},
    Signal.EVAL_LOSS: {
        "": 'log("eval_loss", eval_loss)',
        "lightning": 'self.log("val_loss", loss)  # in validation_step',
        _FAMILY: 'eval_strategy="steps", eval_steps=100  # in the training arguments',
    },
    Signal.GENERATOR_LOSS: {"": 'log("g_loss", g_loss.item())'},
    Signal.DISCRIMINATOR_LOSS: {"": 'log("d_loss", d_loss.item())'},
    Signal.EVAL_ACCURACY: {
        "": 'log("eval_accuracy", correct / total)',
        "lightning": 'self.log("val_acc", accuracy)  # in validation_step',
        _FAMILY: 'compute_metrics=lambda p: {"accuracy": (p.predictions.argmax(-1) == p.label_ids).mean()}',
    },
    Signal.EVAL_PERPLEXITY: {"": 'log("eval_perplexity", math.exp(eval_loss))'},
    Signal.MEAN_AVERAGE_PRECISION: {"": 'log("val/mAP50-95", average_precision)'},
    Signal.FRECHET_INCEPTION_DISTANCE: {"": 'log("fid", fid.compute())  # torchmetrics.image.fid'},
    Signal.LEARNING_RATE: {
        "": 'log("learning_rate", scheduler.get_last_lr()[0])',
        "lightning": 'Trainer(callbacks=[LearningRateMonitor("step")])',
    },
    Signal.GRAD_NORM: {
        "": 'log("grad_norm", torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))',
        "lightning": "self.log_dict(grad_norm(self, norm_type=2))  # in on_before_optimizer_step",
        _FAMILY: "pip install 'transformers>=4.38'  # which logs it",
        "sb3": 'self.logger.record("train/grad_norm", norm)  # in a subclass, where train() clips',
    },
    Signal.LOSS_SCALE: {
        "": 'log("loss_scale", scaler.get_scale())',
        "lightning": 'self.log("loss_scale", self.trainer.precision_plugin.scaler.get_scale())',
        _FAMILY: 'trainer.log({"loss_scale": trainer.accelerator.scaler.get_scale()})',
    },
    Signal.UPDATE_RATIO: {"": _CHEAP},
    Signal.MISSING_TENSORS: {"": _PROBE},
    Signal.UNCHANGED_SHARE: {"": _CHEAP},
    Signal.TRAINING_SHARE: {"": _PROBE},
    Signal.TENSORS_HELD_TWICE: {"": _PROBE},
    Signal.GROUPS_LEFT_BEHIND: {"": _PROBE},
    Signal.CARRIED_GRADIENT: {"": _CHEAP},
    Signal.MASKED_BATCH_SHARE: {"": f"{PROBE})  # then probe.step(batch=batch), with labels in the batch"},
    Signal.EVAL_TRAINING_SHARE: {"": f"{PROBE})  # then probe.evaluate(batch=batch) at each evaluation"},
    Signal.DEAD_FRACTION: {"": _CHEAP},
    Signal.HISTOGRAM_ZERO_SHARE: {"": 'writer.add_histogram("fc1/weights", model.fc1.weight, step)'},
    Signal.PAD_FRACTION: {"": f"{PROBE})  # then probe.step(batch=batch), with its attention_mask"},
    Signal.EPOCH: {"": 'log("epoch", step / steps_per_epoch)'},
    Signal.GPU_MEMORY: {
        "": 'log("gpu_memory", torch.cuda.max_memory_allocated() / 2**30)  '
        '# [signals] "gpu_memory" = "gpu_memory"'
    },
    Signal.TOKENS_PER_SECOND: {"": 'log("tokens_per_second", tokens / seconds)'},
    Signal.KL: {
        "": 'log("kl", (log_probability - reference_log_probability).mean())  # [signals] "kl" = "kl"'
    },
    Signal.ENTROPY: {
        "": 'log("entropy", Categorical(logits=logits).entropy().mean())  # [signals] "entropy" = "entropy"'
    },
    Signal.CLIP_FRACTION: {"": 'log("clip_fraction", ((ratio - 1).abs() > clip_range).float().mean())'},
    Signal.REWARD: {"": 'log("reward", rewards.mean())'},
    Signal.REPLAY_SIZE: {"": f"{PROBE}, replay=buffer, environment=environment)  # then probe.step()"},
    Signal.REWARD_STD: {"": 'log("reward_std", rewards.std())'},
    Signal.FRAC_REWARD_ZERO_STD: {
        "": 'log("frac_reward_zero_std", (rewards.view(-1, group).std(dim=1) == 0).float().mean())'
    },
    Signal.COMPLETION_LENGTH: {"": 'log("completion_length", lengths.float().mean())'},
    Signal.CLIPPED_COMPLETION_RATIO: {
        "": 'log("clipped_completion_ratio", (lengths >= max_new_tokens).float().mean())'
    },
    Signal.SAMPLING_LOGP_DIFFERENCE: {
        "": 'log("sampling_logp_difference", (trainer_logps - sampler_logps).abs().mean())  '
        '# [signals] "sampling_logp_difference" = "sampling_logp_difference"'
    },
    Signal.TOOL_FAILURE_SHARE: {
        "": 'log("tool_failure_share", failed_calls / calls)  '
        '# [signals] "tool_failure_share" = "tool_failure_share"'
    },
    Signal.CODEBOOK_PERPLEXITY: {
        "": 'log("codebook_perplexity", (-(p * (p + 1e-10).log()).sum()).exp())  # p: share of each code'
    },
    Signal.MOE_AUXILIARY_LOSS: {"": 'log("load_balancing_loss", outputs.aux_loss.item())'},
    Signal.MAX_ATTENTION_LOGIT: {"": 'log("max_attention_logit", scores.max().item())'},
    Signal.MAX_OUTPUT_LOGIT: {"": f'{PROBE}, sets="cheap")  # then probe.step(batch=batch, outputs=logits)'},
    Signal.DATA_SHARE: {
        "": 'log("data_share", seconds_waited / seconds)  # [signals] "data_share" = "data_share"'
    },
    Signal.EBFT_ALIGNMENT: {
        "": 'log("ebft/alignment", 2 * cosine_similarity(completion, reference, dim=-1).mean())  '
        '# [signals] "ebft/alignment" = "ebft_alignment"'
    },
    Signal.LOGPS_CHOSEN: {"": 'log("logps/chosen", chosen_logps.mean())'},
    Signal.PREFERENCE_MARGIN: {"": 'log("rewards/margins", (chosen_rewards - rejected_rewards).mean())'},
}


def line_for(signal: str, framework: str) -> str:
    """Return the line for a framework (a profile's name, empty if none is known), else that for plain
    PyTorch.

    Empty for what is no signal that a detector needs.
    """
    lines = LINES[Signal(signal)] if signal in LINES else {}
    family = _FAMILY if framework.startswith(HUGGING_FACE) else framework.partition("-")[0]
    return lines.get(family, lines.get("", ""))
