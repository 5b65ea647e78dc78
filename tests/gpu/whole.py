# SPDX-License-Identifier: Apache-2.0
"""A complete run on the cuda backend: fp16 with a loss scale that skips steps, steps of several micro-batches with a
smaller last one, averages, clipping, checkpoints. Its points, weights, moments and state have the same bits when it is
stopped, resumed, killed and resumed again, as one rank and as a pipeline of two; without graphs; with recomputation;
and in other orders of the device's streams, blocks and threads (in full: in 20, and on two ranks). In f64 a
network with batch norm has ref's losses, including a smaller last batch. On the fake device; with DPTRAIN_GPU=1 on the
machine's GPU."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import ENV, FULL, REAL
import stops
from helper import Folder, check, dptrain, finish, make_set, read_run, skip
from stops import GPT, SAVE, STEPS, differences, disturbed, make_words, outcome, steep

CUDA = ["--backend", "cuda", "--system-interval", 0]


def variants():
    """Flags and environment that change no bit."""
    yield "without graphs", ["--no-cuda-graphs"], {}
    yield "recomputation", ["--activation-checkpointing", "full"], {}
    if REAL:
        return
    for k in range(20 if FULL else 2):
        order = ("down", "up", str(k + 3))[k % 3]
        yield "order %s, seed %d" % (order, k), ["--no-cuda-graphs"] * (k % 2), {"DPTRAIN_FAKE_ORDER": order, "DPTRAIN_FAKE_SEED": str(k + 1)}


def finished(name, flags, env):
    with Folder() as tmp:
        p = dptrain(*flags, "--runs-dir", tmp, env={**ENV, **env}, timeout=300)
        return outcome(tmp) if check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-2000:])) else None


def run_of(folder, words, net):
    """A run of ten steps, the first of which overflow fp16."""
    return [*net, "--data-path", words, "--global-batch-size", 7, "--run-name", "r", "--deterministic", "--max-steps", STEPS, "--save-steps",
            SAVE, "--save-total-limit", 2, "--model-ema", "--model-ema-decay", 0.9, "--clip-grad-norm", 0.5, "--opt", "adamw", "--warmup-steps",
            2, "--precision", "fp16", "--init-from", steep(folder, words, net)]


def survives_stops(name, flags):
    points = disturbed(name, flags)
    skipped = list((points or {}).get(("train/skipped_steps", -1), {}).values())
    check(not points or 0 < skipped[-1] < STEPS // 2, "%s: some steps were skipped: %s" % (name, skipped))


def same_bits(folder):
    words = make_words(folder)
    flags = [*run_of(folder, words, [*GPT, *CUDA]), "--batch-size", 2]
    survives_stops("stopped and killed", flags)
    want = finished("as it is", flags, {})
    for name, more, env in variants():
        got = finished(name, [*flags, *more], env)
        found = differences(want, got) if want and got else []
        check(not found, "%s: %s" % (name, "; ".join(found[:4])))
    if FULL and not REAL:
        stops.ENV["DPTRAIN_FAKE_DEVICES"] = "2"
        disturbed("two ranks", [*flags, "--nproc-per-node", 2])
    if not REAL:
        stops.ENV["DPTRAIN_FAKE_DEVICES"] = "2"
        flags = run_of(folder, words, [*GPT, *CUDA, "--n-layer", 2])
        # Two stages, each with its part of weights and moments; micro-batches of 3, 2 and 2 samples.
        survives_stops("pipeline", [*flags, "--batch-size", 7, "--strategy", "pdp", "--pp-stages", 2, "--microbatches", 3, "--nproc-per-node", 2])


def ragged(folder):
    """Two epochs of 19 pictures, 8 per step in two micro-batches: the third step has 3; an evaluation of 7, 4 at a
    time."""
    found = []
    for backend in ("ref", "cuda"):
        runs = os.path.join(folder, backend)
        p = dptrain("--model", "resnet20", "--data-path", folder, "-b", 4, "--grad-accum-steps", 2, "--epochs", 2, "--precision", "fp64",
                    "--lr", 0.01, "--backend", backend, "--runs-dir", runs, env=ENV if backend == "cuda" else None, timeout=300)
        if not check(p.returncode == 0, "ragged on %s: exit %d: %s" % (backend, p.returncode, p.stderr[-2000:])):
            return
        found.append(read_run(runs)["series"])
    for key, count in (("train/loss", 6), ("train/grad_norm", 6), ("epoch/val_loss", 2)):
        want, got = (s.get((key, -1), {}) for s in found)
        check(len(want) == count and want.keys() == got.keys(), "ragged: %s at steps %s, %s" % (key, sorted(want), sorted(got)))
        for step, v in want.items():
            check(abs(got.get(step, 9e9) - v) <= 1e-9 * abs(v), "ragged: %s of step %d is %.17g, ref's %.17g" % (key, step, got.get(step, 9e9), v))


def main():
    if "fp64" not in next((line for line in dptrain("backends", env=ENV).stdout.splitlines() if line.startswith("cuda")), ""):
        skip("there is no GPU" if REAL else "the fake device was not built (no CUDA toolkit)")
    stops.ENV.update(ENV)
    with Folder() as tmp:
        same_bits(tmp)
    with Folder() as tmp:
        make_set(tmp, 19, 7, size=8)
        ragged(tmp)
    finish("whole")


main()
