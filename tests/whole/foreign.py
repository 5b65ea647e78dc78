# SPDX-License-Identifier: Apache-2.0
"""Folders written by PyTorch's and tensorboardX's writers are runs, with all scalars, hparams as params and text as
notes; their content was recorded when they were written (foreign/make_foreign.py)."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from serve import DPTRACK, SRC, Server


def points(server, run, key):
    lines = server.text(f"/export/series.csv?run={run['id']}&key={key}").splitlines()
    columns = lines[0].split(",")
    step, value = columns.index("step"), columns.index("value")
    return [[int(line.split(",")[step]), float(line.split(",")[value])] for line in lines[1:]]


def check(server, name, want):
    experiment, run_name = name.split("/", 1)
    runs = {r["name"]: r for r in server.json(f"/runs?experiment={experiment}")["runs"]}
    assert run_name in runs, f"{name}: no such run among {sorted(runs)}"
    run = runs[run_name]
    for key, value in want.items():
        if key == "params":
            for param, text in value.items():
                assert str(run["params"].get(param)) == text, f"{name}: param {param} is {run['params'].get(param)!r}"
        else:
            got = points(server, run, key)
            assert got == value, f"{name}: {key}: {got[:3]}… instead of {value[:3]}…"
    if "loss" in want:
        assert run["metrics"]["broken"]["nonfinite"] == 1, "the NaN is counted"


def media_of_others(server):
    """Pictures, histograms and texts in other programs' files are media at their steps."""
    run = next(r for r in server.json("/runs?experiment=vision")["runs"] if r["name"] == "torch")
    keys = server.json(f"/runs/{run['id']}/media")["keys"]
    assert any(k["kind"] == "histogram" and k["count"] for k in keys), f"the histograms are missing: {keys}"
    print("media:", ", ".join(f"{k['kind']} {k['key']}" for k in keys))


def add_hparams_is_no_run(folder, logdir):
    """What PyTorch's add_hparams wrote next to a run with data belongs to that run. Trials of a search, below a folder
    whose own file has no data, are runs, and the folder is not."""
    trial = os.path.join(folder, "runs/sweep/trial")
    for place in ("vision/torch/1795160400.7", "search/host/1795160401.1", "search/host/1795160402.2"):
        shutil.copytree(trial, os.path.join(logdir, place))
    silent = os.path.join(folder, "runs/sweep")
    for name in os.listdir(silent):
        if "tfevents" in name:
            shutil.copy(os.path.join(silent, name), os.path.join(logdir, "search/host"))
    for at, _, names in os.walk(logdir):  # so that nothing waits for more data
        for name in names + [""]:
            os.utime(os.path.join(at, name), (1795160500, 1795160500))


def check_neighbours(server):
    runs = {f"{r['experiment']}/{r['name']}": r for r in server.json("/runs")["runs"]}
    assert sorted(runs) == ["Default/sweep", "search/host/1795160401.1", "search/host/1795160402.2", "vision/torch",
                            "vision/x/seed1"], sorted(runs)
    run = runs["vision/torch"]
    assert str(run["params"]["lr"]) == "0.1" and run["params"]["opt"] == "sgd", run["params"]
    assert run["metrics"]["hparam/acc"]["last"] == 0.5, run["metrics"].keys()
    print("hparams of add_hparams belong to their run; trials of a search are runs")


def files_of_a_run(server, logdir):
    """Weights next to event files are listed; other files there or elsewhere are not."""
    run = next(r for r in server.json("/runs?experiment=vision")["runs"] if r["name"] == "torch")
    folder = os.path.join(logdir, "vision/torch")
    for name, size in (("model.pt", 1000), ("notes.env", 5), ("checkpoints/epoch=1.ckpt", 2000), ("checkpoints/log.txt", 5),
                       ("private/key.pt", 5), (".hidden.pt", 5)):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "wb") as f:
            f.write(bytes(size))
    os.symlink("/etc", os.path.join(folder, "checkpoints/model"))
    os.symlink("/etc/hostname", os.path.join(folder, "link.pt"))
    listed = server.json(f"/runs/{run['id']}/files")
    assert listed["folder"] == "vision/torch", listed
    assert [(f["path"], f["folder"], f["bytes"]) for f in listed["files"]] == \
        [("checkpoints", True, None), ("model.pt", False, 1000)], listed
    inner = server.json(f"/runs/{run['id']}/files?path=checkpoints")["files"]
    assert [(f["path"], f["bytes"]) for f in inner] == [("checkpoints/epoch=1.ckpt", 2000)], inner
    for other in ("private", "checkpoints/model", "missing"):
        assert server.json(f"/runs/{run['id']}/files?path={other}")["files"] == [], other
    print("weights next to event files are listed, unrelated files are not")


def first_look(tmp):
    """The first command on a folder prints everything that later ones print."""
    logdir = os.path.join(tmp, "twelve")
    subprocess.run([sys.executable, os.path.join(SRC, "tests/web/twelve.py"), "--events", logdir], check=True, timeout=60)
    command = [DPTRACK, "compare", "--logdir", logdir, "--experiment", "fashion"]
    looks = [subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout for _ in range(2)]
    assert looks[0] == looks[1], f"two looks differ:\n{looks[0]}\n{looks[1]}"
    for words in ("spike 4.85 at step 337", "NaN from step 400", "failed after step 267"):
        assert words in looks[0], f"{words!r} is not printed:\n{looks[0]}"
    print("a spike, a NaN and a failure are reported by the first command")


def main():
    folder = os.path.join(SRC, "tests/whole/foreign")
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f:
        expected = json.load(f)["runs"]
    with tempfile.TemporaryDirectory() as tmp:
        logdir = os.path.join(tmp, "logs")
        shutil.copytree(os.path.join(folder, "runs"), logdir)
        add_hparams_is_no_run(folder, logdir)
        with Server(logdir) as server:
            for name, want in expected.items():
                check(server, name, want)
            media_of_others(server)
            check_neighbours(server)
            files_of_a_run(server, logdir)
            print(f"{len(expected)} foreign runs read: {', '.join(expected)}")
        first_look(tmp)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
