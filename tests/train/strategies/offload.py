#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""State offloaded to a file uses no memory of the ranks: the proportional set size (PSS) of all ranks, minus that of
such ranks with a tiny model, equals the plan, with and without offloading.

    offload.py [--full [WORDS...]] [--results FILE] [--minutes M]

--full: GPT-2 124M with AdamW on 2 and 4 ranks for every strategy and offload: each alone, all together, and to a file.
With WORDS only the lines that contain all of them, as in --full "strategy ddp" "node 2" (56 lines, half a minute each,
up to 12 GB)."""
import argparse
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "..", "bench", "parts")]
import results
from helper import Folder, check, dptrain, fast, finish, sanitized, start

SMALL = "--model gpt2-124m --n-layer 6 --n-head 8 --n-embd 512 --vocab-size 2048 -b 4 --seq-len 128 --opt adamw"
TINY = "--model gpt2-124m --n-layer 1 --n-head 1 --n-embd 16 --vocab-size 64 -b 1 --seq-len 8 --opt adamw"
LARGE = "--model gpt2-124m --no-tie-weights -b 1 --seq-len 128 --opt adamw"
ALL = " --activation-offload --param-offload --optim-offload"
WAYS = [" --strategy ddp", " --strategy fsdp --zero-stage 1", " --strategy fsdp --zero-stage 2", " --strategy fsdp --zero-stage 3",
        " --strategy pdp"]
OFFLOADS = ["", " --activation-offload", " --param-offload", " --optim-offload", ALL]
FILE = " --offload-dir " + tempfile.gettempdir()
WATCHED = ["--synthetic", "--watch-steps", 1]
MIB = 1048576


def ranks_of(pid):
    """The process and all its descendants."""
    found, new = [], [pid]
    while new:
        found += new
        lists = ["/proc/%d/task/%s/children" % (p, t) for p in new for t in tasks(p)]
        new = [int(c) for path in lists for c in text(path).split()]
    return found


def tasks(pid):
    try:
        return os.listdir("/proc/%d/task" % pid)
    except OSError:
        return []


def text(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read()
    except OSError:
        return ""


def pss(pid):
    """Code of libraries is paged in as it runs: named files are not part of the plan."""
    mappings = re.findall(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)$(?:\n[A-Z].*)*?\nPss: +(\d+) kB", text("/proc/%d/smaps" % pid), re.M)
    return sum(int(kb) * 1024 for path, kb in mappings if not path.startswith("/") or path.endswith("(deleted)") or "/dev/" in path)


def measure(line):
    """Peak PSS of all processes of the job together (a shared page counts once, split among its processes); None if
    the run failed. Steps are watched: the memory for that, a copy of a parameter, is planned too."""
    with Folder() as runs:
        p = start(*line.split(), *WATCHED, "--max-steps", 3, "--print-freq", 1, *fast(), "--runs-dir", runs)
        most = 0
        while p.poll() is None:
            most = max(most, sum(pss(each) for each in ranks_of(p.pid)))
            time.sleep(0.03)
        out, said = p.communicate()
        return most if check(p.returncode == 0, "%s: exit %d: %s" % (line, p.returncode, said)) else None


def planned(line, ranks, data=WATCHED):
    """Memory of all ranks together, as `dptrain plan` prints it: for a pipeline stage by stage. None if it failed."""
    p = dptrain("plan", *line.split(), *data, *fast())
    stages = re.findall(r"^stage \d+ of \d+: ([\d.]+) MiB planned", p.stdout, re.M)
    whole = re.findall(r"^memory of a rank: ([\d.]+) MiB planned", p.stdout, re.M)
    if not check(p.returncode == 0 and (stages or whole), "plan %s: exit %d: %s" % (line, p.returncode, p.stderr)):
        return None
    return MIB * sum(map(float, stages or whole * ranks))


def bytes_of(line, ranks):
    """Returns the planned and the measured bytes of a line's ranks; None if a run failed."""
    small = TINY + " --nproc-per-node %d" % ranks
    had, want = [measure(each) for each in (small, line)], [planned(each, ranks) for each in (small, line)]
    return (want[1], had[1] - (had[0] - want[0])) if all(had + want) else None


def compare(line, plan_and_had, beside=0):
    want, have = plan_and_had
    print("planned %7.1f MiB, PSS %7.1f MiB, %+5.1f %%: %s" % (want / MIB, have / MIB, 100 * (have - want) / want, line), flush=True)
    check(abs(have - want) <= 0.05 * want + beside, "PSS %.1f MiB, planned %.1f: %s" % (have / MIB, want / MIB, line))
    return have


def refused():
    base = ["--synthetic", "--model", "resnet20", "--max-steps", 1]
    for flags, said in ((["--offload-dir", "/tmp"], "--offload-dir: nothing is offloaded"),
                        (["--optim-offload", "--offload-dir", "/nowhere"], "--offload-dir /nowhere: cannot create a file there: No such file"),
                        (["--param-offload", "--strategy", "fsdp", "--zero-stage", 2, "--nproc-per-node", 2], "--param-offload: stage 2 of ZeRO")):
        with Folder() as runs:
            p = dptrain(*base, *flags, *fast(), "--runs-dir", runs)
        lines = [line for line in p.stderr.splitlines() if "error" in line]
        check(p.returncode == 2 and len(lines) == 1 and said in lines[0], "%s: exit %d: %s" % (flags, p.returncode, p.stderr))


def lines():
    """(line, ranks) of --full. Stages 1 and 2 of ZeRO keep complete parameters on every rank: these are not
    offloaded."""
    for ranks in (2, 4):
        for way in WAYS:
            kept = "zero-stage 1" in way or "zero-stage 2" in way
            for offload in OFFLOADS + [ALL + FILE]:
                if not kept or offload != " --param-offload":
                    yield LARGE + way + (offload.replace(" --param-offload", "") if kept else offload) + " --nproc-per-node %d" % ranks, ranks


def full(words, kept):
    ranks = {line: n for line, n in lines() if all(w in line for w in words)}
    for line, row in kept.each(list(ranks), lambda line: bytes_of(line, ranks[line])):
        if check(row, line + ": failed"):
            compare(line, row)


def small():
    """oneDNN's kernels, and pages being written to the disk, come on top of the plan."""
    rows = {line: bytes_of(line, 1) for line in (SMALL, SMALL + ALL + FILE)}
    if all(rows.values()):
        kept, away = (compare(line, row, 48 * MIB) for line, row in rows.items())
        check(away < 0.45 * kept, "the file saves memory: %s bytes, %s with it" % (kept, away))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--full", nargs="*", metavar="WORDS")
    results.add_arguments(p)
    o = p.parse_args()
    if o.full is not None:
        full(o.full, results.of_arguments(o))
    else:
        refused()
        if not sanitized():
            small()
    finish("offload")


if __name__ == "__main__":
    main()
