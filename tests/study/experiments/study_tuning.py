# SPDX-License-Identifier: Apache-2.0
"""The decision tree of article 2, walked by `dptrain doctor` on a run with each bottleneck planted: what it named first, what the
fault costs a step, and what it promised. Loading takes up to 80 % of the time in the article. Faults are test hooks
(slow loader, slow copy, slow rank) or flags; only those that two cores can show are planted. tests/bench/insight/doctor plants
all of them, in two strengths on three jobs."""
import json
import os
import statistics
import subprocess

import noisy
from helper import environment, program

ONE, TWO = ["--threads", 1, "-j", 1], ["--threads", 1, "-j", 1, "--nproc-per-node", 2]
SAME = ["--deterministic", "-j", 1]  # else a rank uses no more threads than cores
JOB = ["--model", "resnet20", "--synthetic", "--image-size", 64, "--classes", 10, "-b", 16]


def faults(step_ms):
    """{leaf: (flags without, flags with, environment with)}"""
    slow = "%.1f" % (3 * step_ms)
    link = "0us,%.4fGB/s" % (1e-6 * 4 * 0.3e6 / (3 * step_ms))
    return {"copy": (ONE, ONE, {"DPTRAIN_TEST_SLOW_COPY": slow}), "link": (TWO, [*TWO, "--link", link], {}),
            "straggler": (TWO, TWO, {"DPTRAIN_TEST_SLOW_RANK": "1:" + slow}),
            "threads": ([*SAME, "--threads", 2], [*SAME, "--threads", 8], {}), "disk": (ONE, ONE, {"DPTRAIN_TEST_SLOW_LOADER": "%.1f" % (4 * step_ms)})}


def walked(s, label, flags, env, seconds, job):
    """What the doctor said of a run, recorded in the study's folder."""
    p = subprocess.run([program(env), "doctor", *map(str, [*job, *flags]), "--seconds", str(seconds), "--json", "--runs-dir", s.runs_dir, "--experiment", "study-tuning",
                        "--run-name", label, "--report-to", "none", "--watch-steps", "0"], env=environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       universal_newlines=True, stdin=subprocess.DEVNULL, timeout=600)
    folder = s.found(label)
    if p.returncode or not folder:
        s.problems.append("%s: %s" % (label, (p.stderr.strip().splitlines() or ["not recorded"])[-1]))
        return None
    got = json.loads(p.stdout)
    got["run"] = s.recorded_run(folder)["id"]
    got["step"] = statistics.mean(got["all_step_seconds"][got["warmup"]:])
    return got


def measure(s):
    seconds = 1 if s.quick else 8
    t = s.table("planted fault", "as the columns say", ["first leaf", "ms a step with it", "ms a step without", "promised gain", "gain"])
    s.metrics = ["phase/step", "phase/data_wait"]
    base = walked(s, "without a fault", ONE, {}, seconds, JOB)
    if not base:
        return
    pictures = os.path.join(s.work, "data", "pictures")
    noisy.folder(pictures, {"train": 400, "val": 8})
    right = seen = 0
    for leaf, (without, with_it, env) in faults(1e3 * base["step"]).items():
        if s.over():
            s.problems.append("%s: no time" % leaf)
            continue
        job = ["--model", "resnet20", "--image-size", 32, "-b", 16, "--data-path", pictures] if leaf == "disk" else JOB
        clean = base if without == ONE and job is JOB else walked(s, "%s, without" % leaf, without, {}, seconds, job)
        ill = walked(s, "%s, planted" % leaf, with_it, env, seconds, job)
        if not clean or not ill:
            continue
        first = ill["leaves"][0] if ill["leaves"] else {}
        seen, right = seen + 1, right + (ill["verdict"] == leaf)
        t.cell(leaf, "first leaf").word = ill["verdict"]
        t.cell(leaf, "first leaf").runs.append(ill["run"])
        t.add(leaf, "ms a step with it", 1e3 * ill["step"], ill["run"])
        t.add(leaf, "ms a step without", 1e3 * clean["step"], clean["run"])
        t.add(leaf, "promised gain", first.get("gain"), ill["run"])
        t.add(leaf, "gain", ill["step"] / clean["step"], ill["run"])
    if seen:
        s.fact("the decision tree finds the bottleneck", "confirmed" if right == seen else "not confirmed", "%d of %d planted faults named first" % (right, seen))
