# SPDX-License-Identifier: Apache-2.0
"""Complete networks on the cuda backend compared with PyTorch's recorded f64 numbers: a small GPT; the same bits with
and without graphs and in other orders of streams, blocks and threads. In full: also the other GPTs, bf16,
ResNet-20 with ReLU in f64 and with GELU in f32 and bf16 (a minute and a half). On the fake device (tests/fakes/cuda);
with DPTRAIN_GPU=1 on the machine's GPU."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import ENV, FULL, REAL
from helper import SOURCE, Folder, check, distance, dptrain, finish, norm, read_run, safetensors, skip

HERE = os.path.join(SOURCE, "tests", "train", "reference")
RESNET = ["--model", "resnet20", "--init-from", os.path.join(HERE, "weights.safetensors"), "--batch-from",
          os.path.join(HERE, "batch.safetensors"), "--lr", 0.01, "--lr-scheduler", "constant"]


def reference(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return json.load(f)


def gpt(run):
    weights = "gpt-tied.safetensors" if run["tied"] else "gpt-untied.safetensors"
    return ["--model", "gpt2-124m", "--init-from", os.path.join(HERE, weights), "--batch-from",
            os.path.join(HERE, "gpt-batch.safetensors"), *run["flags"]]


def train(name, flags, steps, env=None):
    """Returns losses by step and gradients of the last step; (None, None) if the run failed."""
    with Folder() as tmp:
        grads = os.path.join(tmp, "g.safetensors")
        p = dptrain(*flags, "--backend", "cuda", "--max-steps", steps, "--runs-dir", os.path.join(tmp, "runs"), "--dump-grads",
                    grads, env={**ENV, **(env or {})}, timeout=600)
        if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-2000:])):
            return None, None
        return read_run(os.path.join(tmp, "runs"))["series"][("train/loss", -1)], safetensors(grads)


def same_losses(name, got, want, limit):
    for step in sorted(got or {}):
        a, b = want[step - 1], got[step]
        check(abs(a - b) <= limit * abs(a), "%s: loss of step %d is %.17g, PyTorch's %.17g" % (name, step, b, a))


def same_gradients(name, got, want, limit):
    total = norm([norm(v) for v in want.values()])
    for k in sorted(want):
        most = limit(k) if callable(limit) else limit
        if check(k in (got or {}), "%s: no gradient of %s" % (name, k)):
            d = distance(got[k][1], want[k], total)
            check(d <= most, "%s: gradient of %s is %.2e from PyTorch's, limit %.2e" % (name, k, d, most))


def on_gpt(names):
    kept = safetensors(os.path.join(HERE, "gpt-grads.safetensors"))
    for name, run in reference("gpt.json")["runs"].items():
        if names and name not in names:
            continue
        want = {k[len(name) + 1:]: v[1] for k, v in kept.items() if k.startswith(name + ".")}
        for precision, losses, grads in (("fp64", 1e-8, 1e-10), ("fp32", 1e-5, 1e-5)):
            about = "gpt %s in %s" % (name, precision)
            flags = [*gpt(run), "--precision", precision]
            got, _ = train(about, flags, 5)
            same_losses(about, got, run["losses"], losses)
            if want:
                same_gradients(about, train(about, flags, 1)[1], want, grads)
        if want and not names and "torch_bf16_distance" in run:
            got = train("gpt in bf16", [*gpt(run), "--precision", "bf16"], 1)[1]
            same_gradients("gpt in bf16", got, want, lambda k: 1.5 * run["torch_bf16_distance"].get(k, 1))


def on_resnet():
    settings = reference("reference.json")
    got, grads = train("resnet20 in fp64", [*RESNET, "--precision", "fp64"], 1)
    same_losses("resnet20 in fp64", got, settings["relu"]["losses"], 1e-8)
    same_gradients("resnet20 in fp64", grads, gradients("relu.safetensors"), 1e-10)
    grads = train("gelu in fp32", [*RESNET, "--precision", "fp32", "--act", "gelu"], 1)[1]
    same_gradients("gelu in fp32", grads, gradients("gelu.safetensors"), 3e-4)
    grads = train("gelu in bf16", [*RESNET, "--precision", "bf16", "--act", "gelu"], 1)[1]
    bf16 = settings["gelu"]["torch_bf16_distance"]
    same_gradients("gelu in bf16", grads, gradients("gelu.safetensors"), lambda k: 1.5 * bf16[k])


def gradients(name):
    return {k[5:]: v[1] for k, v in safetensors(os.path.join(HERE, name)).items() if k.startswith("grad.")}


def same_bits():
    """The results depend neither on how a step is enqueued nor on the order in which a device works."""
    flags = [*gpt(reference("gpt.json")["runs"]["tied"]), "--precision", "fp32", "--dropout", 0.1]
    want = train("graphs", flags, 3)
    others = [("without graphs", [*flags, "--no-cuda-graphs"], {}),
              ("watched, each node by itself", [*flags, "--watch-steps", 1], {})]
    if not REAL:
        others += [("order %s" % order, flags, {"DPTRAIN_FAKE_ORDER": order, "DPTRAIN_FAKE_SEED": seed})
                   for order, seed in (("down", "2"), ("7", "3"))]
    for name, more, env in others:
        check(train(name, more, 3, env) == want, "%s: the same bits as with graphs" % name)


def several_programs():
    """Programs of several sizes share memory: micro-batches of a step, an epoch's smaller last batch, evaluation."""
    with Folder() as tmp:
        p = dptrain("--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32,
                    "--synthetic", "--seq-len", 8, "-b", 4, "--grad-accum-steps", 2, "--activation-checkpointing", "full",
                    "--model-ema", "--clip-grad-norm", 1, "--max-steps", 2, "--backend", "cuda", "--runs-dir", tmp, env=ENV)
        check(p.returncode == 0, "accumulation: exit %d: %s" % (p.returncode, p.stderr))


def main():
    if "fp64" not in next((line for line in dptrain("backends", env=ENV).stdout.splitlines() if line.startswith("cuda")), ""):
        skip("there is no GPU" if REAL else "the fake device was not built (no CUDA toolkit)")
    on_gpt(None if FULL or REAL else ["tied"])
    same_bits()
    several_programs()
    if FULL or REAL:
        on_resnet()
    finish("nets")


main()
