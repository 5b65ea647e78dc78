# SPDX-License-Identifier: Apache-2.0
"""Event files that are synced, renamed, replaced, removed, copied, exported and imported keep one identity, which their content
gives them; and a killed run ends with its last record, whoever reads its journal, and when."""
import sys
sys.dont_write_bytecode = True
import os
import shutil
import struct
import subprocess
import tempfile
import time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "api"))
sys.path.insert(0, os.path.join(HERE, "..", "tracker"))
import histories
import journal
import lib
import wire

NAME = "events.out.tfevents.1700000000.host.1.0"


class Folder(histories.History):
    def __init__(self, root):
        import random
        super().__init__(root, random.Random(1))

    def write(self, path, content, mode="wb"):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), mode) as f:
            f.write(content)

    def train(self, path, points):
        self.write(path, self.version() + self.points(points))


def counts(server):
    there, gone = histories.shown(server)
    return {f"{e}/{n}" if e != "Default" else n: [len(p) for p in runs] for (e, n), runs in there.items()}, sorted(len(p) for p in gone)


def becomes(server, there, gone, what):
    want, end = ({k: [v] for k, v in there.items()}, gone), time.monotonic() + 30
    got = counts(server)
    while got != want and time.monotonic() < end:
        time.sleep(.1)
        got = counts(server)
    lib.equal(got, want, what)


def synced(server, h):
    """`aws s3 sync` writes next to the file and renames; rsync does the same under a hidden name."""
    part = h.path("exp1", NAME + ".1a2b3c4d")
    h.train("exp1/" + NAME, 2)
    becomes(server, {"exp1": 2}, [], "before the first sync")
    for n in (2, 4):
        with open(h.path("exp1", NAME), "rb") as f:
            whole = f.read() + h.points(1, n)
        h.write("exp1/" + NAME + ".1a2b3c4d", whole)
        time.sleep(.2)
        os.rename(part, h.path("exp1", NAME))
        becomes(server, {"exp1": 2 + n // 2}, [], "after a sync")
    h.write("exp1/." + NAME + ".Xy12", whole + h.points(1, 9))
    os.rename(h.path("exp1", "." + NAME + ".Xy12"), h.path("exp1", NAME))
    becomes(server, {"exp1": 5}, [], "after rsync")
    shutil.copyfile(h.path("exp1", NAME), h.path("exp1", NAME + ".copy"))
    time.sleep(.3)
    becomes(server, {"exp1": 5}, [], "with a copy next to it")
    os.remove(h.path("exp1", NAME))
    becomes(server, {"exp1": 5}, [], "the copy alone")
    h.write("exp1/" + NAME + ".copy", h.points(1, 20), "ab")
    becomes(server, {"exp1": 6}, [], "the copy goes on")
    shutil.rmtree(h.path("exp1"))
    becomes(server, {}, [6], "removed")


def retrained(server, h):
    h.train("exp2/" + NAME, 6)
    becomes(server, {"exp2": 6}, [6], "trained")
    shutil.rmtree(h.path("exp2"))
    h.train("exp2/events.out.tfevents.1700000009.host.9.0", 3)
    becomes(server, {"exp2": 3}, [6, 6], "removed and trained again")
    shutil.move(h.path("exp2"), h.path("kept"))
    becomes(server, {"kept": 3}, [6, 6], "the folder has another name")
    h.train("exp2/" + NAME, 4)
    becomes(server, {"kept": 3, "exp2": 4}, [6, 6], "a third training in the old folder")
    shutil.copytree(h.path("exp2"), h.path("backup"))
    becomes(server, {"kept": 3, "exp2": 4, "backup": 4}, [6, 6], "a copy elsewhere is a run, as in TensorBoard")
    shutil.rmtree(h.path("exp2"))
    becomes(server, {"kept": 3, "backup": 4}, [4, 6, 6], "gone")
    shutil.copytree(h.path("backup"), h.path("exp2"))
    becomes(server, {"kept": 3, "backup": 4, "exp2": 4}, [6, 6], "and back")


def renamed(server, h):
    for folder in ("kept", "backup", "exp2"):
        shutil.rmtree(h.path(folder))
    h.train("exp3/" + NAME, 5)
    becomes(server, {"exp3": 5}, [3, 4, 4, 6, 6], "before the rename")
    os.rename(h.path("exp3", NAME), h.path("exp3", NAME + ".bak"))
    time.sleep(.3)
    h.write("exp3/" + NAME + ".bak", h.points(1, 50), "ab")
    becomes(server, {"exp3": 6}, [3, 4, 4, 6, 6], "renamed, and longer")
    h.train("exp3/" + NAME + ".bak", 2)
    becomes(server, {"exp3": 2}, [3, 4, 4, 6, 6, 6], "replaced by a shorter one")
    with open(h.path("exp3", NAME + ".bak"), "rb") as f:
        whole = f.read()
    h.write("exp3/" + NAME + ".bak", whole[:journal.records(whole[:-1])[1]])
    becomes(server, {"exp3": 1}, [2, 3, 4, 4, 6, 6, 6], "cut")


def removed_for_good(server, h):
    """What `dptrack rm` took away stays away; new training in its folder is seen."""
    h.train("exp4/" + NAME, 6)
    becomes(server, {"exp3": 1, "exp4": 6}, [2, 3, 4, 4, 6, 6, 6], "to be removed")
    run = next(r["id"] for r in server.json("GET", "/api/v1/runs?limit=1000")[1]["runs"] if r["name"] == "exp4")
    lib.equal(server.request("DELETE", "/api/v1/runs/" + run)[0], 200, "DELETE")
    shutil.rmtree(h.path("exp4"))
    h.train("exp4/events.out.tfevents.1700000009.host.9.0", 3)
    becomes(server, {"exp3": 1, "exp4": 3}, [2, 3, 4, 4, 6, 6, 6], "trained after dptrack rm")


def while_stopped(folder):
    """What happened while no server ran: files have other names, a folder was trained into again."""
    h = Folder(os.path.join(folder, "stopped"))
    h.train("a/" + NAME, 4)
    h.train("b/" + NAME, 3)
    h.train("d/" + NAME, 7)
    server = lib.Server(h.root)
    becomes(server, {"a": 4, "b": 3, "d": 7}, [], "first start")
    server.stop()
    # a database may have the files of several folders: what nobody saw being removed stays
    kept, gone = ({"d": 7}, [3]) if lib.IN_DATABASE else ({}, [3, 7])
    os.rename(h.path("a", NAME), h.path("a", NAME + ".1"))
    h.write("a/" + NAME + ".1", h.points(1, 9), "ab")
    shutil.rmtree(h.path("b"))
    shutil.rmtree(h.path("d"))
    h.train("b/events.out.tfevents.1700000009.host.9.0", 2)
    server = lib.Server(h.root)
    becomes(server, {"a": 5, "b": 2, **kept}, gone, "second start")
    server.stop()
    shutil.move(h.path("a"), h.path("c"))
    server = lib.Server(h.root)
    becomes(server, {"c": 5, "b": 2, **kept}, gone, "third start")
    server.stop()


def dptrack(*args, code=0):
    out = subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=120, env=lib.environment_of(args))
    lib.equal(out.returncode, code, f"dptrack {' '.join(args)}: {out.stderr}")
    return out.stdout


def exported(folder):
    """Seven runs with files of ranks are seven runs after export and import; once more, and under other names, nothing new."""
    runs, events, again = (os.path.join(folder, n) for n in ("seven", "events", "again"))
    for i in range(7):
        r = lib.Recorder(runs, world_size=2)
        for step in range(1, 4):
            r.say(f"log {step} loss {step / 2}")
            r.say(f"rank 0 {step} phase/step {step}")
            if i % 2:
                r.say(f"rank 1 {step} phase/step {2 * step}")
        r.close()
    for line in dptrack("ls", "--logdir", runs, "--csv").splitlines()[1:]:
        dptrack("export", line.split(",")[0], "--logdir", runs, "--events", events)
    want = [(3, 3, 0)] * 4 + [(3, 3, 3)] * 3
    lib.equal(sorted(histories_of(events).values()), want, "the exported folder, served: points of run and ranks")
    for _ in range(2):
        dptrack("import", events, "--logdir", again)
        lib.equal(sorted(histories_of(again).values()), want, "the same, imported")
    first = next(os.path.join(d, f) for d, _, files in os.walk(events) for f in files if "tfevents" in f and "/rank-" not in d)
    os.rename(first, first + ".renamed")
    dptrack("import", events, "--logdir", again)
    lib.equal(sorted(histories_of(again).values()), want, "and once more, with a file under another name")


def histories_of(folder):
    """{id: numbers of points of the run, rank 0, rank 1} of a folder."""
    server = lib.Server(folder)
    found = {}
    for run in server.json("GET", "/api/v1/runs?limit=1000")[1]["runs"]:
        n = [0, 0, 0]
        for key in ("loss", "phase/step"):
            for rank in range(-1, 2):
                query = f"run={run['id']}&key={key}" + (f"&rank={rank}" if rank >= 0 else "")
                data = server.request("GET", "/api/v1/export/series.csv?" + query)[2].decode()
                n[rank + 1] += sum((line.split(",")[3] or "-1") == str(rank) for line in data.splitlines()[1:])
        found[run["id"]] = tuple(n)
    server.stop()
    return found


def killed(folder):
    """A journal whose writer was killed long ago, after 8 s: no server ran then."""
    runs = os.path.join(folder, "killed")
    r = lib.Recorder(runs)
    r.say("log 1 loss 1")
    time.sleep(1)
    r.process.kill()
    r.process.wait()
    path = next(os.path.join(d, f) for d, _, files in os.walk(runs) for f in files if "tfevents" in f or f.endswith(".journal"))
    with open(path, "rb") as f:
        payloads, _ = journal.records(f.read())
    now = time.time()
    moved = [b"\x09" + struct.pack("<d", now - 100 + 8 * i / (len(payloads) - 1)) + p[9:] for i, p in enumerate(payloads)]
    with open(path, "wb") as f:
        f.write(b"".join(map(wire.record, moved)))
    lib.check(",killed," in dptrack("ls", "--logdir", runs, "--csv"), "status by a command alone")
    for _ in range(2):
        server = lib.Server(runs)
        run = server.json("GET", "/api/v1/runs?limit=9")[1]["runs"][0]
        lib.equal(run["status"], "killed", "status")
        lib.check(abs(run["end_time"] - run["start_time"] - 8000) < 50, f"ended after 8 s: {run['end_time'] - run['start_time']} ms")
        server.stop()


def odd_times(folder):
    """A time after the file's last change is no sign of life (tensorboardX#205: milliseconds), nor does one before 1970 make a
    run start now; NaN as a time is the reason for what it leaves out."""
    logdir, now = os.path.join(folder, "times"), time.time()
    for name, times in (("ms", [now * 1000]), ("ahead", [now - 7300, now + 86400]), ("zero", [0.0]), ("minus", [-1.0]), ("nan", [now - 7300, float("nan")])):
        path = os.path.join(logdir, "e", name, NAME)
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as f:
            f.write(wire.record(b"\x09" + struct.pack("<d", times[0]) + b"\x1a\x0dbrain.Event:2"))
            for step, at in enumerate(times):
                f.write(wire.record(b"\x09" + struct.pack("<d", at) + b"\x10" + bytes([step]) + b"\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\0"))
        os.utime(path, (now - 7200, now - 7200))
    server = lib.Server(logdir)
    server.json("GET", "/api/v1/runs")
    runs, end = [], time.monotonic() + 20
    while len(runs) < 5 and time.monotonic() < end:
        runs = server.json("GET", "/api/v1/runs")[1]["runs"]
        time.sleep(.1)
    for r in runs:
        lib.equal(r["status"], "finished", f"{r['name']}: status")
        lib.check(now - 7400 < r["start_time"] / 1000 < now - 7100, f"{r['name']}: starts at {r['start_time']}")
        problems = str(server.json("GET", f"/api/v1/runs/{r['id']}")[1].get("problems"))
        lib.equal("wall time" in problems, r["name"] == "nan", f"{r['name']}: {problems}")
    lib.equal(len(runs), 5, "runs")
    lib.equal(server.stop(), 0, "exit code")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        with lib.fresh() as server:
            h = Folder(server.logdir)
            for part in (synced, retrained, renamed, removed_for_good):
                part(server, h)
        while_stopped(folder)
        exported(folder)
        killed(folder)
        odd_times(folder)
    lib.finish("event_files")


if __name__ == "__main__":
    main()
