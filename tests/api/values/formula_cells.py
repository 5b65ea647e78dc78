# SPDX-License-Identifier: Apache-2.0
"""CSV of the API and of the commands: a text that a spreadsheet would evaluate as a formula (OWASP's CSV injection, mlflow#7169,
hyperfine#914) has a ' before it, a number has none, and ?raw=1 and --raw give the texts as recorded. The reply is a file."""
import sys
sys.dont_write_bytecode = True
import csv
import io
import os
import re
import subprocess
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

FORMULAS = ["=1+1", '=HYPERLINK("http://x","y")', "=cmd|' /C calc'!A0", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", "-", "+", "-x", "=", "-1e", "+-1"]
NUMBERS = ["-1", "+2.5", "-1e-7", "-Infinity", "+.5", "-0"]
TEXTS = ["'=1", "a=1", "1+1", "", " =1", "x-y"]


def marked(text):
    return "'" + text if text in FORMULAS else text


def cells(text):
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def command(server, *words):
    done = subprocess.run([lib.PROGRAM, *words, "--logdir", server.logdir], capture_output=True, timeout=60, env=lib.environment_of(("--logdir", server.logdir)))
    lib.equal(done.returncode, 0, f"{words}: {done.stderr}")
    return done.stdout.decode()


def main():
    with lib.fresh() as server:
        run = lib.make_run(server, "@e", "=name", {f"p{i}": text for i, text in enumerate(FORMULAS + NUMBERS + TEXTS)})
        for key, value in (("t", "+1+1"), ("n", "-3")):
            lib.equal(server.request("PUT", f"/api/v1/runs/{run}/tags/{key}", {"value": value})[0], 200, "a tag")
        lib.equal(server.request("POST", f"/api/v1/runs/{run}/metrics", {"points": [{"key": "-k", "step": 1, "value": -2}]})[0], 200, "a point")
        want = FORMULAS + NUMBERS + TEXTS
        for path, name in (("/api/v1/export/runs.csv", "runs"), (f"/api/v1/export/series.csv?run={run}", "series")):
            for raw in (False, True):
                status, headers, body = server.request("GET", path + ("?raw=1" if "?" not in path else "&raw=1") * raw)
                got = cells(body.decode())
                lib.equal((status, headers["Content-Disposition"]), (200, f"attachment; filename={name}.csv"), path)
                lib.check(("=name" if raw else "'=name") in got and ("'=name" if raw else "=name") not in got, f"{path} raw={raw}: {got}")
                if name == "runs":
                    values = dict(zip(*csv.reader(io.StringIO(body.decode(), newline=""))))
                    lib.equal([values[f"params.p{i}"] for i in range(len(want))], [text if raw else marked(text) for text in want], f"params, raw={raw}")
                    lib.equal((values["tags.t"], values["tags.n"]), ("+1+1" if raw else "'+1+1", "-3"), "tags")
                else:
                    lib.check("-2" in got and ("-k" if raw else "'-k") in got, f"{got}")
        lib.equal(server.request("GET", "/api/v1/export/runs.csv?raw=2")[0], 400, "raw=2")
        lib.equal(server.request("GET", "/api/v1/export/runs.json?raw=1")[0], 400, "JSON has no formulas")
        for words in (("ls", "--csv"), ("ls", "--experiments", "--csv"), ("export",), ("export", run, "--series"), ("compare", run, run, "--csv")):
            plain, raw = command(server, *words), command(server, *words, "--raw")
            lib.check(not any(re.match(r"[=@]", cell) for cell in cells(plain)), f"{words}: {plain}")
            lib.check("'=name" in plain or "'@e" in plain or words[0] == "compare", f"{words}: {plain}")
            lib.check("'=name" not in raw and "'@e" not in raw, f"{words} --raw: {raw}")
    lib.finish("formula_cells")


main()
