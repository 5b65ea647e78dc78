# SPDX-License-Identifier: Apache-2.0
"""With weights of torchvision's names and shapes our ResNets compute what plain PyTorch modules computed in f64
(recorded: reference/make_torchvision.py). tests/weights/torchvision_test checks all names and shapes."""
import json
import os
import struct

import pattern
from helper import Folder, check, dptrain, finish, safetensors, write_safetensors

HERE = os.path.dirname(os.path.abspath(__file__))


def nets():
    """Returns {net: [(name, shape)]}."""
    found = {}
    with open(os.path.join(HERE, "reference", "torchvision_resnets.txt"), encoding="ascii") as f:
        for line in f:
            net, name, shape = line.split()
            found.setdefault(net, []).append((name, [] if shape == "-" else [int(d) for d in shape.split(",")]))
    return found


def typed(tensors):
    return [(name, "I64" if name.endswith("num_batches_tracked") else "F32", shape, pattern.tensor(number, name, shape).tobytes())
            for number, (name, shape) in enumerate(tensors)]


def outputs(tmp, net, tensors, want):
    weights, batch, out = (os.path.join(tmp, n) for n in ("weights", "batch", "out"))
    write_safetensors(weights, typed(tensors))
    write_safetensors(batch, [("images", "F32", pattern.IMAGES, pattern.images().tobytes()),
                              ("labels", "I64", [2], struct.pack("<2q", 3, 999))])
    p = dptrain("--model", net, "--init-from", weights, "--batch-from", batch, "--test-only", "--save-outputs", out, "--backend", "ref")
    if not check(p.returncode == 0, "%s: exit %d: %s" % (net, p.returncode, p.stderr)):
        return
    shape, values = safetensors(out)["logits"]
    check(shape == [2, 1000], "%s: outputs of shape %s" % (net, shape))
    for image in range(2):
        got = list(values[image * 1000:(image + 1) * 1000:50])
        worst = max(abs(a - b) for a, b in zip(got, want[image])) / max(abs(b) for b in want[image])
        check(worst < 1e-10, "%s, image %d: outputs are %g away from PyTorch's" % (net, image, worst))


def main():
    found = nets()
    with open(os.path.join(HERE, "reference", "resnet_outputs.json"), encoding="ascii") as f:
        recorded = json.load(f)
    with Folder() as tmp:
        for net, want in recorded.items():
            outputs(tmp, net, found[net], want)
    finish("torchvision")


main()
