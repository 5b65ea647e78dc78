# SPDX-License-Identifier: Apache-2.0
"""Makes the sample wandb in this folder, two offline runs and a resumed one, and wandb.json with the files' content as
W&B's own protobuf classes read it. It needs wandb 0.31.0, numpy and pillow. `make_wandb.py FOLDER` makes them there."""
import glob
import json
import os
import shutil
import struct
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCK = 32768


def record(folder):
    """Records three sessions; the scalars fill more than one block, so that a block's end splits a record."""
    os.environ.update(WANDB_MODE="offline", WANDB_DIR=folder, WANDB_SILENT="true", WANDB_DISABLE_GIT="true", WANDB_DISABLE_CODE="true")
    import numpy
    import wandb
    settings = wandb.Settings(x_disable_stats=True, x_disable_machine_info=True, host="sample", program="train.py")
    run = wandb.init(project="vision", entity="ada", name="first", id="abcd1234", tags=["t1", "ünï"], notes="a *note*", group="g1", job_type="train",
                     config={"lr": 0.1, "nested": {"a": 1, "b": [1, 2]}, "name": "x", "none": None, "flag": True}, settings=settings)
    for i in range(120):
        row = {"loss": 1 / (i + 1), "acc": i / 30}
        if i % 40 == 0:
            row.update({"val/loss": float("nan") if i == 40 else float("inf") if i == 80 else 2.0, "deep": {"er": {"x": i}}, "word": "text"})
        if i == 5:
            row["img"] = wandb.Image(numpy.arange(60, dtype=numpy.uint8).reshape(4, 5, 3))
            row["hist"] = wandb.Histogram(np_histogram=([1, 0, 2], [0.0, 0.5, 1.0, 2.0]))
            row["table"] = wandb.Table(columns=["a", "b"], data=[[1, "x"], [2.5, "y ü"]])
        run.log(row)
    run.log({"late": 1.5}, step=500)
    print("hello console")
    print("half", end="")
    run.summary["best"] = 0.25
    run.summary["verdict"] = "good"
    run.config.update({"lr": 0.2}, allow_val_change=True)
    with open(os.path.join(folder, "saved.txt"), "w", encoding="ascii") as f:
        f.write("saved\n")
    shutil.copy(f.name, os.path.join(run.dir, "saved.txt"))
    run.finish()
    os.remove(f.name)
    run = wandb.init(project="vision", name="second", id="efgh5678", settings=settings)
    run.log({"loss": 3.0})
    run.finish(exit_code=3)
    run = wandb.init(project="vision", entity="ada", name="first", id="abcd1234", resume="allow", settings=settings)
    run.log({"loss": 0.5}, step=501)
    run.finish()
    wandb.teardown()  # until then the last file may be incomplete


def records(path):
    """Returns the payloads of the file's records, parsed as the format is documented."""
    with open(path, "rb") as f:
        data = f.read()
    at, parts = 7, b""
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left
            continue
        crc, size, kind = struct.unpack("<IHB", data[at:at + 7])
        piece = data[at + 7:at + 7 + size]
        assert zlib.crc32(data[at + 6:at + 7 + size]) == crc
        at += 7 + size
        parts = piece if kind in (1, 2) else parts + piece
        if kind in (1, 4):
            yield at, parts


def describe(path):
    """Returns the content of one file: points by key, config, tags, end, console; and the number of points after each
    record's end."""
    from wandb.proto import wandb_internal_pb2 as pb
    out = {"points": {}, "config": {}, "tags": [], "exit": None, "console": "", "counts": []}
    for at, payload in records(path):
        r = pb.Record()
        r.ParseFromString(payload)
        kind = r.WhichOneof("record_type")
        if kind == "run" and "id" not in out:
            out.update(id=r.run.run_id, name=r.run.display_name, tags=sorted(r.run.tags), notes=r.run.notes, start=r.run.start_time.seconds, whole=at)
            config(out["config"], r.run.config)
        elif kind == "config":
            config(out["config"], r.config)
        elif kind == "history":
            row = {tuple(i.nested_key) or (i.key,): json.loads(i.value_json) for i in r.history.item}
            typed = {k[0] for k in row if k[-1] == "_type"}
            for key, value in sorted(row.items()):
                if not key[0].startswith("_") and key[0] not in typed and isinstance(value, (int, float)):
                    out["points"].setdefault(".".join(key), []).append([r.history.step.num, repr(row[("_timestamp",)]), repr(float(value))])
        elif kind in ("output_raw", "output"):
            out["console"] += getattr(r, kind).line
        elif kind == "exit":
            out["exit"] = r.exit.exit_code
        out["counts"].append([at, sum(map(len, out["points"].values()))])
    out["config"].pop("_wandb", None)
    return out


def config(into, message):
    for item in message.update:
        into[item.key or ".".join(item.nested_key)] = json.loads(item.value_json)


def make(folder):
    record(folder)
    paths = sorted(glob.glob(os.path.join(folder, "wandb", "offline-run-*", "*.wandb")), key=os.path.dirname)
    with open(os.path.join(folder, "wandb.json"), "w", encoding="utf-8") as f:
        json.dump([dict(describe(p), file=os.path.relpath(p, folder)) for p in paths], f, indent=0, sort_keys=True)
    for link in glob.glob(os.path.join(folder, "wandb", "latest-run")) + glob.glob(os.path.join(folder, "wandb", "*.log")):
        os.unlink(link)
    for extra in glob.glob(os.path.join(folder, "wandb", "offline-run-*", "logs")) + glob.glob(os.path.join(folder, "wandb", "*", "tmp")):
        shutil.rmtree(extra)
    for listed in glob.glob(os.path.join(folder, "wandb", "*", "files", "requirements.txt")):
        os.unlink(listed)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.makedirs(sys.argv[1], exist_ok=True)
        make(os.path.abspath(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="wandb-") as made:
            make(made)
            shutil.copy(os.path.join(made, "wandb.json"), HERE)
            shutil.rmtree(os.path.join(HERE, "wandb"), ignore_errors=True)
            shutil.copytree(os.path.join(made, "wandb"), os.path.join(HERE, "wandb"))
