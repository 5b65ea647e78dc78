# SPDX-License-Identifier: Apache-2.0
"""Apex's levels O1, O2 and O3: trainer/ops/casts.def followed by ref, compared with a recorded f64 emulation
(reference/make_casts.py): losses and gradients to rounding; by cpu, within what fp16 leaves open. Memory: O2 stores
fp16 weights and gradients beside fp32 masters, O3 less than that in all; the process uses what the plan says. Loss
scales; pipelines; a run that recorded a level before the tables existed; refusals."""
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from helper import SOURCE, Folder, check, dptrain, fast, finish, read_run, registered, safetensors, sanitized

HERE = os.path.join(SOURCE, "tests", "train", "reference")
RESNET = ["--model", "resnet20", "--init-from", os.path.join(HERE, "weights.safetensors"), "--batch-from",
          os.path.join(HERE, "batch.safetensors"), "--lr", 0.01, "--lr-scheduler", "constant"]
GPT = ["--model", "gpt2-124m", "--init-from", os.path.join(HERE, "gpt-tied.safetensors"), "--batch-from",
       os.path.join(HERE, "gpt-batch.safetensors"), "--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 19,
       "--vocab-size", 61, "--seed", 7, "--lr", 0.01, "--lr-scheduler", "constant", "--wd", 0.1]
NETS = {"resnet20": RESNET, "gpt": GPT}
CPU = "cpu" in fast()


def run(folder, *flags):
    p = dptrain(*flags, "--runs-dir", folder)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (" ".join(map(str, flags)), p.returncode, p.stderr)):
        return {}
    return read_run(folder)["series"]


def described(values):
    return math.sqrt(sum(v * v for v in values)), sum(v * math.cos(i) for i, v in enumerate(values))


def emulated(name, level, backend, want, limits, *flags):
    with Folder() as tmp:
        path = os.path.join(tmp, "g.safetensors")
        losses = run(os.path.join(tmp, "runs"), *NETS[name], "--backend", backend, "--opt-level", level, *flags, "--max-steps",
                     len(want["losses"]), "--dump-grads", path).get(("train/loss", -1), {})
        for i, loss in enumerate(want["losses"]):
            got = losses.get(i + 1, float("nan"))
            check(abs(got - loss) <= limits[0] * loss, "%s %s on %s: loss of step %d is %.15g, emulated %.15g"
                  % (name, level, backend, i + 1, got, loss))
        got = safetensors(path) if os.path.exists(path) else {}
        check(set(want["grads"]) <= set(got), "%s %s on %s: names of the gradients" % (name, level, backend))
        for k, (norm, product) in want["grads"].items() if limits[1] else ():
            a, b = described(got[k][1]) if k in got else (0, 0)
            off = max(abs(a - norm), abs(b - product)) / norm
            check(off <= limits[1], "%s %s on %s: gradient of %s is %.1e from the emulated one" % (name, level, backend, k, off))
    return losses


def memory():
    """What the four lines of a plan say of a model whose weights are all matrices but for the norms, and that a process
    uses as much."""
    flags = ["--model", "gpt2-124m", "--n-layer", 4, "-b", 2, "--seq-len", 128, "--synthetic", "--opt", "adamw"]
    plans = {}
    for level in ("O0", "O1", "O2", "O3"):
        p = dptrain("plan", *flags, "--backend", "cpu", "--opt-level", level)
        plans[level] = {k: float(v) for k, v in re.findall(r"^ *(parameters|masters|gradients|optimizer) +([0-9.]+) MiB$", p.stdout, re.M)}
        check(len(plans[level]) == 4, "%s: plan %s %s" % (level, p.stdout, p.stderr))
        p = dptrain("plan", *flags, "--backend", "cpu", "--opt-level", level, "--json")
        said = json.loads(p.stdout)["memory"]
        for k, v in plans[level].items():
            check(abs(said[k] / 2**20 - v) <= 0.051, "%s: %s is %.1f MiB, in JSON %.3f" % (level, k, v, said[k] / 2**20))
    whole = plans["O0"]["parameters"]
    for level, shares in {"O0": (1, 0, 1, 2), "O1": (1, 0, 1, 2), "O2": (.5, 1, .5, 2), "O3": (.5, 0, .5, 1)}.items():
        for k, share in zip(("parameters", "masters", "gradients", "optimizer"), shares):
            # gradients are those of the moment that needs most memory
            least = 0 if k == "gradients" else share
            check(least * whole - 0.01 * whole <= plans[level][k] <= share * whole + 0.01 * whole,
                  "%s: %s need %.1f of %.1f MiB, not %g of it" % (level, k, plans[level][k], whole, share))
    check(sum(plans["O3"].values()) < 0.6 * sum(plans["O2"].values()), "O3 needs less than O2: %s" % plans)
    for level in ("O2", "O3") if not sanitized() else ():
        with Folder() as tmp:
            series = run(tmp, *flags, "--backend", "cpu", "--opt-level", level, "--max-steps", 2)
            planned, used = (max(series.get(("memory/%s_bytes" % k, r), {0: 0}).values()) for k in ("planned", "used") for r in (0,))
            check(planned > 200 << 20 and abs(used - planned) <= 0.05 * planned, "%s: %.1f MiB planned, %.1f used"
                  % (level, planned / 2**20, used / 2**20))


def ranks():
    """Two ranks add gradients of 16 bits; checkpoints hold the masters, O3's the fp16 weights. A resumed run goes on."""
    for level, kind in (("O2", 4), ("O3", 2)):
        with Folder() as tmp:
            flags = ["--model", "resnet20", "--synthetic", "-b", 4, "--backend", "cpu", "--opt-level", level, "--deterministic",
                     "--nproc-per-node", 2, "--lr", 0.05, "--lr-scheduler", "constant", "--run-name", "r", "--save-steps", 2]
            want = run(os.path.join(tmp, "a"), *flags, "--max-steps", 4).get(("train/loss", -1), {})
            run(os.path.join(tmp, "b"), *flags, "--max-steps", 2)
            got = run(os.path.join(tmp, "b"), *flags, "--max-steps", 4, "--resume", "auto").get(("train/loss", -1), {})
            check(len(want) == 4 and got == want, "%s on two ranks, resumed: %s, undisturbed %s" % (level, got, want))
            folder = os.path.join(tmp, "a", "default")
            folder = os.path.join(folder, os.listdir(folder)[0], "checkpoints")
            with open(os.path.join(folder, "step-4", "model.safetensors"), "rb") as f:
                n = int.from_bytes(f.read(8), "little")
                head = json.loads(f.read(n))["conv1.weight"]
            check(head["dtype"] == "F%d" % (8 * kind), "%s: a checkpoint's weights are %s" % (level, head["dtype"]))


def pipelines():
    """Two stages with one micro-batch compute what one process computes: casts of gradients stay on their stage. The
    gradient of tied weights is rounded on each stage, before the sum, where gradients are fp16."""
    for name, level, limit in (("resnet20", "O1", 0), ("gpt", "O1", 0), ("gpt", "O2", 3e-5), ("gpt", "O3", 3e-5)):
        got = []
        for flags in ([], ["--strategy", "pdp", "--nproc-per-node", 2, "--microbatches", 1]):
            with Folder() as tmp:
                flags = [*NETS[name], "--backend", "ref", "--opt-level", level, *flags, "--max-steps", 2 if name == "resnet20" else 3]
                got.append(run(tmp, *flags).get(("train/loss", -1), {}))
        one, staged = got
        check(len(one) > 1 and len(staged) == len(one) and all(abs(staged[i] - one[i]) <= limit * one[i] for i in one),
              "%s %s in two stages: losses %s, of one process %s" % (name, level, staged, one))


def scales():
    """The text model's gradients stay below half of fp16's range at a scale of 65536."""
    for flags, want in ((["--opt-level", "O1"], 65536), (["--opt-level", "O2"], 65536), (["--opt-level", "O3"], None),
                        (["--opt-level", "O2", "--loss-scale", 128], 128), (["--opt-level", "O3", "--loss-scale", "dynamic"], 65536)):
        with Folder() as tmp:
            got = run(tmp, *GPT, "--backend", "cpu", *flags, "--max-steps", 2).get(("train/loss_scale", -1), {})
            check((got.get(1, 1) if want is None else got.get(2)) == (want or 1), "%s: loss scales %s" % (flags, got))
    for flags, words in ((["--opt-level", "O0", "--loss-scale", 8], "scale the loss"), (["--opt-level", "O3", "--model-ema"], "needs parameters in fp32"),
                         (["--precision", "bf16", "--loss-scale", "dynamic"], "scale the loss")):
        p = dptrain(*RESNET, "--backend", "cpu", *flags, "--max-steps", 1)
        check(p.returncode == 2 and words in p.stderr, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))


def complete():
    """Each op that gives its operands a type has a line."""
    lines = {a[0] for a in registered("trainer/ops/casts.def", "CAST")}
    typed = set()
    for folder, _, names in os.walk(os.path.join(SOURCE, "trainer", "ops")):
        for name in names:
            if name.endswith(".c"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    for op, body in re.findall(r"^const struct op op_(\w+) = \{(.*?)^\};", f.read(), re.M | re.S):
                        if ".dtype = op_dtype_keep" not in body:
                            typed.add(op)
    typed -= {"bn_running", "attention_decode"}
    check(lines == typed, "ops without a line, or lines without an op: %s" % sorted(lines ^ typed))


def main():
    with open(os.path.join(HERE, "casts.json"), encoding="utf-8") as f:
        recorded = json.load(f)
    complete()
    for level in ("O1", "O2", "O3"):
        seen = {}
        for name in NETS:
            seen[name] = emulated(name, level, "ref", recorded[level][name], (1e-9, 1e-7))
            if CPU:
                # A ReLU that rounding flips moves a gradient of resnet20 by a tenth. At a loss scale of 65536 its largest
                # one is 56160 of the 65504 that fp16 holds: such a flip, which may be that of a multiply-add that a
                # compiler fuses or not, would skip a step. A smaller power of two rounds the same.
                flags = ["--loss-scale", 8192] if name == "resnet20" and level != "O3" else []
                emulated(name, level, "cpu", recorded[level][name], (2e-2, 2e-2 if name == "gpt" else None), *flags)
    pipelines()
    if CPU:
        memory()
        ranks()
        scales()
    finish("casts")


main()
