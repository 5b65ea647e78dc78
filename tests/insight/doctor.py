# SPDX-License-Identifier: Apache-2.0
"""dptrain doctor: live runs with one fault each and their diagnosis, repeated from the recorded folder; the measured
effect of an action next to the predicted one; a run that overfits; refused input. system/... series of a run next to
its steps."""
import sys
sys.dont_write_bytecode = True
import glob
import json
import math
import os
import random
import re
import subprocess
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", f) for f in ("tracker", "api", "train")]
import helper
import journal
import lib

MODEL = ["--model", "gpt2-124m", "--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "8", "-b", "2", "--threads", "1",
         "--backend", "ref", "--precision", "fp64", "--tokenizer", "bytes"]


def doctor(folder, *flags, environment=None, code=0):
    r = subprocess.run([helper.program(environment), "doctor", *flags], capture_output=True, text=True, timeout=120, cwd=folder,
                       env=dict(os.environ, **(environment or {})))
    lib.equal(r.returncode, code, f"{flags}: {r.stderr}")
    return r


def bare_steps(run):
    """How often each rank measures a step without waiting; such a step is faster than one that waits 20 ms."""
    values = [(rank, value) for j in journal.journals(run) for key, rank, _, _, value in j.points if key == "doctor/bare_step"]
    lib.check(all(0 < value < 0.02 for _, value in values), values)
    return {rank: sum(r == rank for r, _ in values) for rank, _ in values}


def live(folder):
    """A slow loader, or one slower rank: named in text and in JSON, and again from the journals."""
    flags = [*MODEL, "--data-path", "text", "--max-steps", "60", "-j", "1"]
    slow = json.loads(doctor(folder, *flags, "--system-interval", "0", "--json", environment={"DPTRAIN_TEST_SLOW_LOADER": "20"}).stdout)
    first = slow["leaves"][0]
    lib.equal(slow["verdict"], "disk", slow["leaves"])
    lib.check(first["share"] > 0.5 and first["low"] <= first["share"] <= first["high"], first)
    lib.equal(slow["steps"] + slow["warmup"], len(slow["all_step_seconds"]), "steps")
    (run,) = glob.glob(os.path.join(folder, "runs", "doctor", "*"))
    again = doctor(folder, "--run", run, "--json").stdout
    lib.equal(json.loads(again), slow, "from the folder")
    said = doctor(folder, "--run", run).stdout
    lib.check("disk: " in said and "next: " in said and " ms a step, " in said, said)
    for place in ("runs/doctor", "runs/"):
        newest = doctor(folder, "--run", place, "--json")
        lib.equal(json.loads(newest.stdout), slow, place)
        lib.check("not the folder of a run; the newest run in it is " + place.rstrip("/") in newest.stderr, newest.stderr)
    lib.equal(bare_steps(run), {0: 1}, "steps on a cached batch")
    two = doctor(folder, *flags, "--nproc-per-node", "2", "--system-interval", "0.1", "--experiment", "two", "--json",
                 environment={"DPTRAIN_TEST_SLOW_RANK": "1:20"})
    lib.equal(bare_steps(*glob.glob(os.path.join(folder, "runs", "two", "*"))), {0: 1, 1: 1}, "cached steps of both ranks")
    lib.check("straggler" in {leaf["leaf"] for leaf in json.loads(two.stdout)["leaves"]}, two.stdout)
    lib.check(not glob.glob(os.path.join(folder, "runs", "doctor", "*", "checkpoints")), "no checkpoint")


def far(folder):
    """Slow copies of batches to the device; collectives over a slow link."""
    flags = [*MODEL, "--data-path", "text", "--max-steps", "40", "-j", "1", "--system-interval", "0"]
    got = json.loads(doctor(folder, *flags, "--experiment", "copied", "--json", environment={"DPTRAIN_TEST_SLOW_COPY": "20"}).stdout)
    lib.equal(got["verdict"], "copy", got["leaves"])
    flags = [*MODEL, "--data-path", "text", "--max-steps", "25", "-j", "1", "--nproc-per-node", "2", "--system-interval", "0"]
    got = json.loads(doctor(folder, *flags, "--experiment", "far", "--link", "30ms,0GB/s", "--json").stdout)
    lib.equal(got["verdict"], "link", got["leaves"])
    lib.check(min(got["all_phases"]["comm_exposed"][1:]) > 0.02, got["all_phases"]["comm_exposed"])


def machine(folder):
    """system/... of both ranks: steps that were made, rising sums, shares of the whole."""
    (run,) = glob.glob(os.path.join(folder, "runs", "two", "*"))
    for j in journal.journals(run):
        if j.header["rank"] < 0:
            continue
        system = [(key, rank, step, value) for key, rank, step, _, value in j.points if key.startswith("system/")]
        lib.equal({rank for _, rank, _, _ in system}, {j.header["rank"]}, "ranks of a journal")
        lib.check(all(1 <= step <= 60 for _, _, step, _ in system), "step numbers")
        sums = [value for key, _, _, value in system if key == "system/major_faults"]
        lib.check(len(sums) > 3 and sums == sorted(sums), f"sums rise: {sums}")
        lib.check(all(0 <= value <= 100 for key, _, _, value in system if key.endswith("_percent")), "percents")
    never = doctor(folder, *MODEL, "--data-path", "text", "--max-steps", "5", "--system-interval", "0", "--experiment", "never", "--json")
    lib.check(json.loads(never.stdout)["steps"] > 0, "a run without these series is judged too")
    (run,) = glob.glob(os.path.join(folder, "runs", "never", "*"))
    lib.check(not any(p[0].startswith("system/") for j in journal.journals(run) for p in j.points), "--system-interval 0")


def limited(folder):
    """A training on endless data stops at the time limit, as a finished run."""
    r = json.loads(doctor(folder, *MODEL[:-2], "--synthetic", "--seconds", "1", "--json").stdout)
    lib.check(len(r["all_step_seconds"]) > 0, "a step within a second")
    lib.check(sum(r["all_step_seconds"]) < 5, f"{sum(r['all_step_seconds'])} s of steps")


def tried(folder):
    """-j 0 loads between the steps: the action is tried, and the measured gain is next to the predicted one."""
    flags = [*MODEL, "--data-path", "text", "--max-steps", "40", "-j", "0", "--try"]
    r = doctor(folder, *flags, "--json", environment={"DPTRAIN_TEST_SLOW_LOADER": "10"})
    got = json.loads(r.stdout)["tried"]
    lib.equal(got["flags"], "-j auto", got)
    lib.check(got["promised"] > 1 and got["found"] > 0 and got["low"] < got["found"] < got["high"], got)
    lib.check("round 3 of 3" in r.stderr, r.stderr)


def overfits(folder):
    """A random text is learnt by heart: validation loss rises from the step that its own points show."""
    draw = random.Random(1)
    os.mkdir(os.path.join(folder, "noise"))
    for name, n in (("train", 400), ("val", 200)):
        with open(os.path.join(folder, "noise", name + ".txt"), "w", encoding="ascii") as f:
            f.write("".join(draw.choice("abcdefgh") for _ in range(n)))
    bigger = ["--model", "gpt2-124m", "--n-layer", "2", "--n-head", "2", "--n-embd", "64", "--block-size", "16", "-b", "13", "-j", "1",
              "--tokenizer", "bytes", "--data-path", "noise", "--lr", "0.003", "--opt", "adamw", "--lr-scheduler", "constant",
              "--system-interval", "0", "--max-steps", "300", "--eval-steps", "30", "--experiment", "by-heart", *map(str, helper.fast())]
    got = json.loads(doctor(folder, *bigger, "--json").stdout)["overfitting"]
    (run,) = glob.glob(os.path.join(folder, "runs", "by-heart", "*"))
    points = {p[2]: p[4] for j in journal.journals(run) for p in j.points if p[0] == "val/loss"}
    lowest = min(points, key=points.get)
    lib.check(got and got["step"] == lowest and f"since step {lowest}:" in got["sentence"], f"{got}: {points}")
    lib.check(got and got["sentence"] in doctor(folder, "--run", run).stdout, "in words")


def proposed():
    """The flags with their values that the actions of the tree name, with numbers in place of formats."""
    with open(os.path.join(helper.SOURCE, "schema/insight/leaves.def"), encoding="utf-8") as f:
        texts = [line.rsplit('"', 2)[1] for line in f if line.startswith("LEAF(")]
    with open(os.path.join(helper.SOURCE, "tracker/insight/bottleneck_tree.c"), encoding="utf-8") as f:
        texts += [t.replace("%.0f", "3").replace("%.2g", "4.8") for t in re.findall(r'SET_(?:ACTION|FLAGS)\(f,\s+"([^"]*)"', f.read())]
    return sorted({m for text in texts for m in re.findall(r"(?<![a-z-])(-[a-z]|--[a-z][a-z-]*)(?: (\d[\d.]*|auto|full|bf16)(?![a-z]))?", text)})


def actions_exist():
    """Each flag that an action names exists; with the named value the configuration is another one."""
    flags = proposed()
    lib.check(("-j", "auto") in flags and ("--eval-steps", "3") in flags and len(flags) > 12, flags)
    base = ["config", "--model", "resnet20", "--synthetic", "-j", "1", "--threads", "1"]
    with helper.Folder() as folder:  # --eval-steps needs a set with an evaluation part
        for split in ("train", "t10k"):
            for kind, shape in (("images-idx3", (64, 28, 28)), ("labels-idx1", (64,))):
                with open(os.path.join(folder, f"{split}-{kind}-ubyte"), "wb") as f:
                    f.write(bytes([0, 0, 8, len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape) + bytes(math.prod(shape)))
        base[3:4] = ["--data-path", folder]
        usual = helper.dptrain(*base).stdout
        for flag, value in flags:
            p = helper.dptrain(*base, flag, value) if value else helper.dptrain("train", "--help", flag.strip("-"))
            lib.check(p.returncode == 0 and p.stdout != usual, f"{flag} {value}: exit {p.returncode}: {p.stderr}")


def refused(folder):
    os.mkdir(os.path.join(folder, "nothing"))
    lib.check("no journal" in doctor(folder, "--run", "nothing", code=2).stderr, "a folder that is not a run")
    lib.check("as in 200us,1.25GB/s" in doctor(folder, "--synthetic", "--link", "3", code=2).stderr, "--link")
    lib.check("--data-path" in doctor(folder, "--model", "resnet20", code=2).stderr, "without data")
    lib.check("--run" in doctor(folder, "--synthetic", "--nnodes", "2", code=2).stderr, "several machines")
    lib.check("belongs to" in subprocess.run([helper.DPTRAIN, "--try"], capture_output=True, text=True, timeout=60).stderr, "--try")


def main():
    actions_exist()
    with helper.Folder() as folder:
        os.mkdir(os.path.join(folder, "text"))
        with open(os.path.join(folder, "text", "a.txt"), "w", encoding="ascii") as f:
            f.write("the quick brown fox jumps over the lazy dog\n" * 60)
        live(folder)
        machine(folder)
        far(folder)
        limited(folder)
        tried(folder)
        overfits(folder)
        refused(folder)
    lib.finish("doctor")


main()
