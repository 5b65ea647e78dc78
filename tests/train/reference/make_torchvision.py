#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torchvision_resnets.txt, the names and shapes of torchvision's resnet18/34/50/101/152, and
resnet_outputs.json, the outputs of two of them in f64. torchvision itself is not needed: its networks follow these few
rules (He et al. 2015, with the stride of a bottleneck in its 3x3 convolution), and the parameter counts are those in
its documentation. Needs torch: `python3 make_torchvision.py` in this folder."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import pattern  # noqa: E402

#       bottleneck, blocks, parameters
NETS = {"resnet18": (False, (2, 2, 2, 2), 11689512),
        "resnet34": (False, (3, 4, 6, 3), 21797672),
        "resnet50": (True, (3, 4, 6, 3), 25557032),
        "resnet101": (True, (3, 4, 23, 3), 44549160),
        "resnet152": (True, (3, 8, 36, 3), 60192808)}


def norm(name, n):
    return [(name + "." + part, (n,)) for part in ("weight", "bias", "running_mean", "running_var")] + [(name + ".num_batches_tracked", ())]


def block(name, bottleneck, inside, planes, stride):
    out = planes * 4 if bottleneck else planes
    convs = [(inside, planes, 1), (planes, planes, 3), (planes, out, 1)] if bottleneck else [(inside, planes, 3), (planes, planes, 3)]
    for i, (a, b, k) in enumerate(convs, 1):
        yield "%s.conv%d.weight" % (name, i), (b, a, k, k)
        yield from norm("%s.bn%d" % (name, i), b)
    if stride != 1 or inside != out:
        yield name + ".downsample.0.weight", (out, inside, 1, 1)
        yield from norm(name + ".downsample.1", out)


def tensors(net):
    bottleneck, blocks, _ = NETS[net]
    yield "conv1.weight", (64, 3, 7, 7)
    yield from norm("bn1", 64)
    inside = 64
    for stage, n in enumerate(blocks, 1):
        planes = 32 << stage
        for i in range(n):
            yield from block("layer%d.%d" % (stage, i), bottleneck, inside, planes, 2 if stage > 1 and i == 0 else 1)
            inside = planes * 4 if bottleneck else planes
    yield "fc.weight", (1000, inside)
    yield "fc.bias", (1000,)


def write_list(path):
    with open(path, "w", encoding="ascii") as f:
        for net, (_, _, count) in NETS.items():
            total = 0
            for name, shape in tensors(net):
                size = 1
                for d in shape:
                    size *= d
                total += 0 if "running" in name or "tracked" in name else size
                f.write("%s %s %s\n" % (net, name, ",".join(map(str, shape)) or "-"))
            assert total == count, (net, total, count)


def module(net, act=None):
    import torch
    from torch import nn

    bottleneck, blocks, _ = NETS[net]
    act = act or torch.relu

    class Block(nn.Module):
        def __init__(self, inside, planes, stride):
            super().__init__()
            out = planes * 4 if bottleneck else planes
            if bottleneck:
                self.conv1 = nn.Conv2d(inside, planes, 1, bias=False)
                self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
                self.conv3 = nn.Conv2d(planes, out, 1, bias=False)
            else:
                self.conv1 = nn.Conv2d(inside, planes, 3, stride, 1, bias=False)
                self.conv2 = nn.Conv2d(planes, out, 3, 1, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(planes), nn.BatchNorm2d(planes)
            if bottleneck:
                self.bn3 = nn.BatchNorm2d(out)
            self.downsample = None
            if stride != 1 or inside != out:
                self.downsample = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            y = self.bn2(self.conv2(act(self.bn1(self.conv1(x)))))
            if bottleneck:
                y = self.bn3(self.conv3(act(y)))
            return act(y + (x if self.downsample is None else self.downsample(x)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
            inside = 64
            for stage, n in enumerate(blocks, 1):
                layer, planes = [], 32 << stage
                for i in range(n):
                    layer.append(Block(inside, planes, 2 if stage > 1 and i == 0 else 1))
                    inside = planes * 4 if bottleneck else planes
                setattr(self, "layer%d" % stage, nn.Sequential(*layer))
            self.fc = nn.Linear(inside, 1000)

        def forward(self, x):
            x = nn.functional.max_pool2d(act(self.bn1(self.conv1(x))), 3, 2, 1)
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(x.mean((2, 3)))

    return Net()


def state_of(net):
    """The weights of the pattern, in f64."""
    import torch

    state = {}
    for number, (name, shape) in enumerate(tensors(net)):
        values = pattern.tensor(number, name, shape)
        kind = torch.int64 if "tracked" in name else torch.float64
        state[name] = torch.tensor(values.tolist(), dtype=kind).reshape(shape)
    return state


def outputs(net):
    import torch

    m = module(net).double().eval()
    m.load_state_dict(state_of(net))
    images = torch.tensor(pattern.images().tolist(), dtype=torch.float64).reshape(pattern.IMAGES)
    with torch.no_grad():
        return [[float(v) for v in row[::50]] for row in m(images)]


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    write_list(os.path.join(folder, "torchvision_resnets.txt"))
    with open(os.path.join(folder, "resnet_outputs.json"), "w", encoding="ascii") as f:
        json.dump({net: outputs(net) for net in ("resnet18", "resnet50")}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
