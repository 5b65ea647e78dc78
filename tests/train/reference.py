# SPDX-License-Identifier: Apache-2.0
"""dptrain compared with PyTorch's recorded f64 numbers for resnet20 (reference/make_resnet20.py): on ref, gradients of
step 1, losses of 10 steps and the outputs after them; on cpu, gradients of the smooth network (GELU) in f32 and bf16,
compared with f64 and with PyTorch's own distance from it."""
import json
import os

from helper import SOURCE, Folder, check, distance, dptrain, finish, norm, read_run, safetensors

HERE = os.path.join(SOURCE, "tests", "train", "reference")
BASE = ["--model", "resnet20", "--init-from", os.path.join(HERE, "weights.safetensors"), "--batch-from",
        os.path.join(HERE, "batch.safetensors"), "--lr", 0.01, "--lr-scheduler", "constant"]


def run(folder, *flags):
    p = dptrain(*BASE, "--runs-dir", folder, *flags)
    return check(p.returncode == 0, "%s: exit %d: %s" % (" ".join(map(str, flags)), p.returncode, p.stderr))


def gradient_distances(path, reference):
    want = {k[5:]: v[1] for k, v in safetensors(reference).items() if k.startswith("grad.")}
    got = safetensors(path)
    total = norm([norm(v) for v in want.values()])
    check(set(want) <= set(got), "names of the gradients")
    return {k: distance(got[k][1], want[k], total) for k in want if k in got}


def relu_f64(settings):
    with Folder() as tmp:
        grads, outputs = os.path.join(tmp, "g.safetensors"), os.path.join(tmp, "o.safetensors")
        if not run(os.path.join(tmp, "runs"), "--max-steps", 10, "--backend", "ref", "--precision", "fp64", "--dump-grads", grads,
                   "--save-outputs", outputs):
            return
        for name, d in gradient_distances(grads, os.path.join(HERE, "relu.safetensors")).items():
            check(d <= 1e-10, "gradient of %s is %.2e from PyTorch's" % (name, d))
        losses = read_run(os.path.join(tmp, "runs"))["series"][("train/loss", -1)]
        for i, want in enumerate(settings["relu"]["losses"]):
            got = losses.get(i + 1, float("nan"))
            check(abs(got - want) <= 1e-8 * abs(want), "loss of step %d is %.17g, PyTorch's %.17g" % (i + 1, got, want))
        shape, want = safetensors(os.path.join(HERE, "relu.safetensors"))["eval_logits"]
        got = safetensors(outputs)["logits"]
        check(list(got[0]) == list(shape), "outputs have the shape %s" % shape)
        d = distance(got[1], want, norm(want))
        check(d <= 1e-7, "evaluation outputs are %.2e from PyTorch's" % d)


def gelu_cpu(settings, precision, key, limit):
    if precision == "bf16" and "bf16" not in dptrain("backends").stdout:
        print("bf16: not supported on this machine")
        return
    with Folder() as tmp:
        grads = os.path.join(tmp, "g.safetensors")
        if not run(os.path.join(tmp, "runs"), "--max-steps", 1, "--backend", "cpu", "--precision", precision, "--act", "gelu",
                   "--dump-grads", grads):
            return
        for name, d in gradient_distances(grads, os.path.join(HERE, "gelu.safetensors")).items():
            most = limit(settings["gelu"][key][name])
            check(d <= most, "%s gradient of %s is %.2e from f64, limit %.2e" % (precision, name, d, most))


def main():
    with open(os.path.join(HERE, "reference.json"), encoding="utf-8") as f:
        settings = json.load(f)
    relu_f64(settings)
    gelu_cpu(settings, "fp32", "torch_f32_distance", lambda torch: 3e-4)
    gelu_cpu(settings, "bf16", "torch_bf16_distance", lambda torch: 1.5 * torch)
    finish("reference")


main()
