# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch computes for ResNet-18 on 32-pixel images, from the weights and images of ../pattern.py, for
tests/train/resnet18.py.

    pip install torch==2.13.0 numpy safetensors
    python3 make_resnet18.py            writes the files next to this script

Everything is computed in f64, except the distances of PyTorch's own f32 and bf16 gradients from f64, which limit what
can be required of an implementation. Of each gradient the elements that pattern.spread picks are stored; distances are
over these.

    resnet18.safetensors  relu.<name>, gelu.<name>: gradients of step 1 (f64)
    resnet18.json         losses of 20 SGD steps, distances per tensor, versions
"""
import json
import os

import torch
from safetensors.torch import save_file

import make_resnet20 as base
import make_torchvision
import pattern

IMAGES, CLASSES, STEPS = (8, 3, 32, 32), 1000, 20


def labels():
    return torch.tensor([i * 377 % CLASSES for i in range(IMAGES[0])])


def picks(grads):
    return {k: torch.tensor(pattern.spread(v.flatten().tolist()), dtype=torch.float64) for k, v in grads.items()}


def net_of(state, act, dtype):
    net = make_torchvision.module("resnet18", act).to(dtype)
    net.load_state_dict(state)
    return net.train()


def main():
    state = make_torchvision.state_of("resnet18")
    x = torch.tensor(pattern.images(IMAGES).tolist(), dtype=torch.float64).reshape(IMAGES)
    relu = picks(base.gradients(net_of(state, torch.relu, torch.float64), x, labels())[1])
    gelu = picks(base.gradients(net_of(state, base.gelu, torch.float64), x, labels())[1])
    base.STEPS = STEPS
    losses = base.steps(net_of(state, torch.relu, torch.float64), x, labels())
    last, distances = torch.channels_last, {}
    for name, autocast in (("f32", False), ("bf16", True)):
        net = net_of(state, base.gelu, torch.float32).to(memory_format=last)
        grads = base.gradients(net, x.float().to(memory_format=last), labels(), autocast=autocast)[1]
        distances["torch_%s_distance" % name] = base.distance(picks(grads), gelu)
    save_file({**{"relu." + k: v for k, v in relu.items()}, **{"gelu." + k: v for k, v in gelu.items()}},
              os.path.join(base.HERE, "resnet18.safetensors"))
    with open(os.path.join(base.HERE, "resnet18.json"), "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "losses": losses, **distances}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
