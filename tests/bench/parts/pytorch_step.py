# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of tests/bench/compare-pytorch: complete training steps of the same models from the same weights and
batch, in plain PyTorch modules. Runs in a Python with torch 2.13.0; depends on dptrain only for tensor names.

    pytorch_step.py make  --model M --dir D     writes D/M.weights.safetensors and D/M.batch.safetensors
    pytorch_step.py run   --model M --dir D --precision fp32|bf16 --threads T --steps N --mode eager|compile
                                                prints {"loss": [...], "step_seconds": [...]}
"""
import argparse
import json
import math
import os
import struct
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 20261120
DTYPES = {"F32": torch.float32, "I64": torch.int64}
LR = {"resnet50": 0.001, "resnet34": 0.001, "resnet18": 0.001, "resnet18-32px": 0.01, "resnet20": 0.01, "gpt2-124m": 3e-4, "gpt2-1558m": 3e-4}
GPT_SIZES = {"gpt2-124m": (12, 12, 768), "gpt2-1558m": (48, 25, 1600)}  # layers, heads, width
LARGE = {"resnet50": [3, 4, 6, 3], "resnet34": [3, 4, 6, 3], "resnet18": [2, 2, 2, 2], "resnet18-32px": [2, 2, 2, 2]}  # blocks of each stage
IMAGES = {"resnet18-32px": (128, 3, 32, 10), "resnet20": (128, 1, 28, 10)}  # samples, channels, size, classes
IMAGENET = (16, 3, 224, 1000)


def write_tensors(path, tensors):
    """Safetensors: the length of a JSON header, the header, the bytes."""
    head, offset, parts = {}, 0, []
    for name, t in tensors.items():
        raw = t.detach().contiguous().numpy().tobytes()
        kind = {v: k for k, v in DTYPES.items()}[t.dtype]
        head[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
        parts.append(raw)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".tmp", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
    os.rename(path + ".tmp", path)


def read_tensors(path):
    with open(path, "rb") as f:
        raw = bytearray(f.read())
    length = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, t in json.loads(raw[8:8 + length]).items():
        start, end = (8 + length + o for o in t["data_offsets"])
        tensors[name] = torch.frombuffer(raw[start:end], dtype=DTYPES[t["dtype"]]).reshape(t["shape"])
    return tensors


class Block(nn.Module):
    """Two 3x3 convolutions (planes == out), or a bottleneck with its stride in the 3x3."""

    def __init__(self, cin, planes, out, stride, bottleneck):
        super().__init__()
        if bottleneck:
            shapes = [(cin, planes, 1, 1), (planes, planes, 3, stride), (planes, out, 1, 1)]
        else:
            shapes = [(cin, planes, 3, stride), (planes, out, 3, 1)]
        self.n = len(shapes)
        for i, (a, b, k, s) in enumerate(shapes, 1):
            setattr(self, "conv%d" % i, nn.Conv2d(a, b, k, s, k // 2, bias=False))
            setattr(self, "bn%d" % i, nn.BatchNorm2d(b))
        self.downsample = None
        if stride != 1 or cin != out:
            self.downsample = nn.Sequential(nn.Conv2d(cin, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i in range(1, self.n + 1):
            y = getattr(self, "bn%d" % i)(getattr(self, "conv%d" % i)(y))
            if i < self.n:
                y = F.relu(y, inplace=True)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet(nn.Module):
    def __init__(self, cin, blocks, planes, bottleneck, classes, cifar):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, planes, 3 if cifar else 7, 1 if cifar else 2, 1 if cifar else 3, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.pool = None if cifar else nn.MaxPool2d(3, 2, 1)
        self.stages, width = len(blocks), planes
        for stage, n in enumerate(blocks):
            out = (planes << stage) * (4 if bottleneck else 1)
            layers = []
            for i in range(n):
                layers.append(Block(width, planes << stage, out, 2 if stage and not i else 1, bottleneck))
                width = out
            setattr(self, "layer%d" % (stage + 1), nn.Sequential(*layers))
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = y if self.pool is None else self.pool(y)
        for stage in range(self.stages):
            y = getattr(self, "layer%d" % (stage + 1))(y)
        return self.fc(y.mean(dim=(2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (p.view(n, t, self.heads, c // self.heads).transpose(1, 2) for p in self.c_attn(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(n, t, c))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def model_new(name):
    if name in LARGE:
        return ResNet(3, LARGE[name], 64, name == "resnet50", IMAGES.get(name, IMAGENET)[3], False)
    if name == "resnet20":
        return ResNet(1, [3, 3, 3], 16, False, 10, True)
    return GPT(*GPT_SIZES[name], 1024, 50257)


def batch_new(name, batch=None, length=256):
    """batch: samples; by default as in tests/bench/compare-pytorch."""
    if name in GPT_SIZES:
        return {"tokens": torch.randint(50257, (batch or 4, length + 1))}
    n, c, size, classes = IMAGES.get(name, IMAGENET)
    n = batch or n
    return {"images": torch.randn(n, c, size, size), "labels": torch.randint(classes, (n,))}


def state_new(name):
    """Norm gains and biases are not quite 1 and 0, so that omitting one shows in the losses."""
    state = {}
    layers = GPT_SIZES[name][0] if name in GPT_SIZES else 1
    for key, t in model_new(name).state_dict().items():
        if not t.dtype.is_floating_point:
            continue
        if t.ndim == 4:
            t = torch.randn_like(t) * math.sqrt(2.0 / (t.shape[0] * t.shape[2] * t.shape[3]))
        elif t.ndim == 2:
            t = torch.randn_like(t) * (0.02 / math.sqrt(2 * layers) if "c_proj" in key else 0.02)
        elif "running_" not in key:
            t = (1 if key.endswith("weight") else 0) + 0.05 * torch.randn_like(t)
        state[key] = t
    return state


# Hugging Face stores the four matrices of a block as [in, out].
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def stored(state):
    return {k: t.t() if k.endswith(TRANSPOSED) else t for k, t in state.items()}


def make(o):
    torch.manual_seed(SEED)
    write_tensors(os.path.join(o.dir, o.model + ".weights.safetensors"), stored(state_new(o.model)))
    write_tensors(os.path.join(o.dir, o.model + ".batch.safetensors"), batch_new(o.model))


def optimizer_new(name, net):
    groups = [{"params": [p for p in net.parameters() if p.ndim > 1]},
              {"params": [p for p in net.parameters() if p.ndim <= 1], "weight_decay": 0.0}]
    if name in GPT_SIZES:
        return torch.optim.AdamW(groups, lr=LR[name], betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, fused=True)
    return torch.optim.SGD(groups, lr=LR[name], momentum=0.9, weight_decay=1e-4, fused=True)


def step_new(o, net):
    batch = read_tensors(os.path.join(o.dir, o.model + ".batch.safetensors"))
    if "tokens" in batch:
        x, y = batch["tokens"][:, :-1].contiguous(), batch["tokens"][:, 1:].contiguous().view(-1)
    else:
        x, y = batch["images"].contiguous(memory_format=torch.channels_last), batch["labels"]

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=o.precision == "bf16"):
            logits = net(x)
            return F.cross_entropy(logits.view(-1, logits.shape[-1]), y)

    return (torch.compile(loss_of) if o.mode == "compile" else loss_of), x, y


def run(o):
    torch.set_num_threads(o.threads)
    net = model_new(o.model)
    net.load_state_dict(stored(read_tensors(os.path.join(o.dir, o.model + ".weights.safetensors"))), strict=False)
    if o.model.startswith("resnet"):
        net = net.to(memory_format=torch.channels_last)
    net.train()
    optimizer = optimizer_new(o.model, net)
    loss_of, x, y = step_new(o, net)
    losses, seconds = [], []
    for _ in range(o.steps):
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.monotonic() - start)
    print(json.dumps({"loss": losses, "step_seconds": seconds}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["make", "run"])
    p.add_argument("--model", required=True, choices=sorted(LR))
    p.add_argument("--dir", required=True)
    p.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--mode", default="eager", choices=["eager", "compile"])
    o = p.parse_args()
    make(o) if o.what == "make" else run(o)


if __name__ == "__main__":
    main()
