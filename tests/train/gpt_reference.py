# SPDX-License-Identifier: Apache-2.0
"""dptrain compared with PyTorch's recorded f64 numbers for a small GPT (reference/make_gpt.py): on ref, gradients of
step 1, losses and logits of every run of the table, also on 2 and 3 ranks; on cpu, gradients and 100 losses in f32,
gradients in bf16."""
import json
import os

from helper import SOURCE, Folder, check, distance, dptrain, finish, norm, read_run, safetensors

HERE = os.path.join(SOURCE, "tests", "train", "reference")


def start(run):
    weights = "gpt-tied.safetensors" if run["tied"] else "gpt-untied.safetensors"
    return ["--model", "gpt2-124m", "--init-from", os.path.join(HERE, weights), "--batch-from",
            os.path.join(HERE, "gpt-batch.safetensors"), *run["flags"]]


def losses_of(name, run, folder, *flags):
    p = dptrain(*start(run), "--runs-dir", folder, *flags)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
        return None
    return read_run(folder)["series"][("train/loss", -1)]


def same_losses(name, got, want, steps, limit):
    for step in range(1, steps + 1):
        a, b = want[step - 1], got.get(step, float("nan"))
        check(abs(a - b) <= limit * abs(a), "%s: loss of step %d is %.17g, PyTorch's %.17g" % (name, step, b, a))


def same_gradients(name, path, want, limit):
    got = safetensors(path)
    total = norm([norm(v) for v in want.values()])
    check(set(want) == set(got), "%s: gradients of %s" % (name, sorted(set(want) ^ set(got))))
    for k in sorted(set(want) & set(got)):
        d = distance(got[k][1], want[k], total)
        check(d <= limit, "%s: gradient of %s is %.2e from PyTorch's" % (name, k, d))


def on_ref(name, run, grads):
    with Folder() as tmp:
        path = os.path.join(tmp, "g.safetensors")
        got = losses_of(name, run, os.path.join(tmp, "runs"), "--backend", "ref", "--max-steps", 20, "--dump-grads", path)
        if got:
            same_losses(name, got, run["losses"], 20, 1e-8)
        if got and grads:
            same_gradients(name, path, grads, 1e-10)
    for ranks in (2, 3):
        with Folder() as tmp:
            got = losses_of(name, run, tmp, "--backend", "ref", "--max-steps", 5, "--nproc-per-node", ranks, "--bucket-cap-mb", 0.01)
            if got:
                same_losses("%s on %d ranks" % (name, ranks), got, run["losses"], 5, 1e-9)


def on_cpu(name, run, grads):
    steps = len(run["losses"])
    with Folder() as tmp:
        path = os.path.join(tmp, "g.safetensors")
        got = losses_of(name, run, os.path.join(tmp, "runs"), "--backend", "cpu", "--max-steps", steps, "--dump-grads", path)
        if got:
            same_losses(name + " in f32", got, run["losses"], steps, 1e-5)
        if got and grads:
            same_gradients(name + " in f32", path, grads, 1e-5)


def in_bf16(run, grads):
    """Gradients in bf16, at most 1.5 times as far from f64 as those of autocast."""
    if "bf16" not in dptrain("backends").stdout:
        print("bf16: not supported on this machine")
        return
    with Folder() as tmp:
        path = os.path.join(tmp, "g.safetensors")
        if not losses_of("bf16", run, os.path.join(tmp, "runs"), "--backend", "cpu", "--precision", "bf16", "--max-steps", 1,
                         "--dump-grads", path):
            return
        got = safetensors(path)
        for k, torch in run["torch_bf16_distance"].items():
            d = distance(got[k][1], grads[k], 1)
            check(d <= 1.5 * torch, "bf16 gradient of %s is %.2e from f64, PyTorch's %.2e" % (k, d, torch))


def same_logits(run):
    with Folder() as tmp:
        path = os.path.join(tmp, "o.safetensors")
        p = dptrain(*start(run), "--backend", "ref", "--test-only", "--save-outputs", path)
        if not check(p.returncode == 0, "evaluation: exit %d: %s" % (p.returncode, p.stderr)):
            return
        want, got = safetensors(os.path.join(HERE, "gpt-logits.safetensors"))["logits"], safetensors(path)["logits"]
        check(list(got[0]) == list(want[0]), "logits have the shape %s" % (got[0],))
        d = distance(got[1], want[1], norm(want[1]))
        check(d <= 1e-10, "logits are %.2e from PyTorch's" % d)
        check("perplexity" in p.stdout and "evaluation of 58 tokens" in p.stdout, "evaluation printed %r" % p.stdout)


def main():
    with open(os.path.join(HERE, "gpt.json"), encoding="utf-8") as f:
        runs = json.load(f)["runs"]
    kept = safetensors(os.path.join(HERE, "gpt-grads.safetensors"))
    for name, run in runs.items():
        grads = {k[len(name) + 1:]: v[1] for k, v in kept.items() if k.startswith(name + ".")}
        on_ref(name, run, grads)
        on_cpu(name, run, grads)
        if "torch_bf16_distance" in run:
            in_bf16(run, grads)
    same_logits(runs["tied"])
    finish("gpt_reference")


main()
