# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of tests/bench/accuracy: trains ResNet-20 on Fashion-MNIST in bf16 with several seeds, and appends
each test accuracy to a file. Runs in a Python with torch 2.13.0 and numpy.

    python3 tests/bench/parts/pytorch_accuracy.py [--seeds 8] [--epochs 1] [--lr 0.1] [--threads 2] [--data-path DIR] [--out FILE]

The model is that of pytorch_step.py with torchvision's initial values; cross entropy, SGD with momentum 0.9, decay
1e-4 (except norms and biases), linear warm-up over a tenth of the steps, then cosine; no augmentation. Seeds that are
in the file are not trained again, so it may be interrupted and continued."""
import argparse
import gzip
import json
import math
import os

import numpy as np
import torch
import torch.nn.functional as F

import pytorch_step

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 128


def read_idx(path, header):
    plain = open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz", "rb")
    with plain as f:
        return np.frombuffer(f.read(), np.uint8, offset=header)


def split(folder, name):
    images = read_idx(os.path.join(folder, name + "-images-idx3-ubyte"), 16).reshape(-1, 1, 28, 28)
    return torch.tensor(images).float() / 255, torch.tensor(read_idx(os.path.join(folder, name + "-labels-idx1-ubyte"), 8)).long()


def net_of():
    net = pytorch_step.model_new("resnet20")
    for m in net.modules():
        if isinstance(m, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    return net.to(memory_format=torch.channels_last)


def lr_at(o, step, total):
    warmup = total // 10
    if step < warmup:
        return o.lr * (step + 1) / (warmup + 1)
    return 0.5 * o.lr * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def logits_of(net, x):
    with torch.autocast("cpu", torch.bfloat16):
        return net(x.contiguous(memory_format=torch.channels_last)).float()


def train(o, seed, images, labels):
    torch.manual_seed(seed)
    net = net_of().train()
    opt = torch.optim.SGD([{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 1e-4},
                           {"params": [p for p in net.parameters() if p.ndim <= 1], "weight_decay": 0.0}], lr=o.lr, momentum=0.9)
    total, step = o.epochs * -(-len(images) // BATCH), 0
    for _ in range(o.epochs):
        for batch in torch.randperm(len(images)).split(BATCH):
            for group in opt.param_groups:
                group["lr"] = lr_at(o, step, total)
            opt.zero_grad(set_to_none=True)
            F.cross_entropy(logits_of(net, images[batch]), labels[batch]).backward()
            opt.step()
            step += 1
    return net.eval()


def top1(net, images, labels):
    with torch.no_grad():
        right = sum(int((logits_of(net, x).argmax(1) == y).sum()) for x, y in zip(images.split(500), labels.split(500)))
    return 100.0 * right / len(labels)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=8)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--data-path", default="/usr/share/datasets/fashion-mnist")
    p.add_argument("--out", default=os.path.join(HERE, "..", "accuracy.json"))
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    x, y = split(o.data_path, "train")
    mean, std = x.mean(), x.std()
    test, truth = split(o.data_path, "t10k")
    known = {"torch": torch.__version__, "epochs": o.epochs, "lr": o.lr, "batch": BATCH, "top1": {}}
    if os.path.exists(o.out):
        with open(o.out, encoding="ascii") as f:
            known = json.load(f)
        if (known["epochs"], known["lr"]) != (o.epochs, o.lr):
            p.error("%s was recorded with --epochs %d --lr %g; name another file" % (o.out, known["epochs"], known["lr"]))
    for seed in range(o.seeds):
        if str(seed) in known["top1"]:
            continue
        known["top1"][str(seed)] = top1(train(o, seed, (x - mean) / std, y), (test - mean) / std, truth)
        print("seed %d: %.2f %%" % (seed, known["top1"][str(seed)]), flush=True)
        with open(o.out + ".tmp", "w", encoding="ascii") as f:
            json.dump(known, f, indent=1)
            f.write("\n")
        os.replace(o.out + ".tmp", o.out)


main()
