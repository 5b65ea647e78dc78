# SPDX-License-Identifier: Apache-2.0
"""The audit log against the store: 1,000 changes of several tokens, the server (in a database: two) killed with SIGKILL in between. Then every acknowledged
change has its entry, in order; what the entries say, replayed from the first to the last, is what the store holds; and the chain,
computed here, has no gap. At last every kind of damage is found: a flipped byte, a removed, added or reordered entry, a cut end.

    tests/fault/audit.py            1,000 changes (make check)
    tests/fault/audit.py 20000      the long version"""
import sys
sys.dont_write_bytecode = True
import hashlib
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

CLIENTS = 3
HASHED = ["seq", "time", "via", "author", "action", "object", "id", "name", "experiment", "detail"]
TEXTS = HASHED[2:]


def hash_of(before, entry):
    fields = [str(entry[k]).encode() for k in HASHED]
    return hashlib.sha256(before.encode() + b"".join(b"%d:%s" % (len(f), f) for f in fields)).hexdigest()


def broken_at(entries, head):
    """The number of the first entry that breaks the chain; None: it is whole."""
    before = "0" * 64
    for number, entry in enumerate(entries, 1):
        if entry["seq"] != number or entry["hash"] != hash_of(before, entry):
            return number
        before = entry["hash"]
    return None if head == {"seq": len(entries), "hash": before} else len(entries) + 1


def whole_log(server, headers):
    entries, token = [], None
    while token or not entries:
        status, page = server.json("GET", "/api/v1/audit?order=asc&limit=1000" + (f"&page_token={token}" if token else ""), headers=headers)
        lib.equal(status, 200, f"the log: {page}")
        entries += page["entries"]
        token = page["next_page_token"]
        if not page["entries"]:
            break
    return entries, page["head"]


class Client:
    """Changes runs of its own, each with names that no other has. sent: (action, name, acknowledged) in order."""

    def __init__(self, name, token, dice):
        self.name, self.dice, self.sent, self.runs, self.drawn = name, dice, [], {}, 0
        self.headers = {"Authorization": f"Bearer {token}"}

    def fresh_name(self):
        self.drawn += 1
        return f"{self.name}-{self.drawn}" + (" \u00e4" if self.drawn % 5 else ", 3:x")

    def change(self, run):
        """Action, name in the entry, method, target and body of a random change."""
        at = f"/api/v1/runs/{run}"
        kind = self.dice.choice(["rename", "tag", "delete", "restore", "move", "edit", "status"])
        name = self.fresh_name() if kind == "rename" else self.runs[run]
        asked = {"rename": ("PATCH", at, {"name": name}), "tag": ("PUT", at + f"/tags/k{self.dice.randrange(5)}", {"value": "v"}),
                 "delete": ("DELETE", at, None), "restore": ("POST", at + "/restore", {}), "edit": ("PATCH", at, {"notes": "n"}),
                 "move": ("PATCH", at, {"experiment": f"e{self.dice.randrange(4)}"}), "status": ("PATCH", at, {"status": "finished"})}
        return kind, name, *asked[kind]

    def work(self, server, stop):
        connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
        while not stop.is_set():
            run = self.dice.choice(list(self.runs)) if self.runs and self.dice.random() < 0.8 else None
            if run:
                kind, name, *request = self.change(run)
            else:
                kind, name = "create", self.fresh_name()
                request = ["POST", "/api/v1/runs", {"experiment": f"e{self.dice.randrange(4)}", "name": name}]
            self.sent.append([kind, name, False])
            try:
                status, _, data = server.request(*request, self.headers, connection)
            except (OSError, http.client.HTTPException):
                self.runs.pop(run, None)  # its name is unknown now
                return
            if status in (404, 410):
                del self.runs[run]  # removed by gc, before the change or before the reply
                continue
            if status >= 400:
                self.sent.pop()  # refused: no entry
                continue
            self.sent[-1][2] = True
            self.runs[json.loads(data)["id"]] = name


def collect(server, headers, stop):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
    while not stop.wait(0.05):
        try:
            server.request("POST", "/api/v1/gc", {}, headers, connection)
        except (OSError, http.client.HTTPException):
            return


def one_round(runs, clients, admin, dice):
    servers = [lib.Server(runs, wait=60) for _ in range(2 if lib.IN_DATABASE else 1)]
    stop = threading.Event()
    threads = [threading.Thread(target=c.work, args=(servers[i % len(servers)], stop)) for i, c in enumerate(clients)]
    threads.append(threading.Thread(target=collect, args=(servers[-1], admin, stop)))
    for t in threads:
        t.start()
    time.sleep(dice.uniform(0.1, 0.3))
    for server in servers:
        server.process.send_signal(signal.SIGKILL)
    stop.set()
    for server in servers:
        server.process.wait(30)
    for t in threads:
        t.join(60)


def compare_sent(client, entries):
    """Acknowledged changes are entries, in order; others may be. What may have changed nothing has none, as a restore of a run
    that is there."""
    mine = [(e["action"], e["name"]) for e in entries if e["author"] == client.name and e["object"] == "run"]
    at = 0
    for kind, name, acked in client.sent:
        if at < len(mine) and mine[at] == (kind, name):
            at += 1
        elif acked and kind not in ("restore", "delete", "move", "status"):
            lib.check(False, f"{client.name}: no entry for {kind} {name!r}; there: {mine[at:at + 1]}")
            return
    lib.equal(mine[at:], [], f"{client.name}: entries without a change")


def replay(entries):
    """What the entries say of each run, and of each experiment."""
    runs, experiments = {}, {}
    for e in entries:
        if e["object"] == "experiment" and e["action"] == "create":
            experiments[e["id"]] = e["name"]
        if e["object"] != "run":
            continue
        if e["action"] == "create":
            runs[e["id"]] = {"deleted": False, "tags": set(), "notes": ""}
        if e["action"] == "purge":
            del runs[e["id"]]
            continue
        run = runs[e["id"]]
        run.update(name=e["name"], experiment=e["experiment"])
        if e["action"] in ("delete", "restore"):
            lib.check(run["deleted"] == (e["action"] == "restore"), f"entry {e['seq']} changes nothing")
            run["deleted"] = e["action"] == "delete"
        if e["action"] == "tag":
            run["tags"].add(e["detail"])
        if e["action"] == "edit":
            run["notes"] = "n"
    return runs, experiments


def compare_store(server, runs, entries, headers):
    told, experiments = replay(entries)
    for id, want in told.items():
        status, got = server.json("GET", f"/api/v1/runs/{id}", headers=headers)
        lib.equal(status, 200, f"run {id}")
        lib.equal({"deleted": got.get("deleted", False), "tags": {t for t in got["tags"] if t[0] == "k"}, "notes": got["notes"], "name": got["name"],
                   "experiment": got["experiment"]}, want, f"run {id} and its entries")
    lib.equal(lib.number(runs, "SELECT count(*) FROM run"), len(told), "runs in the store")
    lib.equal(lib.number(runs, "SELECT count(*) FROM experiment WHERE id <> 0"), len(experiments), "experiments in the store")
    for id, name in experiments.items():
        lib.equal(lib.text(runs, f"SELECT name FROM experiment WHERE id = {int(id)}"), name, f"experiment {id}")


def check(*args):
    r = subprocess.run([lib.PROGRAM, "audit", "--check", *args], capture_output=True, text=True, timeout=120)
    return r.returncode, r.stdout + r.stderr


def damage_file(folder, entries, dice):
    """A flipped byte of an exported file is found, as by the check here."""
    path = os.path.join(folder, "audit.jsonl")
    lines = [json.dumps(e, ensure_ascii=False, separators=(",", ":")).encode() for e in entries]

    def written(some):
        with open(path, "wb") as f:
            f.write(b"".join(line + b"\n" for line in some))
        return path

    code, said = check(written(lines))
    lib.check(code == 0 and entries[-1]["hash"] in said, f"a file is checked: {said}")
    for _ in range(40):
        n = dice.randrange(len(lines))
        at = dice.randrange(len(lines[n]))
        bad = lines[n][:at] + bytes([lines[n][at] ^ 1 << dice.randrange(7)]) + lines[n][at + 1:]
        code, said = check(written(lines[:n] + [bad] + lines[n + 1:]))
        lib.check(code in (1, 2) and said.count("\n") == 1, f"byte {at} of line {n + 1} flipped, {bad!r}: {code} {said}")
    renamed = lines[0].replace(b'"detail"', b'"detaim"')  # a missing member is not an empty one
    for what, some in {"with another member": [renamed] + lines[1:], "removed": lines[:4] + lines[5:], "added": lines[:4] + lines[3:], "swapped": lines[:4] + [lines[5], lines[4]] + lines[6:],
                       "not JSON": lines + [b"x"]}.items():
        code, said = check(written(some))
        lib.check(code == 1 and said.count("\n") == 1, f"an entry {what}: {said}")
    code, said = check(written(lines[7:]), "--since", entries[6]["hash"])
    lib.check(code == 0 and f"entries: {len(lines) - 7}," in said, f"the rest of a log: {said}")
    lib.check(check(path)[0] == 2 and check(path, "--since", entries[5]["hash"])[0] == 1, "a rest without the hash before it")


def damage_store(runs, entries, dice):
    """Each change of a row in the database file is found, and the entry is named."""
    def damaged(*statements):
        db = sqlite3.connect(os.path.join(runs, "dptrack.db"), isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        for s in statements:
            db.execute(*s)
        db.execute("COMMIT")
        db.close()

    def found(what, said_too, *args):
        code, said = check("--logdir", runs, *args)
        lib.check(code == 1 and said_too in said and said.count("\n") == 1, f"{what}: {code} {said}")

    for k in TEXTS + ["time_ms", "hash"]:
        e = dice.choice(entries)
        old = e["time" if k == "time_ms" else k]
        raw = str(old).encode() or b"x"
        at = dice.randrange(len(raw))
        new = old + 1 if k == "time_ms" else (raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1:]).decode("utf-8", "replace")
        damaged((f"UPDATE audit SET {k} = ? WHERE seq = ?", (new, e["seq"])))
        found(f"{k} of entry {e['seq']}, {old!r} to {new!r}", f"entry {e['seq']}" if k != "hash" else "changed")
        damaged((f"UPDATE audit SET {k} = ? WHERE seq = ?", (old, e["seq"])))
    last, row = len(entries), "INSERT INTO audit SELECT * FROM saved"
    for gone, said in ((1, "missing: 1 to 1"), (last // 2, "missing"), (last, f"missing: {last} to {last} at the end")):
        damaged(("CREATE TABLE saved AS SELECT * FROM audit WHERE seq = ?", (gone,)), ("DELETE FROM audit WHERE seq = ?", (gone,)))
        found(f"entry {gone} removed", said)
        damaged((row,), ("DROP TABLE saved",))
    damaged(("UPDATE audit_head SET seq = seq - 1",))
    found("another end", "another end was recorded")
    damaged(("UPDATE audit_head SET seq = seq + 1",))
    lib.equal(check("--logdir", runs, "--since", entries[3]["hash"])[0], 0, "a hash that was noted before")
    # someone with the database cuts the end off and writes a head that fits
    damaged(("DELETE FROM audit WHERE seq = ?", (last,)), ("UPDATE audit_head SET seq = ?, hash = ?", (last - 1, entries[-2]["hash"])))
    lib.equal(check("--logdir", runs)[0], 0, "a chain that was cut at both places is whole")
    found("but not with the hash that was noted", "no entry has the hash", "--since", entries[-1]["hash"])


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    dice = random.Random(3)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs, kills = os.path.join(folder, "runs"), 0
        server = lib.Server(runs, wait=60)
        clients, owner = [], {"Authorization": f"Bearer {server.owner_token()}"}
        for name in ["admin"] + [f"person{i}" for i in range(CLIENTS)]:
            status, made = server.json("POST", "/api/v1/tokens", {"name": name, "scope": "admin" if name == "admin" else "write"}, headers=owner)
            lib.equal(status, 201, f"a token: {made}")
            clients.append(Client(name, made["token"], random.Random(name)))
        admin = clients.pop(0).headers
        lib.equal(server.stop(), 0, "exit code")
        while sum(acked for c in clients for _, _, acked in c.sent) < wanted:
            one_round(runs, clients, admin, dice)
            kills += 1
        server = lib.Server(runs, wait=60)
        entries, head = whole_log(server, admin)
        lib.equal(broken_at(entries, head), None, "the chain")
        lib.check(all(e["time"] > 1.6e12 for e in entries), "times")
        for client in clients:
            compare_sent(client, entries)
        compare_store(server, runs, entries, admin)
        if not lib.IN_DATABASE:
            lib.check(any(e["action"] == "purge" and e["author"] == "admin" for e in entries), "gc has its author")
        lib.equal(server.stop(), 0, "exit code")
        damage_file(folder, entries, dice)
        if not lib.IN_DATABASE:
            damage_store(runs, entries, dice)
        acked = sum(acked for c in clients for _, _, acked in c.sent)
        print(f"{kills} kills, {acked} changes acknowledged, {len(entries)} entries")
    lib.finish("audit")


main()
