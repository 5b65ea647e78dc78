# SPDX-License-Identifier: Apache-2.0
"""The n-th allocation of a server under load fails, for many n. The server ends with one line and status 1, or a library
refused the allocation and the server serves on; acknowledged points are stored exactly once. tests/tracker/failio.c is
preloaded.

    tests/fault/memory.py            a few places (make check)
    tests/fault/memory.py 200        200 places"""
import sys
sys.dont_write_bytecode = True
import http.client
import os
import random
import re
import tempfile
import threading
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

CLIENTS, BATCHES, BATCH = 3, 40, 50
LINE = r"dptrack: error: out of memory: cannot allocate \d+ bytes\n"


def write(server, run, key, outcome):
    """Sends batches of points; outcome[key]: (acknowledged batches, whether the next one may be stored)."""
    acked = 0
    for number in range(BATCHES):
        points = [{"key": key, "step": number * BATCH + i, "value": i} for i in range(BATCH)]
        outcome[key] = acked, True
        try:
            status, _ = server.json("POST", f"/api/v1/runs/{run}/metrics", {"points": points}, {"Idempotency-Key": f"{key}{number}"})
            server.json("GET", f"/api/v1/runs/{run}/series?key={key}")
        except (OSError, http.client.HTTPException):
            return
        if status != 200:
            return
        acked += 1
        outcome[key] = acked, False


def one(preload, n):
    """Returns whether the server ended by itself."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        first = lib.Server(runs)
        run = lib.make_run(first)
        lib.equal(first.stop(), 0, "exit code")
        try:
            server = lib.Server(runs, env={"LD_PRELOAD": preload, "FAILIO": f"alloc={n}"})
        except AssertionError as e:
            lib.check("out of memory" in str(e) or "cannot" in str(e), f"alloc={n}: {e}")
            return True
        outcome = {}
        clients = [threading.Thread(target=write, args=(server, run, f"c{i}", outcome)) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        ended = server.process.poll() is not None
        if ended:
            lib.equal(server.process.wait(), 1, f"alloc={n}: exit code")
            lib.check(re.search(LINE, server.stderr()), f"alloc={n}: {server.stderr()!r}")
        else:
            server.stop(how=9)
        again = lib.Server(runs)
        for key, (acked, unsure) in outcome.items():
            status, reply = again.json("GET", f"/api/v1/runs/{run}")
            count = reply["metrics"].get(key, {}).get("count", 0) if status == 200 else -1
            lib.check(count in (acked * BATCH, (acked + unsure) * BATCH), f"alloc={n}: {key}: {count} points, {acked} batches acknowledged")
        lib.equal(again.stop(), 0, "exit code")
        return ended


def main():
    places = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    preload = os.path.join(lib.BUILD, "tests", "tracker", ".libs", "failio.so")
    if not os.path.exists(preload):
        print("no", preload)
        sys.exit(77)
    if re.search("lib[at]san", os.popen(f"ldd {lib.PROGRAM}").read()):
        print("skipped: the preloaded allocator would replace the sanitizer's")
        sys.exit(77)
    dice = random.Random(3)
    ended = sum(one(preload, dice.randrange(2000, 30000)) for _ in range(places))
    lib.check(ended, "no server ended for missing memory")
    lib.finish("memory")


main()
