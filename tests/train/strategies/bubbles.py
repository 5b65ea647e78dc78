#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""phase/bubble is the idle share of a pipeline of equal stages whose kernels take a time proportional to their
floating-point operations (DPTRAIN_TEST_PACE). Both shares are from the same step, so machine load does not affect
them. --full also compares them with (S - 1)/(M + S - 1) for M micro-batches on S stages, GPipe and 1F1B, by the clock,
in the fastest step of a run: on a quiet machine, about two minutes. The schedules alone, without a clock:
tests/program/pipeline_test."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helper import Folder, check, dptrain, finish, read_run

LAYERS, WIDTH, CONTEXT = 2, 16, 8 # per stage
STEPS = 4


def measure(stages, micros, schedule, micro_s):
    """Returns the series of a run whose stages take micro_s for a micro-batch's forward and backward pass; None if it
    failed."""
    flops = 3 * LAYERS * 24 * CONTEXT * WIDTH ** 2
    with Folder() as runs:
        p = dptrain("--model", "gpt2-124m", "--n-layer", LAYERS * stages, "--n-head", 1, "--n-embd", WIDTH, "--block-size", CONTEXT,
                    "--vocab-size", 8, "--synthetic", "--opt", "sgd", "--max-steps", STEPS, "--strategy", "pdp", "--nproc-per-node", stages,
                    "--microbatches", micros, "-b", micros // stages, "--pp-schedule", schedule,
                    "--pp-partition", ",".join([str(LAYERS)] * stages), "--backend", "ref", "--workers", 0, "--threads", 1, "--report-to", "none",
                    "--runs-dir", runs, env={"DPTRAIN_TEST_PACE": str(flops / micro_s)}, timeout=300)
        ok = check(p.returncode == 0, "%d stages, %d micro-batches: exit %d: %s" % (stages, micros, p.returncode, p.stderr))
        return read_run(runs)["series"] if ok else None


def shares(series, rank, step):
    """Returns (share of a step's time outside forward and backward pass, share of bubble)."""
    part = lambda phase: series["phase/" + phase, rank][step] / series["phase/step", rank][step]
    return 1 - part("forward") - part("backward"), part("bubble")


def alike():
    """In at least one of three steps little else is idle; a fifth of an even step is bubble, less of a stage slowed by
    other load."""
    series = measure(2, 4, "1f1b", 0.12)
    for rank in range(2) if series else ():
        found = [shares(series, rank, step) for step in range(2, STEPS + 1)]
        check(min(abs(idle - bubble) for idle, bubble in found) <= 0.03 and max(bubble for _, bubble in found) > 0.1,
              "stage %d: idle and phase/bubble, of each step: %s" % (rank, found))


def by_the_clock():
    for stages, counts in ((2, (2, 8)), (4, (4, 8))):
        for micros in counts:
            for schedule in ("1f1b", "gpipe"):
                want = (stages - 1) / (micros + stages - 1)
                series = measure(stages, micros, schedule, 0.6)
                step = min(range(2, STEPS + 1), key=lambda s: max(series["phase/step", r][s] for r in range(stages))) if series else 0
                for rank in range(stages) if series else ():
                    idle, bubble = shares(series, rank, step)
                    line = "%s, %d micro-batches, stage %d of %d: idle %.1f %%, phase/bubble %.1f %%, foreseen %.1f %%" % (
                        schedule, micros, rank, stages, 100 * idle, 100 * bubble, 100 * want)
                    print(line, flush=True)
                    check(abs(idle - want) <= 0.03 and abs(bubble - want) <= 0.03, line)


alike()
if "--full" in sys.argv:
    by_the_clock()
finish("bubbles")
