# SPDX-License-Identifier: Apache-2.0
"""Diagnosis of slow runs: live runs with one fault each, and the output of the diagnosis and dptrack show; a healthy
run, and one without steps."""
import sys
sys.dont_write_bytecode = True
import glob
import json
import os
import subprocess
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", f) for f in ("api", "train")]
import helper
import lib

MODEL = ["--model", "gpt2-124m", "--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "8", "-b", "2", "--threads", "1",
         "--backend", "ref", "--precision", "fp64", "-j", "1", "--system-interval", "0"]  # a busy machine adds findings
FAULTS = {  # run: environment, flags, verdict, words of the evidence
    "disk": ({"DPTRAIN_TEST_SLOW_LOADER": "20"}, [], "disk", "off the cores"),
    "straggler": ({"DPTRAIN_TEST_SLOW_RANK": "1:60"}, ["--nproc-per-node", "2"], "straggler", "rank 1 "),
    "evaluation": ({}, ["--eval-steps", "2"], "evaluation", "evaluation takes"),
    "checkpoint": ({}, ["--save-steps", "1", "--save-total-limit", "1"], "checkpoint", "training pauses"),
}


def train(runs, text, name, environment, flags):
    line = [helper.program(environment), "--experiment", "slow", "--run-name", name, "--runs-dir", runs, "--data-path", text, "--tokenizer", "bytes",
            "--max-steps", "60", *MODEL, *flags]
    r = subprocess.run(line, capture_output=True, text=True, timeout=120, env=dict(os.environ, **environment))
    lib.equal(r.returncode, 0, f"{name}: {r.stderr}")


def show(runs, name):
    r = subprocess.run([lib.PROGRAM, "show", name, "--logdir", runs], capture_output=True, text=True, timeout=60)
    return r.stdout


def diagnosis(server, run):
    status, _, data = server.request("GET", f"/api/v1/runs/{run}/diagnosis")
    return status, json.loads(data)


def judged(server, ids):
    for name, (_, _, verdict, words) in FAULTS.items():
        status, got = diagnosis(server, ids[name])
        lib.equal((status, got["verdict"]), (200, verdict), f"{name}: {got}")
        first = got["leaves"][0]
        lib.check(words in first["evidence"] and first["action"] and first["usual"], f"{name}: {first}")
        lib.check(first["share"] > 0.05 and abs(first["gain"] - 1 / (1 - first["share"])) < 1e-9, f"{name}: {first}")
        lib.check(first["low"] is None or first["low"] <= first["share"] <= first["high"], f"{name}: {first}")
        shares = [leaf["share"] for leaf in got["leaves"]]
        lib.equal(shares, sorted(shares, reverse=True), f"{name}: order")


def same_words(runs, server, ids):
    """The sentences of REST and of the terminal are equal, from a folder's journals as from the store."""
    for name in FAULTS:
        (folder,) = glob.glob(os.path.join(runs, "slow", name + "-*"))
        read = subprocess.run([helper.DPTRAIN, "doctor", "--run", folder], capture_output=True, text=True, timeout=60)
        got = diagnosis(server, ids[name])[1]
        said = [got["sentence"], "bound by " + got["bound"], *(leaf[key] for leaf in got["leaves"] for key in ("sentence", "evidence", "usual", "action"))]
        for out in (show(runs, name), read.stdout):
            lib.check(all(words in out for words in said), f"{name}: {said} in {out}")


def machine(server, name, threads, system, ready=0):
    """A compute-bound run on 2 cores for which the machine reports `system` at every tenth step."""
    run = lib.make_run(server, "made", name, {"threads": threads, "batch_size": 8})
    points = []
    for step in range(1, 81):
        for key, value in (("step", 0.1), ("forward", 0.03), ("backward", 0.06), ("optimizer", 0.01)):
            points.append({"key": f"phase/{key}", "step": step, "value": value, "wall_time": 1795000000 + step / 10, "rank": 0})
        points.append({"key": "data/ready", "step": step, "value": ready, "wall_time": 1795000000 + step / 10, "rank": 0})
        for key, value in system.items() if step % 10 == 0 else ():
            value = value * step / 10 if key == "major_faults" else value
            points.append({"key": f"system/{key}", "step": step, "value": value, "wall_time": 1795000000 + step / 10, "rank": 0})
    lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "POST metrics")
    status, got = diagnosis(server, run)
    lib.equal(status, 200, f"{name}: {got}")
    return got


def machines(server):
    """The machine's statistics become leaves: a quota, then too many threads, other programs, the loader."""
    quiet = {"cpu_percent": 100, "cpu_process_percent": 100, "cpu_wait_percent": 0.5, "cpu_steal_percent": 0, "cpu_throttled_percent": 0,
             "loop_us": 30, "memory_wait_percent": 0, "major_faults": 0}
    lib.equal(machine(server, "quiet", 2, quiet)["verdict"], "healthy", "quiet")
    throttled = machine(server, "throttled", 2, dict(quiet, cpu_throttled_percent=50, cpu_wait_percent=50))
    lib.equal((throttled["verdict"], throttled["leaves"][0]["share"]), ("cpu_quota", 0.5), "throttled")
    lib.equal(machine(server, "waiting", 2, dict(quiet, cpu_wait_percent=30))["verdict"], "cpu", "it is unknown who uses the cores")
    lib.equal(machine(server, "crowded", 2, dict(quiet, cpu_wait_percent=30), ready=3)["verdict"], "crowding", "crowded")
    unknown = machine(server, "crowds", 2, dict(quiet, cpu_wait_percent=30), ready=3)["leaves"][0]
    lib.equal((unknown["gain"], unknown["sentence"]), (None, "Too many loader threads: 30 % of the time; the speed without it is unknown"),
              "a gain that does not follow from the share")
    lib.equal(machine(server, "others", 2, dict(quiet, cpu_wait_percent=30, cpu_process_percent=60))["verdict"], "cpu_taken", "others")
    lib.equal(machine(server, "memory", 2, dict(quiet, memory_wait_percent=40, major_faults=90))["leaves"][0]["evidence"],
              "threads wait for memory 40 % of the time; 9.0 pages are read back a step", "memory")


def made(server):
    """A compute-bound run is healthy; one without phases cannot be judged."""
    run = lib.make_run(server, "made", "compute")
    points = []
    for step in range(1, 41):
        for key, value in (("step", 0.1), ("forward", 0.03), ("backward", 0.06), ("optimizer", 0.01)):
            points.append({"key": f"phase/{key}", "step": step, "value": value, "wall_time": 1795000000 + step / 10, "rank": 0})
        points.append({"key": "train/loss", "step": step, "value": 1, "wall_time": 1795000000 + step / 10})
    lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "POST metrics")
    status, got = diagnosis(server, run)
    lib.equal((status, got["verdict"], got["leaves"], got["overfitting"]), (200, "healthy", [], None), f"compute: {got}")
    lib.check("backward 60 %" in got["bound"], got["bound"])
    empty = lib.make_run(server, "made", "empty")
    status, got = diagnosis(server, empty)
    lib.equal((status, got["verdict"], got["leaves"]), (200, None, []), "a run without phases")
    lib.check("phase/" in got["problem"], got)


def learnt(server):
    """Validation loss rises from step 400 while training loss falls: reported with and without a verdict on speed, and
    by epochs."""
    for name, by_epoch in (("steps", False), ("epochs", True)):
        run = lib.make_run(server, "made", name, {"steps_per_epoch": 50} if by_epoch else {})
        points = []
        for k in range(1, 21):
            at, wall = (k if by_epoch else 50 * k), 1795000000 + k
            keys = ("epoch/train_loss", "epoch/val_loss") if by_epoch else ("train/loss", "val/loss")
            points.append({"key": keys[0], "step": at, "value": 2 / k, "wall_time": wall})
            points.append({"key": keys[1], "step": at, "value": 1 + abs(k - 8) / 10, "wall_time": wall})
        lib.equal(server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points})[0], 200, "POST metrics")
        status, got = diagnosis(server, run)
        lib.equal((status, got["verdict"], got["overfitting"]["step"]), (200, None, 400), f"{name}: {got}")
        lib.check("since step 400:" in got["overfitting"]["sentence"] and "(1)" in got["overfitting"]["sentence"], got)
    return got["overfitting"]["sentence"]


def main():
    with helper.Folder() as folder:
        runs, text = os.path.join(folder, "runs"), os.path.join(folder, "text")
        os.mkdir(text)
        with open(os.path.join(text, "a.txt"), "w", encoding="ascii") as f:
            f.write("the quick brown fox jumps over the lazy dog\n" * 60)
        for name, (environment, flags, _, _) in FAULTS.items():
            train(runs, text, name, environment, flags)
        lib.check("speed: Slow disk" in show(runs, "disk") and "next: " in show(runs, "disk"), "dptrack show prints it")
        (folder,) = glob.glob(os.path.join(runs, "slow", "disk-*"))
        lib.equal(show(runs, folder + "/"), show(runs, "disk"), "a run by its folder")
        lib.equal(show(runs, os.path.join(runs, "slow")), show(runs, list(FAULTS)[-1]), "an experiment's newest run by its folder")
        server = lib.Server(runs)
        try:
            listed = server.json("GET", "/api/v1/runs?experiment=slow")[1]["runs"]
            judged(server, {r["name"]: r["id"] for r in listed})
            same_words(runs, server, {r["name"]: r["id"] for r in listed})
            made(server)
            machines(server)
            lib.check(learnt(server) in show(runs, "epochs"), "dptrack show prints it too")
            lib.check("speed without it is unknown" in show(runs, "crowds") and "0.00x" not in show(runs, "crowds"), show(runs, "crowds"))
        finally:
            server.stop()
    lib.finish("diagnosis")


main()
