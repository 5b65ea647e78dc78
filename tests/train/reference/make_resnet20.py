# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch computes for resnet20 (3x3 stem, 16-32-64 channels, 1x1 + BN shortcuts), for tests/train.

    pip install torch==2.13.0 numpy safetensors
    python3 make_resnet20.py            writes the files next to this script

Weights and batch are drawn here in f32 (so that both programs start from the same numbers), norm gains and biases
random: with the usual 1 and 0 most gradients would be zero or hidden. Everything else is computed in f64, except the
distances of PyTorch's own f32 and bf16 gradients from f64, which limit what can be required of an implementation.

    weights.safetensors   initial state, torchvision's names
    batch.safetensors     images [8,1,28,28] f32, labels i64
    relu.safetensors      grad.<name> of step 1 (f64), eval_logits after 10 SGD steps (f64)
    gelu.safetensors      grad.<name> of step 1 with GELU (tanh) for ReLU (f64)
    reference.json        losses of the 10 steps, settings, distances per tensor, versions
"""
import json
import math
import os

import numpy as np
import torch
import torch.nn as nn
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, SIZE, CLASSES, STEPS = 8, 28, 10, 10
LR, MOMENTUM, DECAY = 0.01, 0.9, 1e-4


class Block(nn.Module):
    def __init__(self, cin, cout, stride, act):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
        self.act = act

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.act(y + (x if self.downsample is None else self.downsample(x)))


class ResNet20(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*[Block(16, 16, 1, act) for _ in range(3)])
        self.layer2 = nn.Sequential(Block(16, 32, 2, act), Block(32, 32, 1, act), Block(32, 32, 1, act))
        self.layer3 = nn.Sequential(Block(32, 64, 2, act), Block(64, 64, 1, act), Block(64, 64, 1, act))
        self.fc = nn.Linear(64, CLASSES)
        self.act = act

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        y = self.layer3(self.layer2(self.layer1(y)))
        return self.fc(y.mean(dim=(2, 3)))


def relu(x):
    return torch.relu(x)


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def initial_state():
    torch.manual_seed(20261120)
    state = ResNet20(relu).state_dict()
    for name, t in state.items():
        if t.ndim == 4:
            state[name] = torch.randn_like(t) * math.sqrt(2.0 / (t.shape[0] * t.shape[2] * t.shape[3]))
        elif name.startswith("fc."):
            state[name] = torch.randn_like(t) * 0.1
        elif name.endswith("running_var"):
            state[name] = 0.5 + torch.rand_like(t)
        elif name.endswith("num_batches_tracked"):
            continue
        elif name.endswith("weight"):
            state[name] = 0.5 + torch.rand_like(t)
        else:
            state[name] = torch.randn_like(t) * 0.2
    return {k: v.contiguous() for k, v in state.items() if not k.endswith("num_batches_tracked")}


def model(state, act, dtype):
    net = ResNet20(act).to(dtype)
    net.load_state_dict({k: v.to(dtype) for k, v in state.items()}, strict=False)
    return net.train()


def gradients(net, images, labels, autocast=False):
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        logits = net(images)
    loss = nn.functional.cross_entropy(logits.float() if autocast else logits, labels)
    loss.backward()
    return loss.item(), {n: p.grad.detach().double().contiguous() for n, p in net.named_parameters()}


def distance(a, b):
    total = math.sqrt(sum(float((v ** 2).sum()) for v in b.values()))
    return {n: float((a[n] - b[n]).norm() / max(float(b[n].norm()), 1e-12 * total)) for n in b}


def steps(net, images, labels):
    decay = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]
    opt = torch.optim.SGD([{"params": decay, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}],
                          lr=LR, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def main():
    state = initial_state()
    images = torch.randn(BATCH, 1, SIZE, SIZE)
    labels = torch.randint(0, CLASSES, (BATCH,))
    save_file(state, os.path.join(HERE, "weights.safetensors"))
    save_file({"images": images, "labels": labels}, os.path.join(HERE, "batch.safetensors"))
    x64 = images.double()

    net = model(state, relu, torch.float64)
    loss_relu, grads = gradients(net, x64, labels)
    net = model(state, relu, torch.float64)
    losses = steps(net, x64, labels)
    with torch.no_grad():
        logits = net.eval()(x64)
    save_file({**{"grad." + k: v for k, v in grads.items()}, "eval_logits": logits},
              os.path.join(HERE, "relu.safetensors"))

    loss_gelu, smooth = gradients(model(state, gelu, torch.float64), x64, labels)
    save_file({"grad." + k: v for k, v in smooth.items()}, os.path.join(HERE, "gelu.safetensors"))
    last = torch.channels_last
    f32 = gradients(model(state, gelu, torch.float32).to(memory_format=last), images.to(memory_format=last), labels)[1]
    b16 = gradients(model(state, gelu, torch.float32).to(memory_format=last), images.to(memory_format=last), labels,
                    autocast=True)[1]
    with open(os.path.join(HERE, "reference.json"), "w", encoding="utf-8") as out:
        json.dump({
            "torch": torch.__version__, "numpy": np.__version__, "batch": BATCH, "lr": LR, "momentum": MOMENTUM,
            "weight_decay": DECAY, "relu": {"loss": loss_relu, "losses": losses},
            "gelu": {"loss": loss_gelu, "torch_f32_distance": distance(f32, smooth),
                     "torch_bf16_distance": distance(b16, smooth)},
        }, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
