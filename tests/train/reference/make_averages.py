# SPDX-License-Identifier: Apache-2.0
"""Records exponential moving averages of weights and statistics as PyTorch keeps them (AveragedModel, the first update a
copy, buffers averaged too, as in torchvision's training script), in f64, for tests/train/averages.py.

    python3 make_averages.py            after make_resnet20.py and make_gpt.py; writes averages.json

Per case: losses of 20 steps, and the elements of each average that pattern.spread picks, in the file's layout."""
import json
import os
import sys

import torch
from safetensors.torch import load_file
from torch.optim.swa_utils import AveragedModel

import make_gpt
import make_resnet20 as base

sys.path.insert(0, os.path.join(base.HERE, ".."))
import pattern  # noqa: E402

STEPS, DECAY = 20, 0.9


def average_of(net):
    return AveragedModel(net, avg_fn=lambda mean, new, n: DECAY * mean + (1 - DECAY) * new, use_buffers=True)


def steps(loss_of, optimiser, net):
    average, losses = average_of(net), []
    for step in range(1, STEPS + 1):
        optimiser.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimiser.step()
        average.update_parameters(net)
        losses.append(loss.item())
    return average.module, losses


def groups(parameters, decay):
    return [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0}]


def kept(names, tensors, losses):
    return {"losses": losses, "averages": {n: pattern.spread(t.detach().flatten().tolist()) for n, t in zip(names, tensors)}}


def resnet20():
    batch = load_file(os.path.join(base.HERE, "batch.safetensors"))
    x, labels = batch["images"].double(), batch["labels"]
    net = base.model(load_file(os.path.join(base.HERE, "weights.safetensors")), base.relu, torch.float64)
    opt = torch.optim.SGD(groups(list(net.parameters()), base.DECAY), lr=base.LR, momentum=base.MOMENTUM)
    average, losses = steps(lambda step: torch.nn.functional.cross_entropy(net(x), labels), opt, net)
    state = {k: v for k, v in average.state_dict().items() if not k.endswith("num_batches_tracked")}
    return kept(state, state.values(), losses)


def gpt():
    net = make_gpt.Gpt(load_file(os.path.join(base.HERE, "gpt-tied.safetensors")), {})
    tokens = load_file(os.path.join(base.HERE, "gpt-batch.safetensors"))["tokens"]
    holder = torch.nn.ParameterList([torch.nn.Parameter(p) for p in net.p.values()])
    net.p = dict(zip(net.p, holder))
    opt = torch.optim.AdamW(groups(list(holder), 0.1), lr=0.01)
    average, losses = steps(lambda step: net.loss(tokens, step), opt, holder)
    return kept(net.p, average, losses)


def main():
    with open(os.path.join(base.HERE, "averages.json"), "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "decay": DECAY, "resnet20": resnet20(), "gpt": gpt()}, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
