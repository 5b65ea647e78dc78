# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of tests/bench/recipes/torchvision. Runs in a Python with torch, torchvision and pillow.

    pytorch_recipe.py make  --data-path DIR --out DIR --pictures N --test N --side 64
        writes the first pictures of Fashion-MNIST, enlarged, as JPEG files below train/CLASS and val/CLASS
    pytorch_recipe.py train --data-path DIR --side 64 --resize 73 --epochs 3 --batch 64 --lr 0.05 --seed 0 --threads 2 --recipe JSON
        trains torchvision's ResNet-18 and prints its accuracy in percent

The transforms are torchvision's, in the order of its reference scripts; MixUp or CutMix is drawn for each batch. The
learning rate rises in the first tenth of the steps, then falls as a cosine, in each step. Norms and biases do not decay."""
import argparse
import gzip
import json
import math
import os

import torch
from PIL import Image
from torch.nn.functional import cross_entropy
from torchvision import datasets, models
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def read_idx(path, header):
    plain = open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz", "rb")
    with plain as f:
        return f.read()[header:]


def make(o):
    for part, prefix, count in (("train", "train", o.pictures), ("val", "t10k", o.test)):
        images = read_idx(os.path.join(o.data_path, prefix + "-images-idx3-ubyte"), 16)
        labels = read_idx(os.path.join(o.data_path, prefix + "-labels-idx1-ubyte"), 8)
        for i in range(count):
            folder = os.path.join(o.out, part, str(labels[i]))
            os.makedirs(folder, exist_ok=True)
            picture = Image.frombytes("L", (28, 28), images[784 * i:784 * (i + 1)]).resize((o.side, o.side), Image.Resampling.BICUBIC)
            picture.convert("RGB").save(os.path.join(folder, "%05d.jpg" % i), quality=90)


def transforms(o, recipe):
    assert recipe["auto_augment"] == "ta_wide"
    end = [v2.PILToTensor(), v2.ToDtype(torch.float, scale=True), v2.Normalize(MEAN, STD)]
    bilinear = v2.InterpolationMode.BILINEAR
    return (v2.Compose([v2.RandomResizedCrop(o.side, interpolation=bilinear, antialias=True), v2.RandomHorizontalFlip(0.5),
                        v2.TrivialAugmentWide(interpolation=bilinear), *end, v2.RandomErasing(recipe["random_erase"])]),
            v2.Compose([v2.Resize(o.resize, interpolation=bilinear, antialias=True), v2.CenterCrop(o.side), *end]))


def lr_at(o, step, total):
    warmup = total // 10
    if step < warmup:
        return o.lr * (step + 1) / (warmup + 1)
    return 0.5 * o.lr * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def train(o):
    recipe = json.loads(o.recipe)
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    for_training, for_test = transforms(o, recipe)
    data = datasets.ImageFolder(os.path.join(o.data_path, "train"), for_training)
    n = len(data.classes)
    loader = torch.utils.data.DataLoader(data, o.batch, shuffle=True, drop_last=True)
    mixed = v2.RandomChoice([v2.MixUp(alpha=recipe["mixup_alpha"], num_classes=n), v2.CutMix(alpha=recipe["cutmix_alpha"], num_classes=n)])
    net = models.resnet18(num_classes=n).to(memory_format=torch.channels_last).train()
    opt = torch.optim.SGD([{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": recipe["wd"]},
                           {"params": [p for p in net.parameters() if p.ndim <= 1], "weight_decay": 0.0}], lr=o.lr, momentum=recipe["momentum"])
    total, step = o.epochs * len(loader), 0
    for _ in range(o.epochs):
        for x, y in loader:
            x, y = mixed(x, y)
            for group in opt.param_groups:
                group["lr"] = lr_at(o, step, total)
            opt.zero_grad(set_to_none=True)
            cross_entropy(net(x.contiguous(memory_format=torch.channels_last)), y, label_smoothing=recipe["label_smoothing"]).backward()
            opt.step()
            step += 1
    return top1(net.eval(), torch.utils.data.DataLoader(datasets.ImageFolder(os.path.join(o.data_path, "val"), for_test), 250))


def top1(net, loader):
    right = count = 0
    with torch.no_grad():
        for x, y in loader:
            right += int((net(x.contiguous(memory_format=torch.channels_last)).argmax(1) == y).sum())
            count += len(y)
    return 100.0 * right / count


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("mode", choices=["make", "train"])
    for name in ("pictures", "test", "side", "resize", "epochs", "batch", "threads", "seed"):
        p.add_argument("--" + name, type=int)
    p.add_argument("--lr", type=float)
    for name in ("data-path", "out", "recipe"):
        p.add_argument("--" + name)
    o = p.parse_args()
    if o.mode == "make":
        make(o)
    else:
        print("%.2f" % train(o))


main()
