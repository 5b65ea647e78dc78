# SPDX-License-Identifier: Apache-2.0
"""A run recorded by the library reaches three servers: one follows the folder, one receives the journal over HTTP and
is killed twice during the run, one does both. At the end all three have the same points; a follower shows a new point
within a second."""
import sys
sys.dont_write_bytecode = True
import csv
import io
import os
import re
import tempfile
import time
import lib


def rows(server, run):
    status, _, data = server.request("GET", f"/api/v1/export/series.csv?run={run}&segments=all")
    return list(csv.DictReader(io.StringIO(data.decode()))) if status == 200 else None


def wait_for(what, test, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return True
        time.sleep(0.02)
    return lib.check(False, f"waited {seconds} s for {what}")


def visible_soon(follower, runs):
    r = lib.Recorder(runs, url="")
    r.say("log 1 train/loss 2.5")
    r.say("flush 1")
    wait_for("the run", lambda: rows(follower, r.id))
    worst = 0
    for step in range(2, 6):
        r.say(f"log {step} train/loss {step / 8}")
        start = time.monotonic()
        r.say("flush 1")
        wait_for(f"step {step}", lambda: len(rows(follower, r.id)) == step)
        worst = max(worst, time.monotonic() - start)
    r.close()
    wait_for("the end", lambda: follower.json("GET", f"/api/v1/runs/{r.id}")[1]["status"] == "finished")
    return worst


def same_by_three_ways(folder, runs, follower):
    far, both = os.path.join(folder, "far"), os.path.join(folder, "both")
    sent = lib.Server(far)
    port = sent.port
    fed = lib.Server(both)
    # `follower` follows the first recorder's folder, and its journal is POSTed to `sent`; the second's goes both ways to `fed`
    one = lib.Recorder(runs, url=sent.url, close_wait_s=15)
    two = lib.Recorder(both, url=fed.url, close_wait_s=15)
    for r in (one, two):
        r.say("param lr 0.1")
    for part in range(6):
        for r in (one, two):
            r.say(f"burst 3000 train/loss {part * 3000}")
            r.say(f"rank 0 {part} phase/step 0.5")
            r.say(f"log {part} val/loss {['nan', 'inf', '-inf', '0', '-0.0', '1e-310'][part]}")
            r.say("flush 1")
        if part in (1, 3):
            sent.process.kill()
            sent.process.wait()
            sent = lib.Server(far, "--port", str(port))
        time.sleep(0.1)
    for r in (one, two):
        out = r.close()
        lib.check("closed 0 0" in out, f"the library: {out!r}")
    count = 6 * 3002
    for server, run, what in ((follower, one.id, "followed"), (sent, one.id, "sent"), (fed, two.id, "both ways")):
        wait_for(what, lambda: len(rows(server, run) or []) >= count)
        lib.equal(len(rows(server, run)), count, f"rows, {what}")
        lib.equal(server.json("GET", f"/api/v1/runs/{run}")[1]["status"], "finished", f"status, {what}")
    lib.check(rows(follower, one.id) == rows(sent, one.id), "the follower and the killed server differ")
    plain = [(r["key"], r["rank"], r["step"], r["value"]) for r in rows(follower, one.id)]
    lib.check(plain == [(r["key"], r["rank"], r["step"], r["value"]) for r in rows(fed, two.id)], "the server that got both ways differs")
    for server in (sent, fed):
        lib.equal(server.stop(), 0, "exit code")


def overlapping(folder, runs):
    """A range that begins before the end of the stored part is accepted from there on."""
    r = lib.Recorder(runs, url="")
    r.say("burst 100 train/loss 0")
    r.say("flush 1")
    r.close()
    file = next(os.path.join(at, name) for at, _, names in os.walk(runs) for name in names if "tfevents" in name and r.id[:8] in at)
    with open(file, "rb") as f:
        journal = f.read()
    writer = next(x.decode() for x in re.findall(rb"[0-9a-f]{32}", journal[:1000]) if x.decode() != r.id)
    server = lib.Server(os.path.join(folder, "overlapping"))
    path = f"/api/v1/runs/{r.id}/journal?writer={writer}&offset="
    octets = {"Content-Type": "application/octet-stream"}
    _, reply = server.json("POST", path + "0", journal[:len(journal) // 2], octets)
    part = reply["durable"]
    lib.check(0 < part < len(journal), f"the first half is stored up to {part}")
    for again in range(2):
        status, reply = server.json("POST", path + "0", journal, octets)
        lib.equal((status, reply.get("durable")), (200, len(journal)), f"the complete journal, {again}")
    lib.equal(len(rows(server, r.id)), 100, "rows")
    lib.equal(server.stop(), 0, "exit code")


def two_trainings(server, folder):
    """Two trainings that use one run id: while the first is alive, the second is refused with the first's host, as is
    any process with its rank and segment. Other ranks, the launcher and a new segment are stored."""
    octets = {"Content-Type": "application/octet-stream"}
    run, seen = "5e" * 16, set()

    def post(name, **options):
        """Records a journal in a folder of its own, and sends what is written so far: the recorder and the reply."""
        place = os.path.join(folder, "machine-" + name)
        r = lib.Recorder(place, url="", run_id=run, **options)
        r.say("log 1 train/loss 1")
        r.say("flush 5")
        time.sleep(0.2)
        found = [os.path.join(at, f) for at, _, names in os.walk(place) for f in names if f.endswith(".journal") or "tfevents" in f]
        file = next(f for f in found if f not in seen)
        seen.add(file)
        with open(file, "rb") as f:
            data = f.read()
        writer = next(x.decode() for x in re.findall(rb"[0-9a-f]{32}", data[:1000]) if x.decode() != run)
        path = f"/api/v1/runs/{run}/journal?writer={writer}&offset=0"
        return r, lambda: server.json("POST", path, data, octets)

    first, send = post("a")
    lib.equal(send()[0], 200, "the first training")
    second, send_second = post("b")
    status, reply = send_second()
    text = reply.get("error", {}).get("message", "")
    lib.equal((status, reply.get("durable")), (409, None), f"a second training: {reply}")
    lib.check(f"process {first.process.pid} on {os.uname().nodename}" in text and "a run id of its own" in text, f"a second training: {text}")
    lib.equal(send()[0], 200, "the first training, again")
    recorders = [first, second]
    for name, options in (("c", {"rank": 1, "world_size": 2}), ("d", {"launcher": 1}), ("a", {"reopen": 1, "first_step": 1})):
        r, send_other = post(name, **options)
        recorders.append(r)
        lib.equal(send_other()[0], 200, f"{options}")
    for r in recorders:
        r.close()


def refusals(server):
    run, writer = "ab" * 16, "cd" * 16
    path = f"/api/v1/runs/{run}/journal?writer={writer}"
    octets = {"Content-Type": "application/octet-stream"}
    status, reply = server.json("POST", path + "&offset=0", b"no records at all, but long enough for a header", octets)
    lib.equal(status, 400, f"bytes that are not records: {reply}")
    lib.equal(server.json("GET", path)[0], 404, "a writer of a missing run")
    known = lib.make_run(server, "way", "known")
    status, reply = server.json("POST", f"/api/v1/runs/{known}/journal?writer={writer}&offset=100", b"", octets)
    lib.equal((status, reply.get("durable")), (409, 0), "an offset beyond the stored end")
    lib.equal(server.json("GET", f"/api/v1/runs/{known}/journal?writer={writer}")[1], {"durable": 0, "interval_s": 0.5}, "durable")


def main():
    if not os.path.exists(lib.RECORD):
        print(f"{lib.RECORD} is not built")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        follower = lib.Server(runs)
        worst = visible_soon(follower, runs)
        same_by_three_ways(folder, runs, follower)
        overlapping(folder, runs)
        refusals(follower)
        two_trainings(follower, folder)
        lib.equal(follower.stop(), 0, "exit code")
    print(f"a new point is visible after at most {worst:.2f} s")
    lib.finish("journal")


main()
