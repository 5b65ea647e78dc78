# SPDX-License-Identifier: Apache-2.0
"""The report of an experiment: its text, and one HTML file that the report page of our own server exports with the data
frozen. Without a browser the file has the same text and numbers, without the page's drawings."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

from record import BUILD, BUSY, HERE, SOURCE, commit, environment, processor

PANEL_RUNS = 12 # of a panel (web/ui/src/state/saved/reports.ts)
BROWSER_S = 100


def number(form, value):
    """Without an exponent of ten."""
    said = "–" if value is None else form % value
    return ("%.0f" if "e+" in said else "%.3f") % float(said) if "e" in said else said


def planned_whole(t):
    return all(c.plan for c in t.cells.values())


def cell_text(t, key):
    c = t.cells.get(key)
    if c is None or (not c.values and not c.word):
        return "not measured"
    if c.word:
        return c.word + (" (plan)" if c.plan and not planned_whole(t) else "")
    half = c.half()
    return number(t.form, c.middle()) + (" ± " + number("%.2g", half) if half is not None else "") + (" (plan)" if c.plan and not planned_whole(t) else "")


def rows_of(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(r) + " |" for r in rows]


def ratio_lines(t):
    """Our ratios to the base cell beside the article's."""
    ours, theirs = t.means(), {k: v for k, v in t.article.items()}
    base, article_base = t.base_of(ours), t.base_of(theirs)
    if not base:
        return []
    def of(key):
        mine = "%.2f" % (ours[key] / base) if key in ours else "–"
        return mine + (" (%.2f)" % (theirs[key] / article_base) if article_base and key in theirs else " (–)")
    head = ["ratio to %s, %s" % t.base] + ["%s: here (article)" % c for c in t.columns]
    return ["", *rows_of(head, [[r] + [of((r, c)) for c in t.columns] for r in t.rows])]


def table_lines(t):
    head = ["%s, %s%s" % (t.title, t.unit, " (plans)" if planned_whole(t) and t.cells else "")] + list(t.columns)
    lines = rows_of(head, [[r] + [cell_text(t, (r, c)) for c in t.columns] for r in t.rows])
    lines += ratio_lines(t)
    plans = sorted({c.plan for c in t.cells.values() if c.plan})
    return lines + (["", "Plans: " + "; ".join("`%s`" % p for p in plans)] if plans else [])


def runs_text(low, high):
    return "%d run%s" % (high, "s" if high > 1 else "") if low == high else "%d to %d runs" % (low, high)


def conditions(s):
    n = [len(c.values) for t in s.tables for c in t.cells.values() if c.runs and c.values]
    return ("%s, %d cores, %s, commit %s%s; %s; other programs took %.0f %% of the cores%s." %
            (processor(), s.cores, time.strftime("%Y-%m-%d"), commit(), ", quick" if s.quick else "",
             "%s a cell, in turns, mean ± half of the 95 %% interval" % runs_text(min(n), max(n)) if n else "no run", 100 * s.others(),
             ": **a busy machine**, so shares and bytes count, speeds do not" if s.others() > BUSY else ""))


def section(s, about):
    """The part of docs/study.md: everything but the panels."""
    lines = [about.strip(), "", conditions(s), ""]
    for t in (t for t in s.tables if t.cells):
        lines += table_lines(t) + [""]
    if s.findings:
        lines += rows_of(["finding of the article", "here", "number"], [list(f) for f in s.findings]) + [""]
    lines += ["%s\n" % n for n in s.notes]
    if s.problems:
        lines += ["Not measured:", ""] + ["- %s" % p.replace("|", "/") for p in s.problems[:12]] + [""]
    return "\n".join(lines)


def panels(s):
    """A panel for each metric, so that their scales do not mix, and PANEL_RUNS runs."""
    lines = []
    for metric in s.metrics:
        for at in range(0, len(s.recorded), PANEL_RUNS):
            last = min(at + PANEL_RUNS, len(s.recorded))
            lines += ["```panel", "metrics: " + metric, "runs: " + " ".join(s.recorded[at:last]), "title: %s, runs %d to %d" % (metric, at + 1, last), "```", ""]
    return lines


class Server:
    def __init__(self, folder):
        self.process = subprocess.Popen([os.path.join(BUILD, "dptrack"), "serve", "--logdir", folder, "--port", "0"], env=environment(),
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.url = None
        for line in self.process.stdout:
            found = re.search(r"serving (http:\S+)", line)
            if found:
                self.url = found.group(1).rstrip("/") + "/"
                break
        if not self.url:
            raise OSError("dptrack serve did not start")

    def ask(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + "api/v1/" + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def wait_for(self, runs, wait_s=15):
        """Until the server has read them all."""
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            known = {r["id"] for r in self.ask("runs?limit=1000")["runs"]}
            if set(runs) <= known:
                return
            time.sleep(0.1)
        raise OSError("the server did not read all runs")

    def end(self):
        self.process.terminate()
        self.process.wait()


def browser_export(server, report, path):
    """Returns '' or why the page could not export it."""
    script = '. "$srcdir/tests/web/prepare.sh"; exec node "$0" "$@"'
    env = dict(os.environ, srcdir=os.path.abspath(SOURCE), builddir=os.path.abspath(BUILD), NODE_PATH=os.path.join(os.path.abspath(BUILD), "tests/web/work/node_modules"))
    try:
        p = subprocess.run(["sh", "-c", script, os.path.join(HERE, "export.mjs"), server.url, str(report), path], env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True, timeout=BROWSER_S)
    except subprocess.TimeoutExpired:
        return "the browser did not end within %d s" % BROWSER_S
    lines = p.stdout.strip().splitlines() or ["no browser"]
    if p.returncode == 77:  # said by prepare.sh: what is not installed
        return lines[-1]
    wrong = next((l for l in lines if "Error" in l or "Timeout" in l), lines[-1])
    return "" if p.returncode == 0 and os.path.exists(path) else "the export failed: " + wrong


def plain_html(title, body, data, why):
    return ("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title></head><body><h1>%s</h1>\n<p>Written without the report "
            "page: %s</p>\n<pre>%s</pre>\n<script type=\"application/json\" data-series>%s</script></body></html>\n" %
            (html.escape(title), html.escape(title), html.escape(why), html.escape(body), json.dumps(data).replace("<", "\\u003c")))


def write(s, about):
    """Writes NAME.html, NAME.md and NAME.json into the study's folder; returns the report's text."""
    body, name = section(s, about), "study: " + s.name
    data = {"name": s.name, "quick": s.quick, "processor": processor(), "cores": s.cores, "date": time.strftime("%Y-%m-%d"), "commit": commit(),
            "others": s.others(), "tables": [t.json() for t in s.tables], "findings": s.findings, "problems": s.problems}
    path = os.path.join(s.out, s.name + ".html")
    if os.path.exists(path):
        os.unlink(path)
    why = "no run was recorded"
    if s.recorded:
        server = Server(s.runs_dir)
        try:
            server.wait_for(s.recorded)
            made = server.ask("reports", {"experiment": "study-" + s.name, "name": name, "text": body + "\n" + "\n".join(panels(s))})
            why = browser_export(server, made["id"], path)
        except OSError as e:
            why = str(e)
        finally:
            server.end()
    if why:
        print("study %s: report without the page's drawings: %s" % (s.name, why), file=sys.stderr)
        with open(path, "w", encoding="utf-8") as f:
            f.write(plain_html(name, body, data, why))
    for end, text in (("md", body), ("json", json.dumps(data, indent=1) + "\n")):
        with open(os.path.join(s.out, "%s.%s" % (s.name, end)), "w", encoding="utf-8") as f:
            f.write(text)
    if not why:
        shutil.rmtree(os.path.join(s.work, "data"), ignore_errors=True)
    return body
