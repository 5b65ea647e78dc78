"""Folders that PyTorch's and tensorboardX's writers left are runs, with every scalar, hparams as params and text as
notes; what they held was recorded when they were written (foreign/make_foreign.py)."""
import json
import os
import shutil
import sys
import tempfile

from serve import SRC, Server


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


def main():
    folder = os.path.join(SRC, "tests/whole/foreign")
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f:
        expected = json.load(f)["runs"]
    with tempfile.TemporaryDirectory() as tmp:
        logdir = os.path.join(tmp, "logs")
        shutil.copytree(os.path.join(folder, "runs"), logdir)
        with Server(logdir) as server:
            for name, want in expected.items():
                check(server, name, want)
            print(f"{len(expected)} foreign runs read: {', '.join(expected)}")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
