# SPDX-License-Identifier: Apache-2.0
"""Complete sweeps: a grid, and successive halving whose launcher is killed repeatedly: every setting is one run, none
is started twice, the same file gives the same settings, promotion continues from the checkpoint, and finished trials
are not repeated."""
import sys
sys.dont_write_bytecode = True
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tracker"))
import helper
import journal

DPTRAIN = helper.DPTRAIN
with open(os.path.join(os.path.dirname(DPTRAIN), "config.h"), encoding="utf-8") as config:
    HAS_YAML = "#define HAVE_YAML 1" in config.read()
FLAGS = {"model": "resnet20", "backend": "ref", "b": 20, "workers": 0, "augment": "none", "system-interval": 0}


def write(folder, name, **plan):
    path = os.path.join(folder, name + ".json")
    data = os.path.join(folder, "data")
    if not os.path.isdir(data):
        os.mkdir(data)
        helper.make_set(data, train=40, val=10, size=12)
    flags = dict(FLAGS, **{"data-path": data}, **plan.pop("flags", {}))
    whole = dict({"name": name, "metric": {"name": "epoch/train_loss", "goal": "minimize"}, "seed": 3, "flags": flags}, **plan)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(whole, f)
    return path


def sweep(folder, path, *words, code=0):
    r = subprocess.run([DPTRAIN, "sweep", path, "--runs-dir", os.path.join(folder, "runs"), *words], capture_output=True, text=True, timeout=300)
    helper.check(r.returncode == code, "sweep %s: exit code %d, not %d: %s" % (path, r.returncode, code, r.stderr[-2000:]))
    return r.stdout + r.stderr


def trials(folder, name):
    """{name of a trial: its journals of rank 0}, and the number of run folders with each name."""
    found, folders = {}, {}
    for path in glob.glob(os.path.join(folder, "runs", "default", name + "-[0-9][0-9][0-9]-*")):
        key = os.path.basename(path)[:-9]
        folders[key] = folders.get(key, 0) + 1
        found[key] = [j for j in journal.journals(path) if j.header.get("rank") == 0] # a run killed at once may have none
    return found, folders


def params(journals):
    """Params of a run, and those of its segments."""
    out = {}
    for j in journals:
        out.update(j.params)
    return out


def epochs(journals, key="epoch/train_loss"):
    return [p[2] for j in journals for p in j.points if p[0] == key]


def write_yaml(value, out, indent=0):
    """Writes an object in the block style of YAML; lists in one line."""
    for key, one in value.items():
        if isinstance(one, dict):
            out.write("%s%s:\n" % (" " * indent, key))
            write_yaml(one, out, indent + 2)
        else:
            out.write("%s%s: %s\n" % (" " * indent, key, json.dumps(one)))


def grid(folder):
    path = write(folder, "grid", method="grid", parameters={"lr": {"values": [0.01, 0.1]}, "opt": {"values": ["sgd", "adamw"]}},
                 flags={"epochs": 1, "zero-init-residual": "yes"}) # YAML 1.1 reads yes as true, YAML 1.2 as a string
    said = sweep(folder, path, "--max-parallel", "2")
    helper.check(re.search(r"best: trial \d, epoch/train_loss [\d.]+: lr 0.\d+, opt", said), "grid: the best trial is printed: " + said)
    found, folders = trials(folder, "grid")
    settings = sorted((params(j)["lr"], params(j)["opt"]) for j in found.values())
    helper.check([params(j).get("zero_init_residual") for j in found.values()] == ["yes"] * 4, "grid: a flag given as yes: %s" % [params(j) for j in found.values()][0])
    helper.check(settings == [(0.01, "adamw"), (0.01, "sgd"), (0.1, "adamw"), (0.1, "sgd")], "grid: %s" % settings)
    again = sweep(folder, path)
    helper.check("trial" not in again.replace("best: trial", "") and trials(folder, "grid")[1] == folders, "grid: a second call runs nothing: " + again)
    yaml = os.path.join(folder, "grid.yaml")
    with open(path, encoding="utf-8") as f, open(yaml, "w", encoding="utf-8") as out:
        write_yaml(json.load(f), out)
    again = sweep(folder, yaml, code=0 if HAS_YAML else 2)
    helper.check(("best: trial" in again and "trial" not in again.replace("best: trial", "")) if HAS_YAML else "libyaml-dev" in again,
                 "grid: the same settings as YAML are the same sweep: " + again)
    changed = write(folder, "grid", method="grid", parameters={"lr": {"values": [0.01, 0.2]}}, flags={"epochs": 1})
    helper.check("other settings" in sweep(folder, changed, code=2), "grid: a changed file is refused")


def killed(folder, count):
    """Killed while trials run, some time after each begins; then run to the end."""
    plan = {"method": "asha", "trials": 6, "asha": {"min_epochs": 1, "eta": 2}, "flags": {"epochs": 4},
            "parameters": {"lr": {"min": 0.001, "max": 0.3, "distribution": "log_uniform_values"}}}
    path = write(folder, "asha", **plan)
    for n in range(count):
        p = subprocess.Popen([DPTRAIN, "sweep", path, "--runs-dir", os.path.join(folder, "runs"), "--max-parallel", "2"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.4 + 0.5 * n)
        p.send_signal(signal.SIGKILL)
        p.wait()
    said = sweep(folder, path, "--max-parallel", "2")
    found, folders = trials(folder, "asha")
    helper.check(sorted(folders) == ["asha-%03d" % i for i in range(6)] and set(folders.values()) == {1}, "asha: each trial once: %s" % folders)
    reached = sorted(max(epochs(j), default=0) for j in found.values())
    helper.check(reached[-1] == 4 and reached.count(4) >= 1 and sum(r >= 2 for r in reached) >= 3 and reached[0] == 1, "asha: rungs %s: %s" % (reached, said))
    for name, journals in found.items():
        newest = {}
        for j in journals:
            for p in j.points:
                if p[0] == "train/loss":
                    newest.setdefault(p[2], []).append(p[4])
        helper.check(sorted(newest) == list(range(1, 2 * max(epochs(journals)) + 1)), "asha: %s lacks steps: %s" % (name, sorted(newest)))
    return {name: params(j)["lr"] for name, j in found.items()}


def held(folder):
    """A process left by a killed launcher may not have registered its run yet: the sweep waits for the process that
    holds the log."""
    path = write(folder, "held", method="grid", parameters={"lr": {"values": [0.01]}}, flags={"epochs": 1})
    sweep(folder, path)
    trial, = glob.glob(os.path.join(folder, "runs", "default", "held-000-*"))
    shutil.rmtree(trial)
    log, = glob.glob(os.path.join(folder, "runs", "default", "held-*", "trial-000.log"))
    with open(log, encoding="utf-8") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        p = subprocess.Popen([DPTRAIN, "sweep", path, "--runs-dir", os.path.join(folder, "runs")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(1)
        helper.check(not trials(folder, "held")[1] and p.poll() is None, "held: the sweep waits")
    said = p.communicate(timeout=120)[1]
    helper.check(p.returncode == 0 and trials(folder, "held")[1] == {"held-000": 1}, "held: exit %d, %s" % (p.returncode, said))


def main():
    with helper.Folder() as folder:
        grid(folder)
        held(folder)
        first = killed(folder, 3)
    with helper.Folder() as folder:
        helper.check(killed(folder, 0) == first, "asha: the same file has the same settings")
        for text, what in (("{", "bad.json:1: "), ('{"name": "x", "metod": 1}', "metod"), ('{"name": "x", "metric": 1}', "metric: expected")):
            path = os.path.join(folder, "bad.json")
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            helper.check(what in sweep(folder, path, code=2), "refused: " + text)
        # a metric that no training has (wandb#917) is refused at once, one that this training lacks after its first trial
        path = write(folder, "metric", metric={"name": "val_acc", "goal": "maximize"}, method="grid", parameters={"lr": {"values": [0.1, 0.2]}})
        said = sweep(folder, path, code=2)
        helper.check("metric: name 'val_acc': no training records" in said and "epoch/val_loss, epoch/top1" in said and "trial" not in said, said)
        path = write(folder, "lacks", metric={"name": "val/top1", "goal": "maximize"}, method="grid", parameters={"lr": {"values": [0.1, 0.2]}},
                     flags={"epochs": 1})
        said = sweep(folder, path, code=2)
        helper.check("trial 1: recorded no val/top1" in said and "trial 2" not in said, said)
        missing = os.path.join(folder, "missing.json")
        said = sweep(folder, missing, code=2)
        helper.check(said.rstrip().endswith(missing + ": No such file or directory"), "a missing file: " + said)
        path = write(folder, "fails", method="grid", parameters={"lr": {"values": [0.1]}}, flags={"epochs": 1, "image-size": 4096, "classes": 3})
        said = sweep(folder, path, code=2)
        helper.check("trial 1: refused" in said and "classes" in said.split("trial 1: refused")[1], "a trial that cannot start: " + said)
    helper.finish("sweep/sweeps")


if __name__ == "__main__":
    main()
