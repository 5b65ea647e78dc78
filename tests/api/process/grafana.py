#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard: each metric and label that a query names is in /metrics of a server with a followed folder and an
object store, counters are read as rates, each metric is shown, and the panels have the structure that Grafana documents
(dashboard JSON model, panels on a grid of 24 columns)."""
import json
import os
import re
import sys
import tempfile
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import lib

sys.path.append(os.path.join(lib.SOURCE, "tests", "data"))
import s3server

PATH = os.path.join(lib.SOURCE, "web", "deploy", "grafana-dashboard.json")
FUNCTIONS = {"max", "min", "sum", "by", "rate", "increase", "changes", "label_values"}
SCRAPE_LABELS = {"job", "instance"}  # Prometheus adds them
HIDDEN = {"dptrack_archive_series_total", "dptrack_archive_last_timestamp_seconds"}  # other panels show the same moves


def metrics(text):
    """{name: (type, labels)} of the text format of Prometheus."""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    labels = {}
    for name, inside in re.findall(r"^([a-z_]+)(?:\{(.*)\})? \S+$", text, re.M):
        labels.setdefault(name, set()).update(re.findall(r"(\w+)=", inside))
    return {name: (types[name], found) for name, found in labels.items()}


def queries(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"], annotation["textFormat"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"], ""


def names_exist(dashboard, known):
    shown = set()
    for title, expr, legend in queries(dashboard):
        used = set(re.findall(r"[a-z_]+", re.sub(r'\{.*?\}|"[^"]*"|\[[^]]*\]|\$\w+', " ", expr))) - FUNCTIONS - {"class", "job", "instance"}
        lib.check(used and used <= set(known), f"{title}: {sorted(used - set(known))} in {expr} are not in /metrics")
        for name in used & set(known):
            kind, labels = known[name]
            wanted = set(re.findall(r"(\w+)=~", expr)) | set(re.findall(r"by \((\w+)\)", expr)) | set(re.findall(r"\{\{(\w+)\}\}", legend))
            lib.check(wanted <= labels | SCRAPE_LABELS, f"{title}: {name} has no label of {wanted - labels - SCRAPE_LABELS}")
            rated = re.search(r"(?:rate|increase)\(" + name + r"\b", expr) is not None
            lib.equal(rated, kind == "counter", f"{title}: {name} is a {kind}")
        shown |= used
    lib.equal(set(known) - shown - HIDDEN, set(), "metrics without a panel")


def has_structure(dashboard):
    for key, kind in (("uid", str), ("title", str), ("tags", list), ("panels", list), ("refresh", str), ("schemaVersion", int)):
        lib.check(isinstance(dashboard.get(key), kind), f"{key}: {dashboard.get(key)!r}")
    lib.equal(dashboard["id"], None, "id, which Grafana gives")
    lib.check(8 <= len(dashboard["uid"]) <= 40, "uid of 8 to 40 characters")
    ids = [p["id"] for p in dashboard["panels"]]
    lib.equal(len(ids), len(set(ids)), "ids of panels differ")
    taken = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        lib.check(not cells & taken and at["x"] + at["w"] <= 24, f"{panel['title']}: place {at}")
        taken |= cells
        lib.check(panel["type"] in ("row", "stat", "timeseries"), f"{panel['title']}: {panel['type']}")
        if panel["type"] == "row":
            continue
        lib.equal([t["refId"] for t in panel["targets"]], list("ABC"[:len(panel["targets"])]), panel["title"])
        for source in [panel["datasource"], *(t["datasource"] for t in panel["targets"])]:
            lib.equal(source, {"type": "prometheus", "uid": "${datasource}"}, panel["title"])
        lib.equal(sorted(panel["fieldConfig"]), ["defaults", "overrides"], panel["title"])
    lib.equal(len(taken), 24 * (1 + max(y for _, y in taken)), "the grid has no holes")
    variables = {v["name"] for v in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(dashboard))) - {"__rate_interval", "__interval", "__all"}
    lib.equal(used, variables, "variables")


def main():
    with open(PATH, encoding="utf-8") as f:
        dashboard = json.load(f)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        os.mkdir(folder + "/bucket")
        s3 = s3server.S3(folder)
        server = lib.Server(folder + "/runs", "--artifacts", "s3://bucket/dptrack", env=s3.environment())
        known = metrics(server.request("GET", "/metrics")[2].decode())
        lib.equal(server.stop(), 0, "exit code")
        s3.shutdown()
    lib.check("dptrack_archive_points_total" in known and "dptrack_follow_files" in known, f"metrics: {sorted(known)}")
    names_exist(dashboard, known)
    has_structure(dashboard)
    lib.finish("grafana")


main()
