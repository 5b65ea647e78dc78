# SPDX-License-Identifier: Apache-2.0
"""GPU statistics during training: NVML's values, scripted by a fake driver (tests/fakes/cuda/nvml.c), are recorded as
series of the rank that uses the device; device memory is the same after the second step and at the end; a profiler
receives every step, phase and node through NVTX."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import ENV, FAKE
from helper import Folder, check, dptrain, finish, read_run, skip

ENV = {**ENV, "DPTRAIN_FAKE_DEVICES": "4", "LD_LIBRARY_PATH": FAKE}
NET = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "-b", 4, "--backend", "cuda", "--threads", 1]
DRAWN = 4096 * (8 + 1) * 4  # bytes drawn by --synthetic, in host memory
LOOKS = 1500  # more than a run makes on a busy machine
# utilisation, bytes, milliwatts, degrees, MHz, nanoseconds throttled by power, by heat
SCRIPT = ";".join("%d,%d,%d,%d,%d,%d,%d" % (i, i << 20, 1000 * i + 500, 30 + i, 1000 + i, i * 10**6, i * 10**6) for i in range(LOOKS))
OF_LOOK = {"util_percent": lambda i: i, "memory_bytes": lambda i: i << 20, "power_watts": lambda i: i + 0.5,
           "temperature_c": lambda i: 30 + i, "sm_mhz": lambda i: 1000 + i}


def train(runs, *more, env=None):
    p = dptrain(*NET, *more, "--runs-dir", runs, env={**ENV, **(env or {})})
    check(p.returncode == 0, "exit %d: %s" % (p.returncode, p.stderr[-2000:]))
    return read_run(runs)


def looks(series, name, rank):
    """For each step, the look of the script that its points came from."""
    of = {OF_LOOK[name](i): i for i in range(LOOKS)}
    points = sorted(series.get(("system/gpu_" + name, rank), {}).items())
    return [of.get(value) for _, value in points]


def vitals():
    with Folder() as runs:
        run = train(runs, "--device", 2, "--max-steps", 20, "--system-interval", 0.1, env={"DPTRAIN_FAKE_NVML": SCRIPT})
        series = run["series"]
        seen = {name: looks(series, name, 0) for name in OF_LOOK}
        check(run["params"].get("gpu") == "Fake GPU", "its name is a param: %s" % run["params"].get("gpu"))
    for name, order in seen.items():
        if name == "util_percent":  # 2 more for device 2
            order = [i and i - 2 for i in order]
        check(len(order) >= 2 and None not in order and order == sorted(set(order)), "%s: looks %s of the script" % (name, order))
        check(order[0] >= 1, "%s: the first look is the start's" % name)
    shares = series[("system/gpu_throttle_percent", 0)].values()
    check(all(0 < s <= 100 for s in shares), "throttled by power and heat: %s" % list(shares))


def less_known():
    """Values that the driver does not support are omitted; there are no series without a driver, or without the
    device."""
    for env, absent in (({"DPTRAIN_FAKE_NVML_WITHOUT": "ViolationStatus"}, {"throttle_percent"}),
                        ({"LD_LIBRARY_PATH": ""}, {*OF_LOOK, "throttle_percent"})):
        with Folder() as runs:
            series = train(runs, "--max-steps", 20, "--system-interval", 0.1, env={"DPTRAIN_FAKE_NVML": SCRIPT, **env})["series"]
        got = {key[len("system/gpu_"):] for key, _ in series if key.startswith("system/gpu_")}
        check(got == {*OF_LOOK, "throttle_percent"} - absent, "%s: %s" % (env, sorted(got)))


def memory():
    with Folder() as runs:
        series = train(runs, "--max-steps", 5)["series"]
    used = series.get(("memory/device_bytes", 0), {})
    check(sorted(used) == [2, 5] and used[2] == used[5], "device memory after step 2 and at the end: %s" % used)
    planned = series[("memory/planned_bytes", 0)][5] - DRAWN
    check(used[5] >= 0.9 * planned, "device memory includes the plan: %s, %d planned" % (used, planned))


def ranges_of(path):
    """Returns [depth, name] in the order of their starts."""
    with open(path, encoding="utf-8") as f:
        return [(int(line.split(" ", 1)[0]), line.rstrip("\n").split(" ", 1)[1]) for line in f]


def profiler():
    with Folder() as tmp:
        path = os.path.join(tmp, "ranges")
        env = {"NVTX_INJECTION64_PATH": os.path.join(FAKE, "libprofiler.so"), "DPTRAIN_FAKE_PROFILE": path}
        train(os.path.join(tmp, "runs"), "--max-steps", 3, "--no-cuda-graphs", env=env)
        found = ranges_of(path)
    steps = [i for i, (depth, name) in enumerate(found) if depth == 0 and name.startswith("step ")]
    check([found[i][1].split()[1] for i in steps][-3:] == ["1", "2", "3"], "steps: %s" % [found[i] for i in steps])
    last = found[steps[-1] + 1:]
    phases = [name for depth, name in last if depth == 1]
    nodes = [name for depth, name in last if depth == 2]
    check([p for p in phases if p in ("forward", "backward", "optimizer")] == ["forward", "backward", "optimizer"], "phases: %s" % phases)
    check(len(nodes) == len(set(nodes)) > 30, "every node once: %d of %d" % (len(set(nodes)), len(nodes)))
    check(all(depth <= 2 for depth, _ in found), "ranges end: %s" % (max(found),))


def main():
    if not os.path.exists(os.path.join(FAKE, "libnvidia-ml.so.1")):
        skip("the fake device was not built (no CUDA toolkit)")
    vitals()
    less_known()
    memory()
    profiler()
    finish("seen")


main()
