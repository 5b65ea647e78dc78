"""With weights of torchvision's names and shapes our ResNets compute what plain PyTorch modules computed in f64 (recorded:
reference/make_torchvision.py). That all names and shapes agree is tests/unit/torchvision_test."""
import json
import os
import struct

import pattern
from helper import Folder, check, dptrain, finish, safetensors

HERE = os.path.dirname(os.path.abspath(__file__))


def nets():
    """{net: [(name, shape)]}"""
    found = {}
    with open(os.path.join(HERE, "reference", "torchvision_resnets.txt"), encoding="ascii") as f:
        for line in f:
            net, name, shape = line.split()
            found.setdefault(net, []).append((name, [] if shape == "-" else [int(d) for d in shape.split(",")]))
    return found


def write(path, tensors, fill):
    """tensors: [(name, dtype, shape)]; fill(number, name, shape): bytes."""
    head, at, sizes = {}, 0, {"F32": 4, "I64": 8}
    for name, dtype, shape in tensors:
        size = sizes[dtype]
        for d in shape:
            size *= d
        head[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for number, (name, _, shape) in enumerate(tensors):
            f.write(fill(number, name, shape))


def typed(tensors):
    return [(name, "I64" if name.endswith("num_batches_tracked") else "F32", shape) for name, shape in tensors]


def outputs(tmp, net, tensors, want):
    weights, batch, out = (os.path.join(tmp, n) for n in ("weights", "batch", "out"))
    write(weights, typed(tensors), lambda i, name, shape: pattern.tensor(i, name, shape).tobytes())
    write(batch, [("images", "F32", pattern.IMAGES), ("labels", "I64", [2])],
          lambda i, name, shape: pattern.images().tobytes() if name == "images" else struct.pack("<2q", 3, 999))
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
