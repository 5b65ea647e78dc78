# SPDX-License-Identifier: Apache-2.0
"""A disk that is full for a while, or fails once, or a limit on file sizes: writes are refused with 507 or 503, reads
work, writing resumes without a restart, and acknowledged points are stored exactly once. The disk is
tests/tracker/failio.c, preloaded.

    tests/fault/disk.py            a few places (make check)
    tests/fault/disk.py 200        200 places"""
import sys
sys.dont_write_bytecode = True
import os
import random
import re
import resource
import subprocess
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

BATCH = 100


def batch(server, run, number):
    points = [{"key": "a", "step": number * BATCH + i, "value": i} for i in range(BATCH)]
    return server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points}, {"Idempotency-Key": str(number)})


def stored(server, run):
    status, reply = server.json("GET", f"/api/v1/runs/{run}")
    lib.equal(status, 200, "reads work")
    return reply["metrics"].get("a", {}).get("count", 0) if status == 200 else -1


def one(preload, setting, must_fail):
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        first = lib.Server(runs)
        run = lib.make_run(first)
        lib.equal(first.stop(), 0, "exit code")
        server = lib.Server(runs, env={"LD_PRELOAD": preload, "FAILIO": setting}, wait=60)
        acked, refused, end = 0, 0, time.monotonic() + 60
        while (acked < 120 or (must_fail and not refused)) and time.monotonic() < end:
            status, reply = batch(server, run, acked)
            if status == 200:
                acked += 1
                continue
            refused += 1
            lib.check(status in ((507,) if must_fail else (507, 503)), f"{setting}: {status} {reply}")
            lib.equal(stored(server, run), acked * BATCH, f"{setting}: points while writes fail")
            time.sleep(0.05)
        lib.check(acked >= 120, f"{setting}: writing resumes ({acked} batches, {refused} refused)")
        lib.check(refused or not must_fail, f"{setting}: nothing was refused")
        lib.equal(stored(server, run), acked * BATCH, f"{setting}: points")
        server.stop()
        again = lib.Server(runs)
        lib.equal(stored(again, run), acked * BATCH, f"{setting}: points after a restart")
        lib.equal(again.stop(), 0, "exit code")


def files_may_not_grow():
    """ulimit -f, which raises a signal first, then returns an error."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        server = lib.Server(runs)
        run = lib.make_run(server)
        before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (400000, before[1]))
        acked, refused, end = 0, 0, time.monotonic() + 60
        while refused < 3 and time.monotonic() < end:
            status, reply = batch(server, run, acked)
            acked += status == 200
            refused += status != 200
            lib.check(status in (200, 507), f"ulimit -f: {status} {reply}")
            lib.equal(stored(server, run), acked * BATCH, "ulimit -f: points")
        lib.equal(refused, 3, "ulimit -f: refusals")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)
        lib.equal(batch(server, run, acked)[0], 200, "ulimit -f: writing resumes")
        lib.equal(server.stop(), 0, "exit code")
        again = lib.Server(runs)
        lib.equal(stored(again, run), (acked + 1) * BATCH, "ulimit -f: points after a restart")
        lib.equal(again.stop(), 0, "exit code")


def no_room_for_a_store(preload):
    """A command that finds the disk full says so, and what to do."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        r = subprocess.run([lib.PROGRAM, "ls", "--logdir", folder], env=dict(os.environ, LD_PRELOAD=preload, FAILIO="full=0,60"),
                           capture_output=True, text=True, timeout=60)
        lib.check(r.returncode == 1 and "disk is full; free space on this disk, or use --db FILE" in r.stderr, f"{r}")


def main():
    places = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    files_may_not_grow()
    preload = os.path.join(lib.BUILD, "tests", "tracker", ".libs", "failio.so")
    if not os.path.exists(preload):
        print("no", preload)
        sys.exit(77)
    if re.search("lib[at]san", os.popen(f"ldd {lib.PROGRAM}").read()):
        print("skipped: the preloaded allocator would replace the sanitizer's")
        sys.exit(77)
    no_room_for_a_store(preload)
    dice = random.Random(2)
    for _ in range(places):
        one(preload, f"full={dice.randrange(20000, 250000)},0.5", True)
        one(preload, f"quota={dice.randrange(20000, 250000)},0.5", True)
        one(preload, f"eio={dice.randrange(20000, 250000)}", False)
    lib.finish("disk")


main()
