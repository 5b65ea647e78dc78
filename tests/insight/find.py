"""dptrain find lr: rates rise over seven decades until the loss explodes; what is advised trains better than a hundred times less and
ten times what exploded; the run is recorded with its curve and the answer. What is refused; ctrl-C."""
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
from helper import DPTRAIN, LAUNCHER, Folder, check, dptrain, environment, fast, finish, read_run

MODEL = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--tokenizer", "bytes", "-b", 8,
         "--opt", "adamw", "-j", 1, "--report-to", "none", "--system-interval", 0, *fast()]

KILLED = 3


def find(runs, *flags, code=0):
    p = dptrain("find", "lr", *MODEL, "--runs-dir", runs, *flags)
    check(p.returncode == code, "%s: exit %d: %s" % (flags, p.returncode, p.stderr[-500:]))
    return p.stdout


def curve(tmp, text, name, *layout):
    """The answer is that of the recorded curve, whose rates rise evenly by their logarithm."""
    runs = os.path.join(tmp, name)
    got = json.loads(find(runs, "--data-path", text, "--json", *layout))
    run = read_run(os.path.join(runs, "find"))
    rates, losses = run["series"]["train/lr", -1], run["series"]["train/loss", -1]
    steps = sorted(rates)
    check(steps == list(range(1, len(steps) + 1)) and 20 <= len(steps) <= 100, "%s: steps %s" % (name, steps[-1:]))
    check([c["lr"] for c in got["curve"]] == [rates[s] for s in steps[:len(got["curve"])]], "%s: its rates" % name)
    check([c["loss"] for c in got["curve"]] == [losses[s] for s in steps[:len(got["curve"])]], "%s: its losses" % name)
    check(all(abs(math.log10(rates[s + 1] / rates[s]) - 0.07) < 1e-9 for s in steps[:-1]), "%s: rates rise evenly" % name)
    check(got["exploded"] and abs(rates[steps[-1]] - got["exploded"]) < 1e-12 * rates[steps[-1]], "%s: ends where it exploded" % name)
    check(got["lr"] and abs(got["lr"] * 10 - got["lowest"]) < 1e-9 and got["steepest"] <= got["lowest"] < got["exploded"], "%s: %s" % (name, got))
    return got


def said(tmp, text):
    runs = os.path.join(tmp, "words")
    first, second = find(runs, "--data-path", text, "--max-steps", 40, "--experiment", "other").splitlines()
    check(first.startswith("--lr ") and "exploded at" in first and second.endswith(glob.glob(os.path.join(runs, "other", "*"))[0]), first + second)
    (run,) = glob.glob(os.path.join(runs, "other", "*"))
    with open(sorted(glob.glob(os.path.join(run, "events.*")))[0], "rb") as f:
        check(first.encode() in f.read(), "the run holds the answer")
    check(not os.path.exists(os.path.join(run, "checkpoints")) and not glob.glob(os.path.join(run, "*.safetensors")), "and no weights")


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
    for flags, words in ([], "lr is what can be found"), (["size", *data], "size"), (["lr"], "--data-path"), \
            (["lr", *data, "--max-steps", 5], "20 to 1000 steps"), (["lr", *data, "--lr", 0], "above 0"), \
            (["lr", *data, "--lr-scheduler", "step"], "--lr-scheduler"), (["lr", *data, "--resume", "auto"], "--resume"), \
            (["lr", *data, "--nnodes", 2], "--nnodes"), (["lr", "batch", *data], "unexpected argument"):
        p = dptrain("find", *flags, *(MODEL if len(flags) > 1 or "lr" in flags else []))
        check(p.returncode == 2 and words in p.stderr and len(p.stderr.splitlines()) == 1, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))


def interrupted(tmp, text):
    """Ends as killed, and answers nothing."""
    runs = os.path.join(tmp, "killed")
    line = [DPTRAIN, "find", "lr", *map(str, MODEL), "--data-path", text, "--runs-dir", runs, "--max-steps", "1000"]
    p = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=environment({"DPTRAIN_TEST_SLOW_RANK": "0:100"}))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        journals = glob.glob(os.path.join(runs, "find", "*", "events.*"))
        if journals and any(b"train/loss" in open(j, "rb").read() for j in journals):
            break
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    check(p.returncode == 130 and not out, "ctrl-C: exit %d, %r, %s" % (p.returncode, out, err[-300:]))
    check(read_run(runs)["status"].get(LAUNCHER) == KILLED, "status killed: %s" % read_run(runs)["status"])


def main():
    with Folder() as tmp:
        text = os.path.join(tmp, "text")
        os.mkdir(text)
        with open(os.path.join(text, "a.txt"), "w", encoding="ascii") as f:
            f.write("the quick brown fox jumps over the lazy dog\n" * 100)
        got = curve(tmp, text, "one")
        two = curve(tmp, text, "two", "--nproc-per-node", 2, "-b", 4)
        check(0.2 < two["lr"] / got["lr"] < 5, "two ranks say alike: %g and %g" % (two["lr"], got["lr"]))
        said(tmp, text)
        better(tmp, text, got)
        refused(text)
        interrupted(tmp, text)
    finish("find")


main()
