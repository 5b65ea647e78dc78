# SPDX-License-Identifier: Apache-2.0
"""The optimisers: 20 losses of a small GPT on ref compared with PyTorch's recorded f64 numbers for every optimiser,
schedule and clipping (reference/make_optimizers.py); of a network with batch norm for those that treat its gains and
biases separately, and with label smoothing (reference/make_resnet_optimizers.py: 4 steps of it, all 20 with
optimizers.py --full). A step with non-finite gradients leaves every weight bit for bit unchanged, on one rank and two,
and halves the loss scale."""
import json
import math
import os
import struct
import sys

from helper import SOURCE, Folder, check, dptrain, finish, read_run, safetensors

HERE = os.path.join(SOURCE, "tests", "train", "reference")
GPT = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 19, "--vocab-size", 61, "--init-from",
       os.path.join(HERE, "gpt-tied.safetensors"), "--batch-from", os.path.join(HERE, "gpt-batch.safetensors"), "--lr", 0.01,
       "--wd", 0.1]
RESNET = ["--model", "resnet20", "--precision", "fp64", "--init-from", os.path.join(HERE, "weights.safetensors"), "--batch-from",
          os.path.join(HERE, "batch.safetensors"), "--lr", 0.01, "--wd", 0.1]


def recorded(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return json.load(f)["runs"]


def first(run, steps):
    return {k: v if k == "flags" else v[:steps] for k, v in run.items()}


def like_torch(net, name, run, *flags):
    with Folder() as tmp:
        p = dptrain(*net, *run["flags"], "--backend", "ref", "--max-steps", len(run["losses"]), "--runs-dir", tmp, *flags)
        if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
            return
        series = read_run(tmp)["series"]
    for key, wanted in (("train/loss", run["losses"]), ("train/grad_norm", run["norms"])):
        for step, want in enumerate(wanted, 1):
            got = series[(key, -1)].get(step, math.nan)
            check(abs(got - want) <= 1e-8 * abs(want), "%s: %s of step %d is %.17g, not %.17g" % (name, key, step, got, want))


def read_raw(path):
    """Returns header and data of a safetensors file."""
    with open(path, "rb") as f:
        b = f.read()
    n, = struct.unpack("<Q", b[:8])
    return json.loads(b[8:8 + n]), bytearray(b[8 + n:])


def write_raw(path, header, data):
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + bytes(data))


def overflowing(folder):
    """One image whose label the network considers impossible: with the initial loss scale its gradient overflows
    fp16."""
    header, data = read_raw(os.path.join(HERE, "weights.safetensors"))
    struct.pack_into("<f", data, header["fc.bias"]["data_offsets"][0], -60)
    weights, batch = os.path.join(folder, "w.safetensors"), os.path.join(folder, "b.safetensors")
    write_raw(weights, header, data)
    pixels = struct.pack("<784f", *(math.sin(i * i) for i in range(784)))
    write_raw(batch, {"images": {"dtype": "F32", "shape": [1, 1, 28, 28], "data_offsets": [0, 3136]},
                      "labels": {"dtype": "I64", "shape": [1], "data_offsets": [3136, 3144]}}, pixels + struct.pack("<q", 0))
    return weights, batch


def skipped(ranks, *flags):
    name = "%d ranks %s" % (ranks, " ".join(map(str, flags)))
    with Folder() as tmp:
        weights, batch = overflowing(tmp)
        base = ["--model", "resnet20", "--init-from", weights, "--batch-from", batch, "--backend", "cpu", "--precision", "fp16",
                "--threads", 1, "--nproc-per-node", ranks, "--lr-scheduler", "constant", "--lr", 0.001, *flags]
        saved = os.path.join(tmp, "saved.safetensors")
        p = dptrain(*base, "--max-steps", 1, "--save-weights", saved, "--runs-dir", os.path.join(tmp, "one"))
        if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
            return
        before, after = safetensors(weights), safetensors(saved)
        for key in before:
            check(list(before[key][1]) == list(after[key][1]), "%s: %s is unchanged" % (name, key))
        p = dptrain(*base, "--max-steps", 4, "--runs-dir", os.path.join(tmp, "four"))
        check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr))
        series = read_run(os.path.join(tmp, "four"))["series"]
        losses, scales, counts = (series.get((k, -1), {}) for k in ("train/loss", "train/loss_scale", "train/skipped_steps"))
        check([counts.get(s) for s in (1, 2, 3, 4)] == [1, 1, 1, 1], "%s: one skipped step, not %s" % (name, counts))
        check([scales.get(s) for s in (1, 2)] == [65536, 32768], "%s: the scale is halved: %s" % (name, scales))
        check(losses.get(1) == losses.get(2), "%s: losses of steps 1 and 2 are %s" % (name, losses))
        check(losses.get(3, math.inf) < losses.get(2, 0), "%s: the loss falls after a step that counts: %s" % (name, losses))


def main():
    runs = recorded("optimizers.json")
    for name, run in runs.items():
        like_torch(GPT, name, run)
    for name in ("lars, clipping", "lamb"):
        like_torch(GPT, name + " on 2 ranks", first(runs[name], 5), "--nproc-per-node", 2)
    steps = 20 if "--full" in sys.argv else 4
    for name, run in recorded("resnet_optimizers.json").items():
        like_torch(RESNET, "resnet20, " + name, first(run, steps))
    for ranks in (1, 2):
        for opt in ("adamw", "lamb"):
            skipped(ranks, "--opt", opt)
    finish("optimizers")


main()
