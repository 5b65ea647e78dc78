# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch computes for resnet20 with gradient accumulation, from the weights and batch of
make_resnet20.py; for tests/train/accumulation.py.

    python3 make_accumulation.py        (versions as for make_resnet20.py) writes accumulation.json

Each case is a list of micro-batches, which are lists of samples. For several ranks with batch norm over all of them, a
micro-batch contains the samples that the ranks process at the same time. Loss and gradients are divided by the batch
size."""
import json
import os

import torch
import torch.nn as nn
from safetensors.torch import load_file

import make_resnet20 as base

STEPS = {"1x3": 20}  # other cases: 5; the losses of a step are summed over its micro-batches
CASES = {  # ranks x batch size per rank, of 8 samples
    "1x3": [[0, 1, 2], [3, 4, 5], [6, 7]],
    "2x3": [[0, 1, 2, 4, 5, 6], [3, 7]],
    "3x2": [[0, 1, 3, 4, 6, 7], [2, 5]],
}


def optimiser(net):
    decay = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]
    return torch.optim.SGD([{"params": decay, "weight_decay": base.DECAY}, {"params": plain, "weight_decay": 0.0}],
                           lr=base.LR, momentum=base.MOMENTUM)


def record(micros, steps, state, images, labels):
    net = base.model(state, base.relu, torch.float64)
    opt, losses, norms = optimiser(net), [], []
    for _ in range(steps):
        opt.zero_grad()
        total = 0.0
        for micro in micros:
            loss = nn.functional.cross_entropy(net(images[micro]), labels[micro], reduction="sum") / len(images)
            loss.backward()
            total += loss.item()
        norms.append(float(torch.sqrt(sum((p.grad ** 2).sum() for p in net.parameters()))))
        opt.step()
        losses.append(total)
    with torch.no_grad():
        logits = net.eval()(images)
    return {"losses": losses, "grad_norms": norms, "eval_logits": logits.flatten().tolist()}


def main():
    state = load_file(os.path.join(base.HERE, "weights.safetensors"))
    batch = load_file(os.path.join(base.HERE, "batch.safetensors"))
    with open(os.path.join(base.HERE, "accumulation.json"), "w", encoding="utf-8") as out:
        json.dump({k: record(m, STEPS.get(k, 5), state, batch["images"].double(), batch["labels"]) for k, m in CASES.items()}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
