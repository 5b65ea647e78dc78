#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The record of a run's data: inputs by REST and MLflow's routes, params; equal content has the same digest wherever
it is stored, different content another; and no secret of an address is recorded anywhere.

    inputs.py RUNS      only creates a run over S3 there, for the page's tests"""
import json
import os
import sys
import tempfile
import urllib.request

SRC = os.environ.get("srcdir", ".")
for part in ("data", "whole"):
    sys.path.insert(0, os.path.join(SRC, "tests", part))
import noisy  # noqa: E402
import objectserver  # noqa: E402
import s3server  # noqa: E402
import serve  # noqa: E402

FLAGS = ["--model", "resnet20", "--image-size", "32", "-b", "4", "--threads", "1", "--experiment", "inputs", "--max-steps", "2", "--workers", "0"]


def mlflow(server, run):
    with urllib.request.urlopen(f"{server.url}/api/2.0/mlflow/runs/get?run_id={run}", timeout=30) as reply:
        return json.load(reply)["run"]["inputs"]["dataset_inputs"]


def train(tmp, name, path, *more, env=None):
    serve.train(*FLAGS, "--runs-dir", f"{tmp}/runs", "--run-name", name, "--data-path", path, *more,
                env={**(env or os.environ), "XDG_CACHE_HOME": f"{tmp}/cache"})


def make(tmp, far, bucket):
    noisy.folder(f"{tmp}/folder", {"train": 12, "val": 5})
    serve.train("shard", "--data-path", f"{tmp}/folder", "--out", f"{tmp}/shards", "--order", "kept", "--shard-size", "100KB")
    train(tmp, "folder", f"{tmp}/folder", "--hash-content")
    train(tmp, "shards", f"{tmp}/shards", "--hash-content", "--shuffle", "none")
    train(tmp, "names", f"{tmp}/shards", "--shuffle-window", "7")
    train(tmp, "bucket", "s3://shards", env=bucket)
    with open(f"{tmp}/shards/train.json", encoding="utf-8") as f:
        index = json.load(f)
    for one in index["shardlist"]:
        one["url"] = f"{far}/{one['url']}?X-Amz-Signature=planted"
    os.mkdir(f"{tmp}/far")
    with open(f"{tmp}/far/train.json", "w", encoding="utf-8") as f:
        json.dump(index, f)
    more = ["--val-path", far + "/val.json", "--cache", f"{tmp}/kept", "--shuffle-window", "7"]
    train(tmp, "http", f"{tmp}/far/train.json", *more, "--save-steps", "1")
    train(tmp, "http", f"{tmp}/far/train.json", *more, "--resume", "auto", "--max-steps", "4")


def look(tmp, server):
    runs = {r["name"]: server.json(f"/runs/{r['id']}") for r in server.json("/runs?experiment=inputs")["runs"]}
    inputs = {name: r["inputs"] for name, r in runs.items()}
    digests = {name: [i["digest"] for i in list_] for name, list_ in inputs.items()}
    assert all(len(list_) == 2 and [i["context"] for i in list_] == ["training", "validation"] for list_ in inputs.values()), inputs
    assert digests["folder"] == digests["shards"] != digests["names"] == digests["http"] == digests["bucket"], digests
    assert len({d for list_ in digests.values() for d in list_}) == 4 and all(len(d) == 64 for d in digests["http"])
    first = inputs["http"][0]
    assert (first["source_type"], first["name"]) == ("local", "train.json") and first["source"].endswith("/far/train.json") and "planted" not in str(inputs), first
    second = inputs["http"][1]
    assert second["source_type"] == "http" and second["source"].startswith("http://") and second["name"] == "val.json"
    assert [(i["source_type"], i["source"]) for i in inputs["bucket"]] == [("s3", "s3://shards")] * 2, inputs["bucket"]
    stored = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(f"{tmp}/folder/train") for f in files)
    shards = len([n for n in os.listdir(f"{tmp}/shards") if n.startswith("train") and n.endswith(".tar")])
    assert json.loads(first["profile"]) == {"format": "tar", "samples": 12, "shards": shards, "bytes": stored} and shards > 1, first
    assert inputs["folder"][0]["name"] == "folder" and inputs["folder"][0]["source_type"] == "local"
    for name in ("http", "bucket"):
        theirs = mlflow(server, runs[name]["id"])
        assert [(d["dataset"]["digest"], d["tags"][0]["value"]) for d in theirs] == list(zip(digests[name], ("training", "validation"))), theirs
    params = runs["http"]["params"]
    want = {"data_format": "tar", "data_samples": "12", "data_shards": str(shards), "data_bytes": str(stored), "data_shuffle": "window", "data_window": "7"}
    assert want.items() <= params.items(), params
    assert runs["folder"]["params"]["data_format"] == "folder"
    assert [runs[name]["params"]["data_shuffle"] for name in ("folder", "shards")] == ["global", "none"]
    cached = [s["params"]["data_cached"] for s in runs["http"]["segments"]]
    assert cached[0] == "0" and int(cached[1]) >= stored, cached


def planted(folder):
    for path in [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files]:
        with open(path, "rb") as f:
            said = f.read()
        for secret in ("planted", s3server.ID, s3server.SECRET):
            assert secret.encode() not in said, (secret, path)


def fill(tmp, runs):
    """Creates one run over S3 below a folder."""
    noisy.folder(f"{tmp}/folder", {"train": 12, "val": 5})
    serve.train("shard", "--data-path", f"{tmp}/folder", "--out", f"{tmp}/shards", "--shard-size", "100KB")
    os.symlink(runs, f"{tmp}/runs")
    bucket = s3server.S3(tmp)
    train(tmp, "bucket", "s3://shards", env=bucket.environment())
    bucket.stop()


def main(tmp):
    os.mkdir(f"{tmp}/shards")
    store = objectserver.Server(f"{tmp}/shards")
    bucket = s3server.S3(tmp)
    make(tmp, store.url, bucket.environment(AWS_SESSION_TOKEN="planted"))
    with serve.Server(f"{tmp}/runs") as server:
        look(tmp, server)
        planted(f"{tmp}/runs")
    store.stop()
    bucket.stop()
    print("inputs: by REST and MLflow's routes, the same content the same digest, no secret recorded")


with tempfile.TemporaryDirectory(prefix="dptrain-inputs-") as scratch:
    if len(sys.argv) > 1:
        fill(scratch, sys.argv[1])
    else:
        main(scratch)
