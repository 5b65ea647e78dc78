# SPDX-License-Identifier: Apache-2.0
"""dptrain bench --compare-with: both settings in fresh processes, alternating; the results and refused flags. --link
with a list: one row per link."""
import sys
sys.dont_write_bytecode = True
import json
import math
import os
import subprocess
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import DPTRAIN, check, finish

SMALL = ["--model", "gpt2-124m", "--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "8", "--vocab-size", "32", "-b", "1",
         "--threads", "1", "--backend", "ref", "--precision", "fp64", "--steps", "9"]


def bench(*flags):
    return subprocess.run([DPTRAIN, "bench", *SMALL, *flags], capture_output=True, text=True, timeout=120)


def measured():
    larger = "--n-layer 6 --n-embd 32 --block-size 16"  # about forty times the work, more than any pause of the machine
    r = bench("--compare-with", larger, "--rounds", "2", "--json")
    check(r.returncode == 0, f"exit code {r.returncode}: {r.stderr}")
    got = json.loads(r.stdout)
    check([len(s) for s in got["seconds"]] == [2, 2] and got["compare_with"] == larger, f"sides: {got['seconds']}")
    means = [math.exp(sum(math.log(v) for v in s) / 2) for s in got["seconds"]]
    check(abs(got["factor"] / (means[0] / means[1]) - 1) < 1e-9, f"factor {got['factor']} of {means}")
    check(got["factor"] < 0.7, f"a larger model: {got['factor']}")
    total = sum(p["seconds"] for p in got["phases"].values())
    check(abs(total - got["difference"]["seconds"]) < 1e-9, f"phases sum to {total}, not {got['difference']['seconds']}")
    check(got["low"] < got["factor"] < got["high"], f"interval {got['low']} {got['high']}")
    lines = [line for line in r.stderr.splitlines() if "round" in line]
    order = [" without:" in line for line in lines]
    check(order == [True, False, False, True], f"alternating: {lines}")


def refused():
    for flags, word in ((("--compare-with", "--no-such 1"), "--no-such"), (("--compare-with", "'--n-layer 2"), "unbalanced"), (("--compare-with",), "value"),
                        (("--compare-with", "--bf16", "--rounds", "1"), "rounds")):
        r = bench(*flags)
        check(r.returncode == 2 and word in r.stderr and r.stderr.count("\n") == 1 and not r.stdout, f"{flags}: {r.returncode} {r.stderr!r}")
    r = bench("--compare-with", "--image-size 0 --vocab-size 1")
    check(r.returncode == 2 and not r.stdout, f"bad value: {r.returncode} {r.stderr!r}")
    r = bench("--compare-with", "--n-head 5")  # parses, but cannot run
    check(r.returncode not in (0, 75) and not r.stdout, f"a side that fails: {r.returncode} {r.stdout!r}")


def links():
    """The waiting time is at least that of the link, and each link has its row."""
    r = bench("--nproc-per-node", "2", "--link", "0us,0GB/s; 20ms,0GB/s;0us,10MB/s;", "--json")
    check(r.returncode == 0, f"exit code {r.returncode}: {r.stderr}")
    rows = json.loads(r.stdout)["links"]
    check([(row["link"], row["latency_s"], row["bytes_per_s"]) for row in rows] ==
          [("0us,0GB/s", 0, 0), ("20ms,0GB/s", 0.02, 0), ("0us,10MB/s", 0, 1e7)], f"rows: {rows}")
    check(rows[1]["comm_exposed"] > 0.015 and rows[1]["step_seconds"] > 0.02, f"waited: {rows}")
    check(all(abs(row["samples_per_s"] * row["step_seconds"] / (rows[0]["samples_per_s"] * rows[0]["step_seconds"]) - 1) < 1e-9 for row in rows), rows)
    table = bench("--nproc-per-node", "2", "--link", "0us,0GB/s;1ms,0GB/s").stdout.splitlines()
    check(table[1].startswith("0us,0GB/s ") and table[1].endswith(" 1.00x") and table[2].startswith("1ms,0GB/s "), table)
    for flags, word in ((("--link", "0us,0GB/s;3us"), "--link '3us': expected a latency"), (("--link", ";"), "name links"),
                        (("--link", "0us,0GB/s;0us,1GB/s", "--bandwidth"), "omit --bandwidth"),
                        (("--link", "0us,0GB/s;0us,1GB/s", "--compare-with", "--bf16"), "omit --compare-with")):
        r = bench(*flags)
        check(r.returncode == 2 and word in r.stderr and not r.stdout, f"{flags}: {r.returncode} {r.stderr!r}")


measured()
refused()
links()
finish("bench_compare")
