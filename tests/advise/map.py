# SPDX-License-Identifier: Apache-2.0
"""dptrain plan --map: the rules that a published study of data parallelism found on A100s follow from the costs; JSON
and SVG hold the same cells; other machines, refusals, and a file whose links are equal. Measures its time."""
import json
import os
import re
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "train"))
from helper import Folder, check, dptrain, finish, sanitized

MODELS = ["125m", "350m", "760m", "1.3b", "2.7b", "6.7b", "13b", "30b", "66b", "175b", "1t"]
A100 = ["--hardware", "a100-40gb-x8"]


def cells(*more):
    p = dptrain("plan", "--map", "--json", *more)
    check(p.returncode == 0, "plan --map %s: exit %d: %s" % (" ".join(map(str, more)), p.returncode, p.stderr))
    return json.loads(p.stdout)["cells"]


def rule(c):
    """The study's, with its boundary of 20 ms a sample."""
    if c["parameters"] < 10e9 and c["aco"] > 0.020:
        return "pdp"
    return "ddp" if c["parameters"] < 3e9 and c["aco"] <= 0.020 else "fsdp"


def share(found, of):
    return sum(found) / max(1, len(of))


def rules():
    start = time.monotonic()
    found = cells(*A100)
    check(time.monotonic() - start < 20 or sanitized(), "a map took %.1f s" % (time.monotonic() - start))
    keys = ["model", "parameters", "batch_size", "link", "strategy", "samples_per_s", "aco", "reason"]
    check(all(list(c) == keys for c in found), "members: %s" % list(found[0]))
    check({(c["model"], c["batch_size"], c["link"]) for c in found} == {(m, b, l) for m in MODELS for b in (8, 16, 32, 64, 128, 256) for l in ("slow", "fast")},
          "cells are missing")
    fit = [c for c in found if c["strategy"]]
    check(share([c["strategy"] == rule(c) for c in fit], fit) >= 0.9, "the rules hold in %d of %d cells: not in %s" %
          (sum(c["strategy"] == rule(c) for c in fit), len(fit), [(c["model"], c["batch_size"], c["link"], c["strategy"]) for c in fit if c["strategy"] != rule(c)]))
    small, large = [c for c in fit if c["parameters"] < 1e9], [c for c in fit if c["parameters"] > 10e9]
    check(share([c["strategy"] == "fsdp" for c in small], small) <= 0.1, "fsdp below 1 B: %s" % [c["model"] for c in small if c["strategy"] == "fsdp"])
    check(large and share([c["strategy"] == "fsdp" for c in large], large) >= 0.9, "above 10 B: %s" % [c["strategy"] for c in large])
    check(all(c["reason"] and (c["strategy"] is None) == (c["samples_per_s"] is None) for c in found), "a cell has no reason or a rate without a strategy")
    check(all(c["reason"].startswith(c["strategy"]) for c in fit) and all("nothing fits" in c["reason"] for c in found if not c["strategy"]), "reasons")
    physics(found)
    return found


def physics(found):
    """A faster link is never slower, a larger batch never yields fewer samples per second or waits longer per sample."""
    at = {(c["model"], c["batch_size"], c["link"]): c for c in found}
    for (model, batch, link), c in at.items():
        fast, more = at[model, batch, "fast"], at.get((model, 2 * batch, link))
        if c["strategy"] and fast["strategy"]:
            check(fast["samples_per_s"] >= 0.97 * c["samples_per_s"], "%s, batch %d: the fast link is slower" % (model, batch))
        if c["strategy"] and more and more["strategy"]:
            check(more["samples_per_s"] >= 0.97 * c["samples_per_s"], "%s, %s, batch %d: a larger batch is slower" % (model, link, batch))
        check(not more or more["aco"] <= 1.001 * c["aco"], "%s, %s: ACO rises after batch %d" % (model, link, batch))


def drawn(folder, found):
    path = os.path.join(folder, "new", "map.svg")
    p = dptrain("plan", "--map", *A100, "--out", path, "--explain")
    check(p.returncode == 0 and os.listdir(os.path.dirname(path)) == ["map.svg"], "--out: exit %d: %s" % (p.returncode, p.stderr))
    space = "{http://www.w3.org/2000/svg}"
    reasons = [t.text for t in xml.etree.ElementTree.parse(path).iter(space + "title")]
    check(reasons == [c["reason"] for c in found], "the SVG has %d cells, or other reasons" % len(reasons))
    rows = {line.split()[0]: line for line in p.stdout.split("\nfast")[0].splitlines() if line.split()[:1] and line.split()[0] in MODELS}
    for model, line in rows.items():
        names = re.findall(r"\b(ddp|pdp|fsdp)\b|(?<= )-(?= )", line + " ")
        check(names == [c["strategy"] or "" for c in found if c["model"] == model and c["link"] == "slow"], "table, %s: %s" % (model, line))
    check(len(rows) == len(MODELS) and all(c["reason"] in p.stdout for c in found), "--explain leaves out reasons")
    p = dptrain("plan", "--map", *A100, "--out", "/dev/full/map.svg")
    check(p.returncode != 0 and p.stderr.count("\n") == 1, "an SVG that cannot be written: exit %d: %s" % (p.returncode, p.stderr))


def machines(folder):
    """With one link for both, pipelines and machines make no difference; more memory fits more."""
    with open(os.path.join(os.environ.get("srcdir", "."), "schema", "hardware", "a100-40gb-x8.json")) as f:
        h = json.load(f)
    path = os.path.join(folder, "h.json")

    def made(**more):
        with open(path, "w") as f:
            json.dump(dict(h, **more), f)
        return cells("--hardware", path)
    same = made(between=h["within"])
    check(not any(c["strategy"] == "pdp" for c in same), "pipelines win although both links are fast")
    fits, roomy = (sum(bool(c["strategy"]) for c in made(memory_bytes=n)) for n in (4e10, 8e10))
    check(roomy > fits, "twice the memory fits %d cells instead of %d" % (roomy, fits))
    check(all(c["strategy"] is None for c in made(memory_bytes=1e6)), "something fits into 1 MB")
    none = {k: v for k, v in h.items() if k != "between"}
    with open(path, "w") as f:
        json.dump(none, f)
    alone = cells("--hardware", path)
    check(all(c["strategy"] is None and "link between machines" in c["reason"] for c in alone if c["link"] == "slow" and c["model"] == "125m"),
          "no link between machines: %s" % alone[0])
    four = cells(*A100, "--nproc-per-node", 32, "--nnodes", 4)
    check(any(c["strategy"] for c in four if c["model"] == "66b" and c["batch_size"] == 16), "32 ranks do not fit 66b")


def refusals():
    for more, want in ((["--nproc-per-node", 1], "has one rank"), (["--nnodes", 3], "divides its 8 ranks"), (["--hardware", "nothing"], "no such file")):
        p = dptrain("plan", "--map", *A100, *more)
        check(p.returncode == 2 and want in p.stderr and p.stderr.count("\n") == 1, "%s: exit %d: %s" % (more, p.returncode, p.stderr))
    p = dptrain("train", "--map")
    check(p.returncode == 2, "train --map: exit %d" % p.returncode)


def main():
    found = rules()
    with Folder() as folder:
        drawn(folder, found)
        machines(folder)
    refusals()
    finish("map")


main()
