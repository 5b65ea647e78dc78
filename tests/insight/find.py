# SPDX-License-Identifier: Apache-2.0
"""dptrain find lr: rates rise over seven decades until the loss explodes; then short trainings, of which the advised rate
has the lowest loss: it trains better than a hundredth of it and ten times the exploded one; the run records the curve. dptrain find batch: what
fits, what is fastest, the recorded noise scale. Refused input; ctrl-C."""
import sys
sys.dont_write_bytecode = True
import glob
import json
import math
import os
import signal
import subprocess
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import LAUNCHER, Folder, check, dptrain, environment, fast, finish, program, read_run

MODEL = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--tokenizer", "bytes", "-b", 8,
         "--opt", "adamw", "-j", 1, "--report-to", "none", "--system-interval", 0, *fast()]

KILLED = 3
LITTLE = 8 << 20  # bytes of memory that are reported as available


def find(runs, *flags, code=0):
    p = dptrain("find", "lr", *MODEL, "--runs-dir", runs, *flags)
    check(p.returncode == code, "%s: exit %d: %s" % (flags, p.returncode, p.stderr[-500:]))
    return p.stdout


def own_run(folder):
    """The run of the range test, without those of the trainings."""
    (run,) = [r for r in glob.glob(os.path.join(folder, "*")) if not os.path.basename(r).startswith("lr-")]
    return run


def curve(tmp, text, name, *layout):
    """The answer is that of the recorded curve, whose rates rise evenly on a log scale."""
    runs = os.path.join(tmp, name)
    got = json.loads(find(runs, "--data-path", text, "--json", *layout))
    run = read_run(own_run(os.path.join(runs, "find")))
    rates, losses = run["series"]["train/lr", -1], run["series"]["train/loss", -1]
    steps = sorted(rates)
    check(steps == list(range(1, len(steps) + 1)) and 20 <= len(steps) <= 100, "%s: steps %s" % (name, steps[-1:]))
    check([c["lr"] for c in got["curve"]] == [rates[s] for s in steps[:len(got["curve"])]], "%s: its rates" % name)
    check([c["loss"] for c in got["curve"]] == [losses[s] for s in steps[:len(got["curve"])]], "%s: its losses" % name)
    check(all(abs(math.log10(rates[s + 1] / rates[s]) - 0.07) < 1e-9 for s in steps[:-1]), "%s: rates rise evenly" % name)
    check(got["exploded"] and abs(rates[steps[-1]] - got["exploded"]) < 1e-12 * rates[steps[-1]], "%s: ends where it exploded" % name)
    check(got["steepest"] <= got["lowest"] < got["exploded"], "%s: %s" % (name, got))
    tried = {t["lr"]: t["loss"] for t in got["trainings"]}
    worst = [math.inf if loss is None else loss for loss in tried.values()]
    check(len(tried) >= 5 and (tried[got["lr"]] or math.inf) == min(worst), "%s: the best of the trainings: %s" % (name, got))
    for factor in 1 / 4, 1 / 2, 2, 4:
        check(any(abs(rate / got["lr"] / factor - 1) < 1e-9 for rate in tried), "%s: %g times the rate was tried: %s" % (name, factor, tried))
    (run,) = glob.glob(os.path.join(runs, "find", "lr-%.3g-*" % got["lr"]))
    check(max(read_run(run)["series"]["train/loss", -1]) == 300, "%s: the length of a training" % name)
    return got


def said(tmp, text):
    runs = os.path.join(tmp, "words")
    first, second = find(runs, "--data-path", text, "--max-steps", 40, "--experiment", "other").splitlines()
    check(first.startswith("--lr ") and "exploded at" in first and second.endswith(own_run(os.path.join(runs, "other"))), first + second)
    run = own_run(os.path.join(runs, "other"))
    with open(sorted(glob.glob(os.path.join(run, "events.*")))[0], "rb") as f:
        check(first.split("; ", 1)[1].encode() in f.read(), "the run records what the range test found")
    check(not os.path.exists(os.path.join(run, "checkpoints")) and not glob.glob(os.path.join(run, "*.safetensors")), "the run has no weights")


def loss_with(tmp, text, lr):
    runs = os.path.join(tmp, "lr-%g" % lr)
    p = dptrain(*MODEL, "--data-path", text, "--runs-dir", runs, "--lr", lr, "--max-steps", 60, "--save-total-limit", 0)
    if p.returncode:
        return math.inf
    losses = read_run(runs)["series"]["train/loss", -1]
    return sum(losses[s] for s in range(51, 61)) / 10


def better(tmp, text, got):
    own = loss_with(tmp, text, got["lr"])
    for other in (got["lr"] / 100, got["exploded"] * 10):
        there = loss_with(tmp, text, other)
        print("lr %.3g: %.3f; lr %.3g: %.3f" % (got["lr"], own, other, there))
        check(own < there, "lr %g learns less than lr %g" % (got["lr"], other))


def refused(text):
    data = ["--data-path", text]
    for flags, words in ([], "expected lr or batch"), (["size", *data], "size"), (["lr"], "--data-path"), \
            (["lr", *data, "--max-steps", 5], "20 to 1000 steps"), (["lr", *data, "--lr", 0], "above 0"), \
            (["lr", *data, "--lr-scheduler", "step"], "--lr-scheduler"), (["lr", *data, "--resume", "auto"], "--resume"), \
            (["batch", *data, "--grad-accum-steps", 4], "batch sets the batch itself"), \
            (["lr", *data, "--nnodes", 2], "--nnodes"), (["lr", "batch", *data], "unexpected argument"):
        p = dptrain("find", *flags, *(MODEL if len(flags) > 1 or "lr" in flags else []))
        check(p.returncode == 2 and words in p.stderr and len(p.stderr.splitlines()) == 1, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))


def interrupted(tmp, text, name, where, *words):
    """A search interrupted after a run in that folder has made steps ends as killed, without an answer."""
    runs = os.path.join(tmp, "killed-" + name)
    slow = {"DPTRAIN_TEST_SLOW_RANK": "0:100"}
    line = [program(slow), "find", *words, *map(str, MODEL), "--data-path", text, "--runs-dir", runs]
    p = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(slow))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and p.poll() is None:
        journals = glob.glob(os.path.join(runs, "find", where, "events.*"))
        if journals and any(b"train/loss" in open(j, "rb").read() for j in journals):
            break
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    check(p.returncode == 130 and not out, "%s: ctrl-C: exit %d, %r, %s" % (name, p.returncode, out, err[-300:]))
    ends = [read_run(run)["status"].get(LAUNCHER) for run in glob.glob(os.path.join(runs, "find", where))]
    check(ends and None not in ends and (where != "*" or ends == [KILLED]), "%s: ended as %s" % (name, ends))


def batch(tmp, text, name, *layout):
    """Sizes of powers of two up to what fits; the noise scale is the run's, and every size has a separate run."""
    runs = os.path.join(tmp, name)
    p = dptrain("find", "batch", *MODEL, "--data-path", text, "--runs-dir", runs, "--json", *layout,
                env={"DPTRAIN_TEST_MEMORY": str(LITTLE)})
    check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-500:]))
    got = dict(json.loads(p.stdout), refused="does not fit with the kernels" in p.stderr)
    sizes = [s["batch_size"] for s in got["sizes"]]
    check(sizes and sizes == [4 << i for i in range(len(sizes))] and sizes[-1] <= got["largest"], "%s: %s" % (name, got))
    check(all(s["samples_per_s"] > 0 for s in got["sizes"]) and got["fastest"] in sizes, "%s: %s" % (name, got))
    best = max(s["samples_per_s"] for s in got["sizes"])
    check(got["fastest"] == min(s["batch_size"] for s in got["sizes"] if 1.03 * s["samples_per_s"] >= best), "%s: %s" % (name, got))
    check(got["sentence"].startswith("--batch-size %d: " % got["fastest"]), got["sentence"])
    kept = {run.rsplit("-", 1)[0] for run in os.listdir(os.path.join(runs, "find"))}
    check({"batch-%d" % s for s in sizes} <= kept, "%s: runs %s" % (name, kept))
    (own,) = [run for run in os.listdir(os.path.join(runs, "find")) if not run.startswith("batch-")]
    noise = read_run(os.path.join(runs, "find", own))["series"].get(("train/noise_scale", -1), {0: None})
    check(got["critical"] == noise[max(noise)], "%s: critical %s, the run has %s" % (name, got["critical"], noise))
    return got


def as_planned(tmp, text, got):
    """A size up to the largest is accepted and a larger one refused: nearly, because the timing picks kernels of
    various sizes. After a measured size was refused for these, that is the larger one."""
    runs = os.path.join(tmp, "planned")
    largest = got["largest"]
    for size, code in (largest * 9 // 10, 0), ((2 * largest if got["refused"] else largest) * 6 // 5 + 2, 2):
        p = dptrain(*MODEL, "--data-path", text, "--runs-dir", runs, "-b", size, "--max-steps", 1, "--save-total-limit", 0,
                    env={"DPTRAIN_TEST_MEMORY": str(LITTLE)})
        check(p.returncode == code and (code == 0 or "the plan needs" in p.stderr), "-b %d: exit %d: %s" % (size, p.returncode, p.stderr[-300:]))


def main():
    with Folder() as tmp:
        text = os.path.join(tmp, "text")
        os.mkdir(text)
        with open(os.path.join(text, "a.txt"), "w", encoding="ascii") as f:
            f.write("the quick brown fox jumps over the lazy dog\n" * 100)
        got = curve(tmp, text, "one")
        two = curve(tmp, text, "two", "--nproc-per-node", 2, "-b", 4)
        check(0.1 < two["lr"] / got["lr"] < 10, "two ranks give a similar rate: %g and %g" % (two["lr"], got["lr"]))
        said(tmp, text)
        better(tmp, text, got)
        refused(text)
        interrupted(tmp, text, "lr", "*", "lr", "--max-steps", "1000")
        got = batch(tmp, text, "batch", "--max-steps", 40)
        check(got["ranks"] == 1 and got["largest"] > 4, "bounded by memory: %s" % got)
        as_planned(tmp, text, got)
        check(batch(tmp, text, "batch-of-two", "--nproc-per-node", 2, "--max-steps", 20)["ranks"] == 2, "two ranks")
        interrupted(tmp, text, "noise", "*", "batch", "--max-steps", "1000")
        interrupted(tmp, text, "batch", "batch-*", "batch", "--max-steps", "20")
    finish("find")


main()
