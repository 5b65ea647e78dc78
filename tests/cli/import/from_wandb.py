# SPDX-License-Identifier: Apache-2.0
"""W&B's offline runs imported by `dptrack import`: the sample in this folder that wandb wrote (make_wandb.py). Every
point, param, tag, line, picture, file and end must equal what W&B's own classes read from the files, and a repeat must
change nothing. `from_wandb.py FOLDER` uses what make_wandb.py made there."""
import sys
sys.dont_write_bytecode = True
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import zlib
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib
sys.path.insert(0, os.path.join(lib.SOURCE, "tests", "tracker"))
from wire import varint

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def run(*args, code=0):
    environment = {k: v for k, v in os.environ.items() if k not in ("DPTRACK_TOKEN", "DPTRACK_URL")}
    r = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=120, env=environment)
    lib.equal(r.returncode, code, f"{' '.join(args)}: {r.stderr!r}")
    return r.stdout if code == 0 else r.stderr


def get(server, target):
    status, _, body = server.request("GET", target)
    lib.equal(status, 200, f"{target}: {body[:200]!r}")
    return json.loads(body)


def flat(config, prefix=""):
    """Returns the params as `dptrack import` names and prints them."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from flat(value, prefix + key + ".")
        else:
            yield prefix + key, value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def points(server, run_id):
    """Returns {key: {(segment, step, wall time, value)}}."""
    _, _, body = server.request("GET", f"/api/v1/export/series.csv?run={run_id}&segments=all")
    out = {}
    for row in csv.DictReader(io.StringIO(body.decode())):
        value = WORDS.get(row["value"]) or repr(float(row["value"]))
        out.setdefault(row["key"], []).append([int(row["segment"]), int(row["step"]), repr(float(row["wall_time"])), value])
    return out


def compare(server, files):
    """files: what make_wandb.py read from each file, with the sessions of a run in order."""
    runs = {r["tags"]["wandb.run_id"]: r for r in get(server, "/api/v1/runs?limit=100")["runs"]}
    lib.equal(sorted(runs), sorted({f["id"] for f in files}), "the runs")
    for name, r in runs.items():
        sessions = [f for f in files if f["id"] == name]
        want = {}
        for number, f in enumerate(sessions):
            for key, rows in f["points"].items():
                want.setdefault(key, []).extend([number, *row] for row in rows)
        got = points(server, r["id"])
        for key, rows in want.items():
            lib.equal(sorted(got.get(key, [])), sorted(rows), f"{name}: points of {key}")
        extra = {k: v for k, v in got.items() if k not in want}
        lib.equal(sorted(extra), ["best"] if name == "abcd1234" else [], name + ": values only in the summary")
        params = dict(item for f in sessions for item in flat(f["config"]))
        lib.equal(r["params"], params, name + ": params")
        lib.equal(sorted(t for t, v in r["tags"].items() if not v), sessions[0]["tags"], name + ": tags")
        ends = {None: "killed", 0: "finished"}
        lib.equal(r["status"], ends.get(sessions[-1]["exit"], "failed"), name + ": status")
        whole = get(server, "/api/v1/runs/" + r["id"])
        lib.equal(whole.get("notes") or "", sessions[0]["notes"], name + ": notes")
        lines = [line["text"] for line in get(server, f"/api/v1/runs/{r['id']}/console")["lines"]]
        lib.equal("\n".join(lines), "".join(f["console"] for f in sessions).rstrip("\n"), name + ": the console")
    return runs


def media(server, run_id, source):
    """Pictures, histograms and tables of the first run, at the steps at which they were logged."""
    listed = {m["key"]: m for m in get(server, f"/api/v1/runs/{run_id}/media")["media"]}
    lib.equal(sorted((k, m["kind"], m["step"]) for k, m in listed.items()),
              [("hist", "histogram", 5), ("img", "image", 5), ("table", "table", 5), ("word", "text", 80)], "media")
    digests = set()
    for folder, _, names in os.walk(os.path.join(source, "wandb")):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                digests.add((name, hashlib.sha256(f.read()).hexdigest()))
    status, _, picture = server.request("GET", f"/api/v1/runs/{run_id}/media/{listed['img']['content']}")
    lib.equal(status, 200, "the picture")
    lib.check(hashlib.sha256(picture).hexdigest() in {d for _, d in digests}, "the picture's bytes are the file's")
    table = get(server, f"/api/v1/runs/{run_id}/media/{listed['table']['content']}")
    lib.check("y \\u00fc" in json.dumps(table) and "2.5" in json.dumps(table), f"the table: {table}")
    histogram = get(server, f"/api/v1/runs/{run_id}/media/{listed['hist']['content']}")
    lib.check("0.5" in json.dumps(histogram), f"the histogram: {histogram}")
    status, _, saved = server.request("GET", f"/api/v1/runs/{run_id}/artifacts/saved.txt")
    lib.equal(saved, b"saved\n", "a saved file")


def piece(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def more_media(source, files, folder):
    """Videos, HTML and figures of Plotly, single and in lists: a row with them is added to the second run."""
    shutil.copytree(os.path.join(source, "wandb"), os.path.join(folder, "wandb"))
    own = next(f for f in files if f["id"] == "efgh5678")
    name = os.path.join(folder, own["file"])
    stored = os.path.join(os.path.dirname(name), "files", "media")
    contents = {"film.mp4": b"\0\0\0\x18ftypisom" + bytes(range(256)), "film.gif": b"GIF89a\x05\0\x04\0\x80\0\0" + bytes(64),
                "part.html": b"<b>42</b> errors", "whole.html": b"\n<!DOCTYPE html><p>all</p>",
                "figure.json": json.dumps({"data": [{"type": "bar", "x": [1, 2], "y": [3, 4]}], "layout": {}}).encode()}
    os.makedirs(stored, exist_ok=True)
    for file, content in contents.items():
        with open(os.path.join(stored, file), "wb") as f:
            f.write(content)

    def item(kind, file):
        return {"_type": kind, "path": "media/" + file, "size": len(contents[file])}
    row = {"film": item("video-file", "film.mp4"), "page": item("html-file", "part.html"), "figure": item("plotly-file", "figure.json"),
           "shown": {**item("image-file", "film.gif"), "caption": "one"},
           "some": {"_type": "images/separated", "filenames": ["media/film.gif"] * 2, "captions": ["first", None], "count": 2},
           "films": {"_type": "videos", "count": 2, "videos": [item("video-file", "film.gif"), item("video-file", "film.mp4")]},
           "pages": {"_type": "html", "count": 1, "html": [item("html-file", "whole.html")]},
           "gone": {"_type": "video-file", "path": "media/none.mp4"}, "cloud": {"_type": "object3D-file", "path": "media/figure.json"}}
    def members(values):
        """Items of a history or a summary."""
        return b"".join(piece(1, piece(1, k.encode()) + b"\x82\x01" + varint(len(v)) + v)
                        for k, v in ((k, json.dumps(v).encode()) for k, v in values.items()))
    payload = piece(2, members(row) + piece(2, b"\x08\x07"))
    late = [piece(17, piece(1, b"efgh5678") + piece(8, b"second") + piece(10, b"later") + piece(10, b"t2")),
            piece(3, members({"loss": {"min": 3.0, "mean": 3.0}}))]
    with open(name, "rb") as f:
        data = f.read()
    at = 7
    while data[at + 7:at + 8] != b"\x12" and b"loss" not in data[at + 7:at + 7 + int.from_bytes(data[at + 4:at + 6], "little")]:
        at += 7 + int.from_bytes(data[at + 4:at + 6], "little")
    at += 7 + int.from_bytes(data[at + 4:at + 6], "little")
    added = b"".join(zlib.crc32(b"\x01" + p).to_bytes(4, "little") + len(p).to_bytes(2, "little") + b"\x01" + p for p in (payload, *late))
    lib.check(len(data) + len(added) < 32768, "the file remains one block")
    with open(name, "wb") as f:
        f.write(data[:at] + added + data[at:])
    said = run("import", name, "--logdir", os.path.join(folder, "runs"))
    lib.check("video-file of W&B: gone" in said and "object3D-file of W&B: cloud" in said, "what is left out is named: " + said)
    server = lib.Server(os.path.join(folder, "runs"))
    whole = get(server, "/api/v1/runs?limit=1")["runs"][0]
    one = whole["id"]
    lib.equal(sorted(t for t, v in whole["tags"].items() if not v), sorted({*own["tags"], "later", "t2"}), "tags of a later run record")
    lib.equal(sorted(k for k in get(server, f"/api/v1/runs/{one}")["metrics"] if k.startswith("loss")), ["loss", "loss.mean"], "the summary of a key with rows")
    listed = {m["key"]: m for m in get(server, f"/api/v1/runs/{one}/media")["media"]}
    lib.equal(sorted((k, m["kind"], m["type"].split(";")[0], m["step"]) for k, m in listed.items()),
              [("figure", "text", "text/plain", 7), ("film", "audio", "video/mp4", 7), ("films/0", "image", "image/gif", 7),
               ("films/1", "audio", "video/mp4", 7), ("page", "text", "text/html", 7), ("pages/0", "text", "text/html", 7),
               ("shown", "image", "image/gif", 7), ("shown/caption", "text", "text/plain", 7), ("some/0", "image", "image/gif", 7),
               ("some/0/caption", "text", "text/plain", 7), ("some/1", "image", "image/gif", 7)], "media")
    for key, want in (("film", contents["film.mp4"]), ("films/0", contents["film.gif"]), ("figure", contents["figure.json"]),
                      ("shown/caption", b"one"), ("some/0/caption", b"first"),
                      ("page", b'<!doctype html><meta charset="utf-8">' + contents["part.html"]), ("pages/0", contents["whole.html"])):
        _, _, got = server.request("GET", f"/api/v1/runs/{one}/media/{listed[key]['content']}")
        lib.equal(got, want, "the bytes of " + key)
    lib.equal(server.stop(), 0, "exit code")


def in_one_second(source, files, folder):
    """A run resumed within the second in which it started: both sessions are imported."""
    first, last = (f for f in files if f["id"] == "abcd1234")
    shutil.copytree(os.path.join(source, "wandb"), os.path.join(folder, "wandb"))
    with open(os.path.join(folder, last["file"]), "r+b") as f:
        data = bytearray(f.read().replace(b"\x08" + varint(last["start"]), b"\x08" + varint(first["start"])))
        at = 7
        while at + 7 <= len(data):  # recompute the checksums of the records in the block
            size = int.from_bytes(data[at + 4:at + 6], "little")
            data[at:at + 4] = zlib.crc32(data[at + 6:at + 7 + size]).to_bytes(4, "little")
            at += 7 + size
        f.seek(0)
        f.write(data)
    run("import", os.path.join(folder, "wandb"), "--logdir", os.path.join(folder, "runs"))
    server = lib.Server(os.path.join(folder, "runs"))
    compare(server, files)
    lib.equal(server.stop(), 0, "exit code")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        source = sys.argv[1] if len(sys.argv) > 1 else HERE
        with open(os.path.join(source, "wandb.json"), encoding="utf-8") as f:
            files = json.load(f)
        into = os.path.join(folder, "into")
        said = run("import", os.path.join(source, "wandb"), "--logdir", into)
        lib.check("artifact of W&B" in said, "skipped data are listed: " + said)
        server = lib.Server(into)
        first = compare(server, files)["abcd1234"]["id"]
        media(server, first, source)
        run("import", source, "--logdir", into) if source != HERE else run("import", os.path.join(source, "wandb"), "--logdir", into)
        compare(server, files)
        lib.equal(server.stop(), 0, "exit code")
        alone = os.path.join(folder, "alone")
        run("import", os.path.join(source, files[1]["file"]), "--logdir", alone)
        torn = os.path.join(folder, "run-torn.wandb")
        with open(os.path.join(source, files[0]["file"]), "rb") as f:
            whole = f.read()
        with open(torn, "wb") as f:
            f.write(whole[:20000] + b"\0" * 100 + whole[20100:])
        lib.check("damaged record" in run("import", torn, "--logdir", alone), "damage is reported")
        with open(torn, "wb") as f:
            f.write(whole[:3])
        in_one_second(source, files, os.path.join(folder, "second"))
        more_media(source, files, os.path.join(folder, "media"))
        lib.check("not a .wandb file" in run("import", torn, "--logdir", os.path.join(folder, "none")), "a missing file")
    lib.finish("import/wandb")


main()
