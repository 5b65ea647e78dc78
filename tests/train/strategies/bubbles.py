#!/usr/bin/env python3
"""What stands still in a pipeline of equal stages: kernels take as long as their floating-point operations say
(DPTRAIN_TEST_PACE), so a step's idle share of a stage is (S - 1)/(M + S - 1) for M micro-batches on S stages, and
phase/bubble says so; of a run's steps the one counts that took least. GPipe and 1F1B alike. By the clock: run by hand, about two minutes."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helper import Folder, check, dptrain, finish, read_run

LAYERS, WIDTH, CONTEXT = 2, 16, 8 # of a stage
MICRO_S = 0.6 # forward and backward pass of a micro-batch in a stage
STEPS = 4


def shares(stages, micros, schedule):
    """Of each stage: (step's time that is neither forward nor backward pass, bubble), as shares of the step."""
    flops = 3 * LAYERS * 24 * CONTEXT * WIDTH ** 2
    with Folder() as runs:
        p = dptrain("--model", "gpt2-124m", "--n-layer", LAYERS * stages, "--n-head", 1, "--n-embd", WIDTH, "--block-size", CONTEXT,
                    "--vocab-size", 8, "--synthetic", "--opt", "sgd", "--max-steps", STEPS, "--strategy", "pdp", "--nproc-per-node", stages,
                    "--microbatches", micros, "-b", micros // stages, "--pp-schedule", schedule,
                    "--pp-partition", ",".join([str(LAYERS)] * stages), "--backend", "ref", "--workers", 0, "--threads", 1, "--report-to", "none",
                    "--runs-dir", runs, env={"DPTRAIN_TEST_PACE": str(flops / MICRO_S)}, timeout=300)
        if not check(p.returncode == 0, "%d stages, %d micro-batches: exit %d: %s" % (stages, micros, p.returncode, p.stderr)):
            return []
        series = read_run(runs)["series"]
    step = min(range(2, STEPS + 1), key=lambda s: max(series["phase/step", r][s] for r in range(stages))) # least disturbed by others
    part = lambda phase, rank: series["phase/" + phase, rank][step] / series["phase/step", rank][step]
    return [(1 - part("forward", r) - part("backward", r), part("bubble", r)) for r in range(stages)]


def main():
    for stages, counts in ((2, (2, 8)), (4, (4, 8))):
        for micros in counts:
            for schedule in ("1f1b", "gpipe"):
                want = (stages - 1) / (micros + stages - 1)
                for rank, (idle, bubble) in enumerate(shares(stages, micros, schedule)):
                    line = "%s, %d micro-batches, stage %d of %d: idle %.1f %%, phase/bubble %.1f %%, foreseen %.1f %%" % (
                        schedule, micros, rank, stages, 100 * idle, 100 * bubble, 100 * want)
                    print(line, flush=True)
                    check(abs(idle - want) <= 0.03 and abs(bubble - want) <= 0.03, line)
    finish("bubbles")


main()
