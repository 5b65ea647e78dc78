# SPDX-License-Identifier: Apache-2.0
"""Products, convolutions and attention on the fake device: cuBLASLt and cuDNN where available, otherwise our kernels
after a line with the reason; the same losses either way; fp32 uses TF32 only on request."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import ENV, FAKE
from helper import Folder, check, dptrain, finish, read_run, skip

GPT = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--vocab-size", 61,
       "--synthetic", "--seq-len", 16, "-b", 4, "--max-steps", 3]
RESNET = ["--model", "resnet20", "--image-size", 8, "--synthetic", "-b", 2, "--max-steps", 2, "--lr", 0.01]
# library, variable that makes it old, network, the line, precisions with the limit on the losses' distance
CASES = [
    ("libcublasLt.so.13", {"DPTRAIN_FAKE_CUBLASLT_VERSION": "120800"}, GPT,
     "products without cuBLASLt are far slower: cuBLASLt 12.8.0 is too old: install 13.0 or newer (pip install "
     "nvidia-cublas==13.1.0.3 provides it)", [("fp64", 1e-13), ("fp32", 1e-5), ("bf16", 1e-2), ("fp16", 1e-2)]),
    ("libcudnn.so.9", {"DPTRAIN_FAKE_CUDNN_VERSION": "80900"}, RESNET,
     "convolutions without cuDNN are far slower: cuDNN 8.9.0 is too old: install 9.11 or newer (pip install "
     "nvidia-cudnn-cu13==9.19.0.56 provides it)", [("fp32", 1e-4), ("bf16", 5e-2)]),
]


def train(name, flags, env):
    """Returns losses of the steps, and the output."""
    with Folder() as tmp:
        p = dptrain(*flags, "--backend", "cuda", "--runs-dir", tmp, env={**ENV, **env})
        check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-2000:]))
        return list(read_run(tmp)["series"][("train/loss", -1)].values()), p.stderr


def distance(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def compare(library, old, net, line, precisions):
    if not os.path.exists(os.path.join(FAKE, library)):
        skip("the fake %s was not built (its header is missing)" % library)
    for precision, limit in precisions:
        own, said = train("own " + precision, [*net, "--precision", precision], old)
        check("backend cuda: " + line in said, "an old %s: %s" % (library, said[-600:]))
        by_library, said = train(library + precision, [*net, "--precision", precision], {})
        check(line[:30] not in said, "%s is not used: %s" % (library, said[-600:]))
        d = distance(by_library, own)
        check(d <= limit, "%s: losses with %s are %.1e from our kernels', limit %.1e" % (precision, library, d, limit))
        if precision == "fp32":
            tf32, _ = train("tf32", [*net, "--tf32"], {})
            check(1e-6 < distance(tf32, by_library) < 1e-1, "--tf32: %s, without it %s" % (tf32, by_library))


def attention():
    """In 16 bits and without dropout cuDNN computes it, and rounds differently from our kernels."""
    for precision in ("bf16", "fp16"):
        flags = [*GPT, "--precision", precision]
        own, _ = train("own attention", flags, {"DPTRAIN_FAKE_CUDNN_VERSION": "80900"})
        by_library, _ = train("attention", flags, {})
        d = distance(by_library, own)
        check(0 < d <= 1e-2, "attention in %s: losses with cuDNN are %.1e from our kernels', expected up to 1e-2" % (precision, d))


def main():
    for case in CASES:
        compare(*case)
    attention()
    room, _ = train("no workspace", GPT, {"DPTRAIN_FAKE_CUBLASLT_WORKSPACE": "0"})
    usual, _ = train("workspace", GPT, {})
    check(room == usual, "losses depend on the workspace: %s, %s" % (room, usual))
    finish("products, convolutions and attention: equal by libraries and by our kernels, TF32 on request")


main()
