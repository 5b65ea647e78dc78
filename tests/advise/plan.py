# SPDX-License-Identifier: Apache-2.0
"""dptrain plan --auto: the order by goal, the best plan's command line compared with the plan of the passes, JSON by
its schema, refusals in one line. train --auto trains with the same global batch; bench --calibrate writes what a plan
reads. Shipped hardware files match their schema. Time and memory are measured in separate processes."""
import json
import os
import re
import resource
import shlex
import subprocess
import sys

TRAIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "train")
sys.path[:0] = [TRAIN, os.path.join(TRAIN, "hugging_face")]
from folders import SIZES, make_folder
from helper import Folder, check, dptrain, finish, read_run, sanitized

SOURCE = os.environ.get("srcdir", ".")
SMALL = ["--model", "gpt2-124m", "--n-layer", 6, "--n-embd", 128, "--n-head", 4, "--vocab-size", 512, "--seq-len", 64, "--synthetic", "--max-steps", 2]
KEYS = {"strategy", "zero_stage", "pp_stages", "ranks", "nnodes", "batch_size", "microbatches", "activation_checkpointing", "offload", "precision",
        "fits", "planned_bytes", "peak_bytes", "step_seconds", "samples_per_s", "aco", "limit", "command", "built"}
A100 = ["--hardware", "a100-40gb-x8"]


def plans(*more):
    p = dptrain("plan", "--auto", "--json", *SMALL, *A100, *more)
    check(p.returncode == 0, "plan --auto %s: exit %d: %s" % (" ".join(map(str, more)), p.returncode, p.stderr))
    return json.loads(p.stdout)["plans"]


def orders():
    found = {goal: plans("--goal", goal, "-b", 8) for goal in ("speed", "memory", "ranks")}
    for goal, key in (("speed", "step_seconds"), ("memory", "planned_bytes"), ("ranks", "ranks")):
        able = [p[key] for p in found[goal] if p["fits"] and p["built"]]
        check(found[goal][0]["fits"] and found[goal][0][key] <= 1.0001 * min(able), "--goal %s: %s is not the minimum" % (goal, found[goal][0][key]))
        check(set(found[goal][0]) == KEYS, "members: %s" % sorted(set(found[goal][0]) ^ KEYS))
    large = dptrain("plan", "--auto", "--json", *A100, "--model", "gpt2-774m", "--synthetic", "--seq-len", 256, "-b", 64, "--precision", "fp16",
                    "--opt", "sgd", "--momentum", 0, "--nproc-per-node", 8)
    first, *rest = json.loads(large.stdout)["plans"]  # stage 3 is as fast, but gathers twice
    check(first["zero_stage"] == 2 and any(p["zero_stage"] == 3 and p["step_seconds"] == first["step_seconds"] for p in rest[:5]),
          "of equally fast plans the one that sends least: %s" % first)
    check({p["strategy"] for p in found["speed"]} == {"single", "ddp", "fsdp", "pdp"}, "not every strategy was planned")
    check({p["strategy"] for p in plans("--strategy", "fsdp", "-b", 8)} == {"fsdp"}, "--strategy fsdp: other strategies were planned too")
    check({p["precision"] for p in found["speed"]} == {"fp32", "bf16"}, "both precisions are planned by default")


def same_bytes(best):
    words = shlex.split(best["command"])
    check(words[0] == "dptrain", "command: %s" % best["command"])
    p = dptrain("plan", *words[1:])
    line = next((l for l in p.stdout.splitlines() if l.startswith("memory of a rank")), "")
    if not check(line, "%s: exit %d: %s" % (best["command"], p.returncode, p.stderr)):
        return
    whole = float(line.split()[4]) * 2**20
    other = sum(float(l.split()[1]) for l in p.stdout.splitlines() if l.split()[0] in ("snapshot", "offloaded")) * 2**20
    check(abs(best["planned_bytes"] - whole + other) < 0.002 * whole + 2**18 * 0.8, "%s: %.1f MiB expected, %.1f planned" %
          (best["command"], best["planned_bytes"] / 2**20, whole / 2**20))


def exact():
    """The best plan's memory equals the plan of its own command line."""
    lists = (plans("-b", 8), plans("--goal", "memory", "-b", 8, "--precision", "fp32"), plans("-b", 4, "--opt", "adamw", "--precision", "fp32"),
             plans("-b", 8, "--strategy", "pdp"), plans("-b", 8, "--strategy", "fsdp", "--goal", "memory"))
    for one in lists:
        same_bytes(one[0])


def tuning(tmp):
    """A decoder of --init-from: an adapter's gradients and moments alone are sent and kept; the plan is exact, and trains."""
    folder = make_folder(os.path.join(tmp, "qwen3"), "qwen3", {**SIZES, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 8, "head_dim": 64})
    flags = ["--init-from", folder, "--synthetic", "--seq-len", 32, "--global-batch-size", 16, "--precision", "fp32"]
    found = {}
    for title, more in (("full", []), ("LoRA", ["--lora", 4])):
        p = dptrain("plan", "--auto", "--json", *flags, *more, "--strategy", "ddp", "--goal", "ranks", "--nproc-per-node", 2, *A100)
        if check(p.returncode == 0, "plan --auto of a decoder, %s: exit %d: %s" % (title, p.returncode, p.stderr)):
            found[title] = json.loads(p.stdout)["plans"][0]
            same_bytes(found[title])
    if len(found) == 2:
        sent, kept = ([found[t][key] for t in ("LoRA", "full")] for key in ("aco", "planned_bytes"))
        check(sent[0] < 0.7 * sent[1] and kept[0] < 0.7 * kept[1], "LoRA: %s s of exposed communication a sample, %s bytes planned" % (sent, kept))
    p = dptrain("train", "--auto", *flags, "--lora", 4, "--nproc-per-node", 2, "--max-steps", 2, "--runs-dir", tmp, "--report-to", "none", *A100)
    check(p.returncode == 0 and "--auto: --nproc" in p.stderr, "train --auto --lora: exit %d: %s" % (p.returncode, p.stderr))


def pipelines():
    """The assumed stages are used, so the passes' plans are close to the formulas, also for stages after the first."""
    for plan in [p for p in plans("-b", 8, "--strategy", "pdp", "--vocab-size", 4096) if p["offload"] == "none"][:6]:
        line = shlex.split(plan["command"])[1:]
        parts = [int(n) for n in line[line.index("--pp-partition") + 1].split(",")]
        check(len(parts) == plan["pp_stages"] and sum(parts) == 6, "%s: stages of %s" % (plan["command"], parts))
        said = [l.split()[4] for l in dptrain("plan", *line).stdout.splitlines() if l.startswith("memory of a rank")]
        whole = float(said[0]) * 2**20 if said else 0
        check(abs(plan["planned_bytes"] - whole) < 0.05 * whole, "%s: %.1f MiB expected, %.1f planned" %
              (plan["command"], plan["planned_bytes"] / 2**20, whole / 2**20))


def words():
    p = dptrain("plan", "--auto", "--explain", *SMALL, *A100, "-b", 8)
    check("alternatives to the best plan:" in p.stdout and "as slow" in p.stdout, "--explain does not describe alternatives: %s" % p.stdout[-400:])
    check(p.stdout.splitlines()[-1].startswith("dptrain --model"), "the last line is the best plan's command")
    p = dptrain("plan", "--auto", "--model", "gpt-13b", "--seq-len", 256, "-b", 256, "--nnodes", 4, "--synthetic", *A100, "--precision", "fp32")
    check(p.returncode == 0, "13 B: %s" % p.stderr)


def refusals(folder):
    bad = os.path.join(folder, "bad.json")
    for text, want in (("{", "bad.json:1: "), ('{"name": "x"}', "memory_bytes: expected a number"), ('{"nmae": "x"}', "unknown member 'nmae'"),
                       ('{"name": "x", "memory_bytes": 1e9}', "bandwidth: expected a list"), ("[]", "expected an object")):
        with open(bad, "w") as f:
            f.write(text)
        p = dptrain("plan", "--auto", *SMALL, "--hardware", bad)
        check(p.returncode == 2 and want in p.stderr and p.stderr.count("\n") == 1, "%s: exit %d: %s" % (text, p.returncode, p.stderr))
    for more, want in ((["--hardware", "b200"], "no such file"), ([], "--calibrate")):
        p = dptrain("plan", "--auto", *SMALL, *more, env={"XDG_CONFIG_HOME": folder})
        check(p.returncode == 2 and want in p.stderr and p.stderr.count("\n") == 1, "%s: exit %d: %s" % (more, p.returncode, p.stderr))
    big = ["plan", "--auto", "--model", "gpt-1t", "--seq-len", 256, "-b", 8, "--synthetic", "--precision", "bf16", *A100]
    for more in ([], ["--json"]):
        p = dptrain(*big, *more)
        check(p.returncode == 2 and ('"fits": false' if more else "no plan fits") in p.stdout, "nothing fits: exit %d: %s" % (p.returncode, p.stderr))
    p = dptrain("train", "--auto", "--strategy", "ddp", *SMALL, "--runs-dir", folder, *A100)
    check(p.returncode == 2 and "omit --strategy" in p.stderr, "train --auto --strategy: %s" % p.stderr)


def trained(folder):
    """Calibration, plan and training, on this machine."""
    env = {"XDG_CONFIG_HOME": folder, "DPTRAIN_TEST_CALIBRATE": "1"}
    p = dptrain("bench", "--calibrate", "--nproc-per-node", 2, "--threads", 1, env=env, timeout=300)
    if not check(p.returncode == 0, "--calibrate: exit %d: %s" % (p.returncode, p.stderr)):
        return
    with open(os.path.join(folder, "dptrain", "hardware.json")) as f:
        h = json.load(f)
    check(h["threads_per_rank"] == 1, "threads: %s" % h["threads_per_rank"])
    check({n["op"] for n in h["nodes"]} >= {"linear", "linear_dgrad", "linear_wgrad", "lmhead", "update"}, "nodes: %s" % {n["op"] for n in h["nodes"]})
    check({c["op"] for c in h["collectives"]} == {"allreduce", "all_gather", "reduce_scatter"}, "collectives: %s" % h["collectives"])
    held(h, "the calibrated file")
    process_memory(env, h["process_bytes"])
    single_rank(env, h["alone"])
    p = dptrain("train", "--auto", *SMALL, "--global-batch-size", 12, "--nproc-per-node", 2, "--runs-dir", folder, "--report-to", "none", env=env)
    check(p.returncode == 0 and "--auto: --nproc-per-node" in p.stderr and "--global-batch-size 12" in p.stderr, "train --auto: exit %d: %s" %
          (p.returncode, p.stderr))
    check("--precision fp32" in p.stderr, "the precision is unchanged: %s" % p.stderr)
    forecast(folder, p.stderr)
    for more in (["--grad-accum-steps", 2], ["--activation-checkpointing", "full", "--optim-offload"], ["--opt-level", "O0"]):
        p = dptrain("train", "--auto", *SMALL, "-b", 2, *more, "--nproc-per-node", 2, "--runs-dir", folder, "--report-to", "none", *A100)
        check(p.returncode == 0 and "--auto: --nproc" in p.stderr, "train --auto %s: exit %d: %s" % (more, p.returncode, p.stderr))


def forecast(folder, said):
    """The run has the expected seconds of a step next to the measured ones."""
    series = read_run(folder)["series"]
    planned = next((points for (key, _), points in series.items() if key == "plan/step"), {})
    measured = next(points for (key, _), points in series.items() if key == "phase/step")
    expected = float(re.search(r"expected: ([0-9.e-]+) s per step", said).group(1))
    check(set(planned) == set(measured) and all(abs(v - expected) < 0.005 * expected for v in planned.values()), "plan/step: %s, expected %g" % (planned, expected))


def process_memory(env, process_bytes):
    """A process's memory is its plan plus the process's own memory."""
    check(2**20 < process_bytes < 2**29, "a process uses %g bytes beyond its plan" % process_bytes)
    p = dptrain("plan", "--auto", "--json", *SMALL, "--nproc-per-node", 2, "-b", 4, env=env)
    for plan in json.loads(p.stdout)["plans"]:
        check(abs(plan["peak_bytes"] - plan["planned_bytes"] - process_bytes) < 2, "%(command)s: %(planned_bytes)d bytes, at most %(peak_bytes)d" % plan)


def single_rank(env, faster):
    """One rank where two were timed, with one thread each: it has both cores, unless its number of threads is given;
    then no other rank computes at the same time."""
    def step_s(*more):
        p = dptrain("plan", "--auto", "--json", *SMALL, "--nproc-per-node", 2, "-b", 4, "--precision", "fp32", *more, env=env)
        check(p.returncode == 0, "one rank, %s: exit %d: %s" % (more, p.returncode, p.stderr))
        return next(one["step_seconds"] for one in json.loads(p.stdout)["plans"] if one["strategy"] == "single")
    shared, one, two = step_s(), step_s("--threads", 1), step_s("--threads", 2)
    check(abs(one / shared - 2 * faster) < 1e-3 and abs(two / shared - faster) < 1e-3, "one rank: %g s, of one thread %g, of two %g; %g times" %
          (shared, one, two, faster))
    check(0 < faster <= 1, "a single rank takes %g times as long" % faster)


def held(h, name):
    """Checks required and known members by the schema."""
    with open(os.path.join(SOURCE, "schema", "hardware", "hardware.schema.json")) as f:
        schema = json.load(f)
    check(set(h) <= set(schema["properties"]) and set(schema["required"]) <= set(h), "%s: members %s" % (name, sorted(h)))
    for key in ("products", "bandwidth", "nodes", "collectives"):
        items = schema["properties"][key]["items"]
        for one in h.get(key, []):
            check(set(one) <= set(items["properties"]) and set(items["required"]) <= set(one), "%s: %s: %s" % (name, key, one))


def shipped():
    folder = os.path.join(SOURCE, "schema", "hardware")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".schema.json") and name != "prices.json":
            with open(os.path.join(folder, name)) as f:
                h = json.load(f)
            held(h, name)
            check(h["name"] + ".json" == name, "%s is named %s" % (name, h["name"]))


def costs():
    program = os.path.join(os.environ.get("builddir", "."), "dptrain")
    for model in ("gpt2-124m", "gpt-2.7b", "gpt-175b", "gpt-1t"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        p = subprocess.run([program, "plan", "--auto", "--model", model, "--nnodes", "4", "--synthetic", "-b", "16", "--json", *A100], capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(p.stdout)["plans"]
        check(p.returncode == (0 if any(plan["fits"] for plan in found) else 2), "%s: exit %d: %s" % (model, p.returncode, p.stderr))
        least = min(plan["planned_bytes"] for plan in found)
        check(least > 1e8, "%s: %d bytes for a rank of 32" % (model, least))
        check(after.ru_maxrss < 100000 or sanitized(), "%s: %d kB" % (model, after.ru_maxrss))
        print("%s: %.2f s of processor time, largest child so far %.0f MB" % (model, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                                                                          after.ru_maxrss / 1000))


def main():
    costs()
    shipped()
    orders()
    exact()
    pipelines()
    words()
    with Folder() as folder:
        refusals(folder)
        trained(folder)
        tuning(folder)
    finish("plan")


main()
