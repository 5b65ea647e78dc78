# SPDX-License-Identifier: Apache-2.0
"""The study's program: a quick experiment writes a report with frozen data and the numbers of the commands that it names; a
second pass is compared with the first; docs/study.md has each experiment. The comparison itself on made-up passes."""
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "train"))
from helper import BUILD, SOURCE, Folder, check, dptrain, environment, finish

RUN = os.path.join(HERE, "run")


def program():
    """The program as a module, without its main."""
    with open(RUN, encoding="utf-8") as f:
        text = f.read()
    spec = importlib.util.spec_from_loader("study_run", importlib.machinery.SourceFileLoader("study_run", RUN))
    module = importlib.util.module_from_spec(spec)
    module.__file__ = RUN
    exec(compile(text[:text.rindex("\nmain()")], RUN, "exec"), module.__dict__)
    return module


def passes(module):
    def made(*cells):
        return {"tables": [{"title": "t", "cells": [{"row": "r", "column": c, "mean": m, "half": h} for c, m, h in cells]}]}
    first = made(("a", 10, 1), ("b", 20, 1), ("c", 11, 5), ("d", 5, None))
    for name, after, want in (("same", first, 0), ("other order", made(("a", 20, 1), ("b", 10, 1)), 1), ("intervals overlap", made(("a", 20, 30), ("b", 10, 1)), 0),
                              ("overlapped before", made(("a", 20, 1), ("c", 10, 1)), 0), ("no interval", made(("a", 4, 1), ("d", 5, None)), 0)):
        got = module.changed_orders(first, after)
        check(len(got) == want, "%s: %s" % (name, got))


def documents(module, folder):
    """Results of one experiment replace its section and its verdicts; every other line stays."""
    with open(os.path.join(SOURCE, "docs", "study.md"), encoding="utf-8") as f:
        text = f.read()
    check(module.with_results(text, folder) == text, "docs/study.md without new results: another text")
    with open(os.path.join(folder, "loading.md"), "w", encoding="utf-8") as f:
        f.write("New.\n\n| finding of the article | here | number |\n|---|---|---|\n| a | confirmed | 1 |\n\nEnd.\n")
    got = module.with_results(text, folder)
    gone = set(text.splitlines()) - set(got.splitlines())
    check("| a | confirmed | 1 | [loading](#loading) |\n" in got and "## loading\n\nNew.\n" in got, "no new section: %s" % got)
    old = re.search(module.section("loading"), text)[1]
    check(all(line in old or line.endswith("[loading](#loading) |") for line in gone), "lines of other sections are gone: %s" % gone)


def quick(folder):
    p = subprocess.run([RUN, "map", "--quick", "--out", folder], env=environment({"builddir": BUILD, "srcdir": SOURCE, "PYTHONDONTWRITEBYTECODE": "1"}),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=240)
    if not check(p.returncode == 0 and {"map.html", "map.md", "map.json", "map.svg"} <= set(os.listdir(folder)), "exit %d: %s" % (p.returncode, p.stderr)):
        return
    with open(os.path.join(folder, "map.html"), encoding="utf-8") as f:
        html = f.read()
    cells = json.loads(dptrain("plan", "--map", "--hardware", "a100-40gb-x8", "--json").stdout)["cells"]
    rates = ["%.4g" % c["samples_per_s"] for c in cells if c["strategy"]]
    check(all(r in html for r in rates), "the report lacks rates of the plan")
    if "without the page's drawings" in p.stderr: # no browser here
        print(p.stderr.strip())
        check("the export failed" not in p.stderr, "the page did not export the report")
        return
    frozen = [json.loads(t) for t in re.findall(r"<script[^>]*data-series[^>]*>(.*?)</script>", html, re.S)]
    check(frozen and html.count('data-frozen="true"') == len(frozen) and 'data-frozen="false"' not in html, "panels are not frozen")
    values = {v for block in frozen for reply in block for v in numbers(reply)}
    check(all(any(abs(v - c["samples_per_s"]) <= 1e-5 * v for v in values) for c in cells if c["strategy"]), "the frozen data lack rates of the plan")


def numbers(o):
    if isinstance(o, dict):
        o = list(o.values())
    if isinstance(o, list):
        for one in o:
            yield from numbers(one)
    elif isinstance(o, (int, float)) and not isinstance(o, bool):
        yield float(o)


def documented(module):
    with open(os.path.join(SOURCE, "docs", "study.md"), encoding="utf-8") as f:
        parts = re.split(r"(?m)^## ", f.read())
    for name in module.NAMES:
        part = [p for p in parts if p.startswith(name + "\n")]
        check(len(part) == 1 and "\n|---" in part[0], "docs/study.md: no heading or no table for %s" % name)


def main():
    module = program()
    passes(module)
    documented(module)
    with Folder() as folder:
        documents(module, folder)
    with Folder() as folder:
        quick(folder)
    finish("study")


main()
