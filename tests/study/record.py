# SPDX-License-Identifier: Apache-2.0
"""An experiment of the study: recorded runs in turns, their values in tables, and what the machine was doing."""
import json
import math
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "..", folder) for folder in ("train", "data", "nodes", ".")]
from helper import BUILD, DPTRAIN, SOURCE, environment, program, read_run  # noqa: E402

# Student's t at 97.5 %, by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201, 12: 2.179,
     13: 2.160, 14: 2.145, 15: 2.131}
BUSY = 0.1 # share of the cores that other programs take, from which on speeds do not count
QUICK_S = 32 # no run starts later with --quick: the report takes the rest of the minute


def text_of(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError:
        return ""


def processor():
    found = re.search(r"^model name\s*:\s*(.*)$", text_of("/proc/cpuinfo"), re.M)
    return found.group(1) if found else platform.processor() or "unknown processor"


def commit():
    p = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    return p.stdout.strip() or "unknown"


def busy_s():
    """Processor seconds of all programs of this machine since its start."""
    words = text_of("/proc/stat").split("\n", 1)[0].split()
    return sum(int(w) for k, w in enumerate(words[1:9]) if k not in (3, 4)) / os.sysconf("SC_CLK_TCK")


def own_s():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def interval(values):
    """Mean of at least two values, and half of its 95 % interval."""
    return statistics.mean(values), T.get(len(values) - 1, 2.1) * statistics.stdev(values) / math.sqrt(len(values))


class Cell:
    """Values of equal runs, or one number of a plan."""

    def __init__(self):
        self.values, self.runs, self.plan, self.word = [], [], None, None

    def middle(self):
        return statistics.mean(self.values) if self.values else None

    def half(self):
        """Half of the mean's 95 % interval; None with fewer than two values."""
        return interval(self.values)[1] if len(self.values) > 1 else None


class Table:
    def __init__(self, title, unit, columns, base=None, article=None, form="%.3g"):
        """base: (row, column) of the cell to which ratios are; article: {(row, column): the article's number}."""
        self.title, self.unit, self.columns, self.base, self.form = title, unit, columns, base, form
        self.article, self.rows, self.cells = article or {}, [], {}

    def cell(self, row, column):
        if row not in self.rows:
            self.rows.append(row)
        return self.cells.setdefault((row, column), Cell())

    def add(self, row, column, value, run=None):
        c = self.cell(row, column)
        if value is not None:
            c.values.append(float(value))
        if run:
            c.runs.append(run)

    def plan(self, row, column, value, command):
        c = self.cell(row, column)
        c.values, c.plan = ([float(value)] if isinstance(value, (int, float)) else []), command
        c.word = None if c.values else value

    def base_of(self, values):
        return values.get(self.base) if self.base else None

    def means(self):
        return {key: c.middle() for key, c in self.cells.items() if c.values}

    def json(self):
        return {"title": self.title, "unit": self.unit, "cells": [
            {"row": r, "column": c, "mean": cell.middle(), "half": cell.half(), "word": cell.word, "n": len(cell.values), "runs": cell.runs,
             "plan": cell.plan, "article": self.article.get((r, c))} for (r, c), cell in self.cells.items()]}


class Study:
    def __init__(self, name, quick, out, limit_s):
        self.name, self.quick, self.out = name, quick, out
        self.work = os.path.join(out, "work", name)
        shutil.rmtree(self.work, ignore_errors=True)
        self.runs_dir = os.path.join(self.work, "runs")
        os.makedirs(self.runs_dir)
        self.start, self.limit_s = time.monotonic(), QUICK_S if quick else limit_s
        self.start_busy_s, self.start_own_s = busy_s(), own_s()
        self.cores = len(os.sched_getaffinity(0))
        self.short = self.limit_s < 1500 # too short for the full sizes
        self.tables, self.findings, self.notes, self.problems, self.recorded = [], [], [], [], []
        self.metrics = ["train/loss"]

    def over(self):
        return time.monotonic() - self.start > self.limit_s

    def left_s(self):
        return self.limit_s - (time.monotonic() - self.start)

    def table(self, *words, **more):
        self.tables.append(Table(*words, **more))
        return self.tables[-1]

    def others(self):
        """Share of the cores that other programs took so far."""
        wall = (time.monotonic() - self.start) * self.cores
        return max(0.0, (busy_s() - self.start_busy_s - (own_s() - self.start_own_s)) / max(wall, 1e-9))

    def fact(self, finding, verdict, number, speed=False):
        """verdict: confirmed, not confirmed, or not testable here. --quick measures too little for a verdict on runs, and
        speed cannot be judged while other programs use the cores."""
        if (self.quick and "(plan)" not in number) or (speed and self.others() > BUSY):
            verdict = "not testable here"
        if speed and self.others() > BUSY:
            number += ", busy machine"
        self.findings.append((finding, verdict, number + (", quick" if self.quick and "(plan)" not in number else "")))

    def compare(self, finding, ratio, expected, words):
        """A finding on the speed of two cells (or None) that were measured in the same turns: confirmed if the 95 % interval of
        the mean ratio is in the range that is expected, not confirmed if all of it is outside. words: with one %.2f."""
        a, b = ratio
        logs = [math.log(x / y) for x, y in zip(a.values, b.values)] if a and b else []
        if not logs:
            self.fact(finding, "not testable here", "no time for these runs, or not possible here")
        elif len(logs) == 1:
            self.fact(finding, "not testable here", words % math.exp(logs[0]) + ", one run", speed=True)
        else:
            mean, half = interval(logs)
            low, high = math.exp(mean - half), math.exp(mean + half)
            inside, outside = expected[0] <= low and high <= expected[1], high < expected[0] or expected[1] < low
            self.fact(finding, "confirmed" if inside else "not confirmed" if outside else "not testable here",
                      words % math.exp(mean) + ", 95 %%: %.2f to %.2f" % (low, high), speed=True)

    # ---- runs ----

    def train(self, label, *flags, env=None, command=()):
        """A recorded run of dptrain; returns its series and id, or None if it failed or there is no time."""
        if self.over():
            return None
        place = os.path.join(self.runs_dir, "study-" + self.name)
        before = set(os.listdir(place)) if os.path.isdir(place) else set()
        words = [*command, program(env), *map(str, flags), "--report-to", "none", "--runs-dir", self.runs_dir, "--experiment", "study-" + self.name,
                 "--run-name", label, "--save-total-limit", "1"]
        job = subprocess.Popen(words, env=environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                               stdin=subprocess.DEVNULL, start_new_session=False)
        try:
            _, said = job.communicate(timeout=max(15.0, 3 * self.left_s()) if self.quick else 1800)
        except subprocess.TimeoutExpired:
            job.terminate()
            said = job.communicate()[1] + "\nended: too slow for the time of this study"
        return self.taken(label, place, before, job.returncode, said)

    def taken(self, label, place, before, code, said):
        new = [d for d in (set(os.listdir(place)) if os.path.isdir(place) else set()) - before if not d.startswith(".")]
        if code or len(new) != 1:
            self.problems.append("%s: exit %s, %d new runs: %s" % (label, code, len(new), (said.strip().splitlines() or ["no message"])[-1]))
            return None
        return self.recorded_run(os.path.join(place, new[0]))

    def found(self, label):
        """The folder of the newest run with that name; None: there is none."""
        place = os.path.join(self.runs_dir, "study-" + self.name)
        head = re.sub(r"[^A-Za-z0-9._-]", "_", label)[:100] + "-"
        some = [os.path.join(place, d) for d in (os.listdir(place) if os.path.isdir(place) else []) if d.startswith(head)]
        return max(some, key=os.path.getmtime, default=None)

    def recorded_run(self, folder):
        run = read_run(folder)
        shutil.rmtree(os.path.join(folder, "checkpoints"), ignore_errors=True)
        self.recorded.append(run["id"])
        return run

    def keep(self, label, values, params=None):
        """Records numbers that another command measured as a run: {key: value or [values by step]}. Returns its id."""
        code = ("import json, sys, dptrack\nlabel, folder, name, values, params = json.loads(sys.argv[1])\n"
                "run = dptrack.init(experiment=name, run_name=label, runs_dir=folder, config=params)\n"
                "for key, list_ in values.items():\n    for k, v in enumerate(list_ if isinstance(list_, list) else [list_]):\n"
                "        run.log({key: v}, step=k + 1)\nprint(run.id)\nrun.finish()\n")
        words = json.dumps([label, self.runs_dir, "study-" + self.name, values, params or {}])
        library = next((p for p in (os.path.join(BUILD, ".libs", "libdptrack.so"), os.path.join(BUILD, "libdptrack.so")) if os.path.exists(p)), "")
        env = environment({"PYTHONPATH": os.path.join(SOURCE, "tracker", "python"), "PYTHONDONTWRITEBYTECODE": "1"})
        env["DPTRACK_LIBRARY"] = os.path.abspath(library)
        p = subprocess.run([sys.executable, "-c", code, words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        if p.returncode:
            self.problems.append("%s: not recorded: %s" % (label, p.stderr.strip().splitlines()[-1]))
            return None
        run = p.stdout.split()[-1]
        self.recorded.append(run)
        return run

    def tool(self, *flags, timeout=600):
        """Output of a command of dptrain, or None with a note of the problem."""
        p = subprocess.run([DPTRAIN, *map(str, flags)], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                           timeout=timeout, stdin=subprocess.DEVNULL)
        failed = p.returncode and not (p.returncode == 2 and p.stdout)  # a list of plans of which none fits
        if failed:
            self.problems.append("dptrain %s: exit %d: %s" % (shlex.join(map(str, flags)), p.returncode, p.stderr.strip()))
        return None if failed else p.stdout

    def turns(self, cells, repeats, measure):
        """Calls measure(cell, turn) for every cell in each turn, in alternating order, so that a machine that changes
        speed affects all of them."""
        for turn in range(repeats):
            for cell in cells if turn % 2 == 0 else cells[::-1]:
                if not self.over():
                    measure(cell, turn)


def median_of(run, key, skip=1, rank=None):
    """Median over steps of a series, of its first rank or the one given, without the first steps."""
    for (name, r), points in sorted(run["series"].items(), key=lambda item: abs(item[0][1])):
        if name == key and rank in (None, r) and len(points) > skip:
            return statistics.median(v for _, v in sorted(points.items())[skip:])
    return None


def last_of(run, key):
    return next((points[max(points)] for (name, _), points in sorted(run["series"].items()) if name == key and points), None)


def mean_of(run, key, skip=0):
    points = next((p for (name, _), p in sorted(run["series"].items()) if name == key), {})
    values = [v for _, v in sorted(points.items())]
    values = values[skip:] or values
    return statistics.mean(values) if values else None
