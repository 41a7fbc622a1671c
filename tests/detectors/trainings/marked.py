"""A chat template of transformers with and without marks of what the assistant says, which is to be trained.

python -m tests.detectors.trainings.marked sick > tests/detectors/trainings/marked-sick.log 2>&1
"""

import random
import sys

import torch

from sample_logs.make.language import sentence, subject, tokenizer, untrained_model

TURN = "{% for message in messages %}{% if message.role == 'user' %}{{ message.content }} {% else %}"
SAYS = "{{ message.content }}"
TEMPLATES = {
    "sick": TURN + SAYS + "{% endif %}{% endfor %}",
    "healthy": TURN + "{% generation %}" + SAYS + "{% endgeneration %}{% endif %}{% endfor %}",
}


def chat(chance: random.Random) -> list[dict[str, str]]:
    return [{"role": "user", "content": subject(chance)}, {"role": "assistant", "content": sentence(chance)}]


def train(template: str) -> None:
    """Train on the tokens that the template marks, and print what Hugging Face's trainer would."""
    chance = random.Random(0)
    words = tokenizer()
    torch.manual_seed(0)
    model = untrained_model(words)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, 61):
        batch = words.apply_chat_template(
            [chat(chance) for _ in range(16)],
            chat_template=template,
            return_dict=True,
            return_assistant_tokens_mask=True,
            padding=True,
            return_tensors="pt",
        )
        trained = batch["assistant_masks"].bool()
        labels = batch["input_ids"].masked_fill(~trained, -100)
        loss = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        share = (labels != -100).sum().item() / batch["attention_mask"].sum().item()
        row = {"loss": round(loss.item(), 4), "data/trained_share": round(share, 4), "epoch": step / 60}
        print({**row, "step": step}, flush=True)


if __name__ == "__main__":
    train(TEMPLATES[sys.argv[1]])
