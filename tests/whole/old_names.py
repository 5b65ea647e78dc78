# SPDX-License-Identifier: Apache-2.0
"""A store, a journal and a checkpoint of a version with old names of two series and a flag (old/old.tar.xz): the store
is migrated to the new series names, a new store reads the journal with them, and the run is resumed with them."""
import sys
sys.dont_write_bytecode = True
import os
import subprocess
import tarfile
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

OLD = os.path.join(lib.SOURCE, "tests", "whole", "old", "old.tar.xz")
DPTRAIN = os.path.join(lib.BUILD, "dptrain")
FLAGS = ["--data-path", "set", "--model", "resnet20", "--image-size", "8", "-b", "4", "--backend", "ref", "--threads", "1", "--lr", "0",
         "-j", "1", "--augment", "none", "--lr-scheduler", "constant", "--system-interval", "0", "--watch-steps", "4", "--max-unreadable", "0.4"]
BLOCKS = 19  # rectifiers of the model


def points_of(server, what):
    """Returns {key: {step: value}} of the renamed series and of all series with old names."""
    runs = server.json("GET", "/api/v1/runs?experiment=default")[1]["runs"]
    lib.equal([r["name"] for r in runs], ["old"], f"{what}: runs")
    status, _, body = server.request("GET", f"/api/v1/export/series.csv?run={runs[0]['id']}")
    lib.equal(status, 200, f"{what}: export")
    head, *rows = [line.split(",") for line in body.decode().splitlines()]
    key, step, value = (head.index(n) for n in ("key", "step", "value"))
    found = {}
    for row in rows:
        if row[key].startswith(("dead", "data/broken", "data/unreadable")):
            found.setdefault(row[key], {})[int(row[step])] = float(row[value])
    return found


def check_points(found, steps, what):
    dead = {k: v for k, v in found.items() if k.startswith("dead_units/")}
    rest = {k: v for k, v in found.items() if k not in dead}
    lib.equal(len(dead), BLOCKS, f"{what}: series of rectifiers")
    lib.check(all(sorted(v) == steps and set(v.values()) == {1.0} for v in dead.values()), f"{what}: their points: {dead}")
    lib.equal(list(rest), ["data/unreadable"], f"{what}: other series")
    return rest.get("data/unreadable", {})


def served(runs, steps, what):
    server = lib.Server(runs, alone=True)
    unreadable = check_points(points_of(server, what), steps, what)
    rules = [r["metric"] for r in server.json("GET", "/api/v1/alerts/rules")[1]["rules"]]
    lib.equal(server.stop(), 0, f"{what}: exit code")
    return unreadable, rules


def resume():
    run = os.path.join("runs", "default", os.listdir(os.path.join("runs", "default"))[0])
    done = subprocess.run([DPTRAIN, *FLAGS, "--max-steps", "8", "--epochs", "2", "--resume", run], capture_output=True, text=True, check=False)
    lib.equal(done.returncode, 0, f"dptrain --resume: {done.stderr}")
    lib.check("after step 4" in done.stdout + done.stderr, f"dptrain --resume: {done.stdout}{done.stderr}")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        os.chdir(folder)
        with tarfile.open(OLD) as t:
            t.extractall(".")
        stored, rules = served("runs", [4], "a store of the old version")
        lib.equal(rules, ["dead_units/bn1.relu"], "metrics of its alert rules")
        os.remove(os.path.join("runs", "dptrack.db"))
        read, _ = served("runs", [4], "a journal of the old version")
        lib.equal(read, stored, "unreadable samples of the journal and of the store")
        lib.check(stored and max(stored.values()) == 1, f"unreadable samples: {stored}")
        resume()
        resumed, _ = served("runs", [4, 8], "the resumed run")
        lib.check(set(stored) < set(resumed), f"unreadable samples of the resumed run: {resumed}")
    lib.finish("old_names")


main()
