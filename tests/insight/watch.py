# SPDX-License-Identifier: Apache-2.0
"""--watch-steps: norms of gradients and updates by parameter compared with PyTorch's recorded f64 gradients, equal for
every strategy; histograms that count every element; not a bit of the training changes; train/noise_scale compared with
the gradients of single samples."""
import sys
sys.dont_write_bytecode = True
import math
import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import SOURCE, Folder, check, dptrain, fast, finish, norm, read_run, safetensors

HERE = os.path.join(SOURCE, "tests", "train", "reference")
GPT = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 19, "--vocab-size", 61, "--seed", 7,
       "--lr", 0.01, "--lr-scheduler", "constant", "--wd", 0.1, "--init-from", os.path.join(HERE, "gpt-untied.safetensors"),
       "--no-tie-weights", "--batch-from", os.path.join(HERE, "gpt-batch.safetensors"), "--backend", "ref", "--max-steps", 1]
LAYOUTS = [["--nproc-per-node", 2], ["--nproc-per-node", 3, "--strategy", "fsdp"], ["--nproc-per-node", 2, "--strategy", "pdp"],
           ["--nproc-per-node", 2, "--strategy", "fsdp", "--zero-stage", 1], ["--grad-accum-steps", 2],
           ["--nproc-per-node", 4, "--strategy", "fsdp", "--shard-degree", 2], ["--optim-offload", "--param-offload"]]


def train(folder, *flags):
    p = dptrain(*flags, "--runs-dir", folder, "--threads", 1)
    check(p.returncode == 0, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))
    return read_run(folder) if p.returncode == 0 else None


def close(what, got, want, limit=1e-10):
    check(got is not None and abs(got - want) <= limit * abs(want), "%s: %s, expected %.17g" % (what, got, want))


def of_pytorch():
    """SGD's first update is lr (g + decay w), so the recorded gradients determine it."""
    grads = {k[len("untied."):]: list(v[1]) for k, v in safetensors(os.path.join(HERE, "gpt-grads.safetensors")).items()
             if k.startswith("untied.")}
    weights = {k: list(v[1]) for k, v in safetensors(os.path.join(HERE, "gpt-untied.safetensors")).items()}
    want = {}
    for name, g in grads.items():
        w = weights[name]
        decay = 0.1 if len(safetensors_shape(name)) > 1 else 0
        want[name] = (norm(g), 0.01 * norm([a + decay * b for a, b in zip(g, w)]) / norm(w) if any(w) else None)
    return want


def safetensors_shape(name):
    return safetensors(os.path.join(HERE, "gpt-untied.safetensors"))[name][0]


def norms():
    want = of_pytorch()
    for layout in [[], *LAYOUTS]:
        with Folder() as tmp:
            run = train(tmp, *GPT, "--watch-steps", 1, *layout)
            if not run:
                continue
            series = run["series"]
            for name, (grad, ratio) in want.items():
                close("%s: grad_norm/%s" % (layout, name), series.get(("grad_norm/" + name, -1), {}).get(1), grad)
                if ratio is not None:
                    close("%s: update_ratio/%s" % (layout, name), series.get(("update_ratio/" + name, -1), {}).get(1), ratio)
            check(len([k for k in series if k[0].startswith("grad_norm/")]) == len(want), "%s: gradient norms, one per parameter" % layout)


def bits():
    flags = ["--model", "resnet20", "--synthetic", "--classes", 10, "-b", 8, "--max-steps", 6, "--deterministic", *fast()[:2]]
    for layout in ([], ["--nproc-per-node", 2], ["--nproc-per-node", 2, "--strategy", "fsdp"], ["--nproc-per-node", 2, "--strategy", "pdp"]):
        losses = []
        for every in (2, 0):
            with Folder() as tmp:
                series = (train(tmp, *flags, *layout, "--watch-steps", every) or {"series": {}})["series"]
                losses.append([series.get((k, -1)) for k in ("train/loss", "train/grad_norm")])
                keys = {k[0] for k in series if k[0].split("/")[0] in ("grad_norm", "update_ratio", "dead_units")}
                check(bool(keys) == bool(every), "%s, every %d: %d watched series" % (layout, every, len(keys)))
                dead = [v for k, at in series.items() if k[0].startswith("dead_units/") for v in at.items()]
                check(not every or (len(dead) == 3 * 19 and all(s % 2 == 0 and 0 < v < 1 for s, v in dead)),
                      "%s: 19 rectifiers in steps 2, 4 and 6: %d points" % (layout, len(dead)))
        check(losses[0] == losses[1] and losses[0][0], "%s: losses and norms have the same bits" % layout)


def noise():
    """At lr 0 and over complete epochs of N samples: the scatter of single samples' gradients (S), the square of their
    mean (G)."""
    with Folder() as tmp:
        text = os.path.join(tmp, "text")
        os.mkdir(text)
        with open(os.path.join(text, "a.txt"), "w", encoding="utf-8") as f:
            f.write("".join(chr(97 + (i * i * 7 + i // 5) % 26) for i in range(1100)))
        base = ["--data-path", text, "--tokenizer", "bytes", "--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16,
                "--block-size", 16, "--lr", 0, "--wd", 0, "--lr-scheduler", "constant", "--val-split", 0, "-j", 1, "--save-total-limit", 0,
                *fast()[:2]]
        one = train(os.path.join(tmp, "one"), *base, "-b", 1, "--epochs", 1)
        squares = [v * v for v in one["series"][("train/grad_norm", -1)].values()]
        n = len(squares)
        whole = train(os.path.join(tmp, "whole"), *base, "-b", n, "--max-steps", 1)
        signal = whole["series"][("train/grad_norm", -1)][1] ** 2
        scatter = (sum(squares) / n - signal) * n / (n - 1)
        want = scatter / (signal - scatter / n)
        check(n >= 40, "%d samples" % n)
        for layout in (["--nproc-per-node", 2], ["--grad-accum-steps", 2]):
            run = train(os.path.join(tmp, "many" + layout[0]), *base, "-b", 4, *layout, "--max-steps", 1000, "--watch-steps", 1)
            got = run["series"].get(("train/noise_scale", -1), {}).get(1000, math.nan)
            print("noise scale %.3f, from single samples %.3f (%s)" % (got, want, layout[0]))
            close("noise scale %s" % layout, got, want, 0.1)


def main():
    norms()
    bits()
    noise()
    finish("watch")


main()
