# SPDX-License-Identifier: Apache-2.0
"""dptrain compared with PyTorch's recorded numbers for ResNet-18 on 32-pixel images (reference/make_resnet18.py): on
ref, in f64, gradients of step 1 and 20 losses; on cpu, gradients of the smooth network (GELU): f32 compared with f64,
bf16 limited by PyTorch's own distance from it, also as processors without bf16 compute it. Weights and images come
from pattern.py."""
import json
import os

import pattern
from helper import Folder, check, distance, dptrain, finish, read_run, safetensors, write_safetensors

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference")
IMAGES, CLASSES = (8, 3, 32, 32), 1000


def write_inputs(tmp):
    tensors = []
    with open(os.path.join(HERE, "torchvision_resnets.txt"), encoding="ascii") as f:
        rows = [line.split() for line in f if line.startswith("resnet18 ")]
    for number, (_, name, dims) in enumerate(rows):
        shape = [] if dims == "-" else [int(d) for d in dims.split(",")]
        kind = "I64" if name.endswith("num_batches_tracked") else "F32"
        tensors.append((name, kind, shape, pattern.tensor(number, name, shape).tobytes()))
    paths = [os.path.join(tmp, n) for n in ("weights.safetensors", "batch.safetensors")]
    write_safetensors(paths[0], tensors)
    labels = b"".join((i * 377 % CLASSES).to_bytes(8, "little") for i in range(IMAGES[0]))
    write_safetensors(paths[1], [("images", "F32", IMAGES, pattern.images(IMAGES).tobytes()), ("labels", "I64", [IMAGES[0]], labels)])
    return ["--model", "resnet18", "--init-from", paths[0], "--batch-from", paths[1], "--lr", 0.01, "--lr-scheduler", "constant"]


def run(tmp, base, name, steps, *flags, isa=None, says=""):
    """Returns the picked gradients by name, and the losses. isa: a lower instruction set; says: expected in the
    output."""
    grads, runs = os.path.join(tmp, "g.safetensors"), os.path.join(tmp, name)
    p = dptrain(*base, *flags, "--max-steps", steps, "--save-total-limit", 0, "--dump-grads", grads, "--runs-dir", runs, timeout=300,
                env={"DPTRAIN_CPU_ISA": isa} if isa else None)
    check(says in p.stdout, "%s: %r is not in the output: %s" % (name, says, p.stdout))
    if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
        return {}, {}
    return {k: pattern.spread(v[1]) for k, v in safetensors(grads).items()}, read_run(runs)["series"][("train/loss", -1)]


def same_gradients(name, got, want, limits):
    check(set(want) <= set(got), "%s: no gradients of %s" % (name, sorted(set(want) - set(got))))
    for k in sorted(set(got) & set(want)):
        d = distance(got[k], want[k], 1)
        check(d <= limits[k], "%s: gradient of %s is %.2e from PyTorch's f64, limit %.2e" % (name, k, d, limits[k]))


def main():
    with open(os.path.join(HERE, "resnet18.json"), encoding="utf-8") as f:
        recorded = json.load(f)
    want = {act: {k[len(act) + 1:]: v[1] for k, v in safetensors(os.path.join(HERE, "resnet18.safetensors")).items()
                  if k.startswith(act)} for act in ("relu", "gelu")}
    with Folder() as tmp:
        base = write_inputs(tmp)
        got, losses = run(tmp, base, "f64", len(recorded["losses"]), "--backend", "ref", "--precision", "fp64")
        same_gradients("f64", got, want["relu"], dict.fromkeys(want["relu"], 1e-10))
        for step, loss in enumerate(recorded["losses"], 1):
            check(abs(losses.get(step, 0) - loss) <= 1e-8 * loss, "loss of step %d is %.17g, PyTorch's %.17g" % (step, losses.get(step, 0), loss))
        offered = dptrain("backends").stdout
        limits = {"fp32": dict.fromkeys(want["gelu"], 3e-4),
                  "bf16": {k: 1.5 * d for k, d in recorded["torch_bf16_distance"].items()}}
        for kind, isa, says in (("fp32", None, ""), ("bf16", None, ""), ("fp32", "avx2", ""), ("bf16", "avx2", "bf16 brings no speed here")):
            name = "%s on %s" % (kind, isa or "this machine")
            if kind in next((line for line in offered.splitlines() if line.startswith("cpu")), ""):
                got, _ = run(tmp, base, name, 1, "--backend", "cpu", "--precision", kind, "--act", "gelu", isa=isa, says=says)
                same_gradients(name, got, want["gelu"], limits[kind])
            else:
                print(kind + ": not supported on this machine")
    finish("resnet18")


main()
