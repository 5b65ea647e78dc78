# SPDX-License-Identifier: Apache-2.0
"""One training with and without a feature that should cost nothing, alternating and in fresh processes: mean seconds
per step after the first quarter, processor seconds of the complete run (hardly affected by other load), and their
ratios by round."""
import argparse
import contextlib
import json
import os
import resource
import statistics
import sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "train"), os.path.join(HERE, "..", "parts")]
import helper
import others
import results

FLAGS = ["--model", "resnet20", "--classes", "10", "-b", "64", "--threads", "1"]


def options(steps):
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=steps)
    results.options(p)
    p.add_argument("flags", nargs="*", default=FLAGS)
    return p


def train(flags, n):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with helper.Folder() as tmp:
        p = helper.dptrain(*flags, "--synthetic", "--deterministic", "--max-steps", n, "--report-to", "none", "--save-total-limit", 0,
                           "--runs-dir", tmp, timeout=3600)
        if p.returncode:
            sys.exit(p.stderr)
        series = helper.read_run(tmp)["series"]
    seconds = [v for (key, _), at in series.items() if key == "phase/step" for step, v in at.items() if step > n // 4]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return {"step": statistics.mean(seconds), "cpu": cpu, "losses": series[("train/loss", -1)]}


def turn(o, off, on, swapped):
    """Runs both settings once."""
    pair = {side: train([*o.flags, *(on if side else off)], o.steps) for side in ((True, False) if swapped else (False, True))}
    step, cpu = (pair[True][key] / pair[False][key] for key in ("step", "cpu"))
    return {"step_ratio": step, "cpu_ratio": cpu, "cpu": pair[False]["cpu"], "same_losses": pair[True]["losses"] == pair[False]["losses"]}


def words(row):
    return "step %.4f, processor %.4f of %.2f s, losses %s" % (row["step_ratio"], row["cpu_ratio"], row["cpu"],
                                                              "equal" if row["same_losses"] else "DIFFER")


def compare(o, off, on, limit):
    """off, on: the flags of both settings. Prints the results with the limits."""
    kept, rows = results.Results(o.results, o.minutes, words), []
    with contextlib.suppress(results.Over):
        for r in range(o.rounds):
            rows.append(kept.calm("%s round %d" % (" ".join(map(str, on)), r), lambda r=r: turn(o, off, on, r % 2 == 1), o.tries))
    if not rows:
        return
    others.tell(rows)
    quiet = [row for row in rows if others.calm(row)]
    ratio = {key: statistics.median(row[key] for row in quiet or rows) for key in ("step_ratio", "cpu_ratio")}
    if o.json:
        print(json.dumps({"rounds": rows, **ratio, "limit": limit}))
    else:
        for r, row in enumerate(rows):
            print("round %d: %s%s" % (r + 1, words(row), "" if others.calm(row) else " (others on the cores)"))
        print("medians of %d rounds%s: step %.4f, processor %.4f, limit %.2f" % (len(quiet or rows), "" if quiet else " beside others",
                                                                              ratio["step_ratio"], ratio["cpu_ratio"], limit))
