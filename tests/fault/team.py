# SPDX-License-Identifier: Apache-2.0
"""Three processes on one PostgreSQL, clients by journal, v1 with and without Idempotency-Key and MLflow, each through
any process, while something fails: what was acknowledged is stored once and completely, and every new run is reported
to clients that follow the changes.

    tests/fault/team.py                      a process killed, all of PostgreSQL killed, once each (./check)
    tests/fault/team.py --rounds 20          20 rounds of every fault, and how long other clients and all have to wait
    tests/fault/team.py --full               200 rounds
    tests/fault/team.py --rounds 20 --results F --minutes 9
                                             runs the rounds missing in F, and starts none after M minutes; exits with 3
                                             while rounds are missing
    tests/fault/team.py --only cut_network   one fault
    tests/fault/team.py --hooks              removes each mechanism that keeps the guarantees: each must be detected
    tests/fault/team.py --hook log-by-number one of them"""
import argparse
import json
import os
import sys
sys.dont_write_bytecode = True
import tempfile
import threading
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "team"))
import lib
from lib import check
import clients
import cluster
import faults

KINDS = (clients.Keyed, clients.Keyed, clients.Plain, clients.Plain, clients.Mlflow, clients.Mlflow, clients.Journal, clients.Journal,
         clients.Maker)
CALM_S = 0.5
AFTER_S = 1.0
AGAIN_S = 10  # time limit until all clients write again


def one_round(site, fault):
    """Returns acknowledged batches, the longest wait of unaffected clients, and seconds until all wrote again."""
    stop = threading.Event()
    probes = [clients.Probe(site.team, i, stop) for i in range(3)]
    kinds = [kind(site.team, i, stop) for i, kind in enumerate(KINDS + ((clients.Filler,) if site.filled else ()))]
    all_clients = probes + kinds
    for c in all_clients:
        c.start()
    time.sleep(CALM_S)
    began_s = time.monotonic()
    victims = fault(site)
    before, ended_s = [c.done for c in all_clients], time.monotonic()
    check(lib.until(100, lambda: all(c.done > n or not c.is_alive() for c, n in zip(all_clients, before))),
          f"{fault.__name__}: no more replies for {[c.name for c, n in zip(all_clients, before) if c.done <= n]}")
    again_s = time.monotonic() - ended_s
    time.sleep(AFTER_S)
    stop.set()
    for c in all_clients:
        c.join(100)
    for c in all_clients:
        c.judge()
    others = [p.stall_s(began_s) for p in probes if p.team[0] not in victims]
    return sum(c.done for c in all_clients), max(others, default=0), again_s


class Results:
    """Completed rounds, as lines of JSON in a file if one is named; and the time limit for new rounds."""

    def __init__(self, path=None, minutes=None):
        self.path, self.end_s = path, time.monotonic() + 60 * minutes if minutes else None
        self.rounds = {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    name, *seen, failed = json.loads(line)
                    check(not failed, f"{name}, an earlier round: {failed}")
                    self.of(name).append(seen)

    def of(self, name):
        return self.rounds.setdefault(name, [])

    def add(self, name, seen, failed):
        self.of(name).append(seen)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as f:
                f.write(json.dumps([name, *seen, failed]) + "\n")

    def late(self):
        return self.end_s is not None and time.monotonic() >= self.end_s


def rounds_of(name, site, rounds, limits, results):
    """Prints one line about the rounds; limits: compare the waits with the guarantees, on a machine with spare
    capacity."""
    fault, _, stall_limit_s = faults.FAULTS[name]
    seen = results.of(name)
    while len(seen) < rounds and not results.late():
        known = len(lib.failures)
        results.add(name, one_round(site, fault), lib.failures[known:])
    if len(seen) < rounds:
        print(f"{name}: {len(seen)} of {rounds} rounds", flush=True)
        return
    batches, stall_s, again_s = sum(s[0] for s in seen), max(s[1] for s in seen), max(s[2] for s in seen)
    others = f", others wait at most {stall_s:.1f} s" if stall_limit_s else ""
    print(f"{name}: {rounds} rounds, {batches} batches acknowledged{others}, all write again after at most {again_s:.1f} s", flush=True)
    if limits:
        check(not stall_limit_s or stall_s <= stall_limit_s, f"{name}: others wait {stall_s:.1f} s")
        check(again_s <= AGAIN_S, f"{name}: {again_s:.1f} s until all write again")


def run(names, rounds, limits, results=None, **options):
    """Faults of one kind of site share one site. Returns whether all rounds are complete."""
    results = results or Results()
    for kind in dict.fromkeys(faults.FAULTS[n][1] for n in names):
        if results.late():
            break
        with tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
            site = kind(lib.Process, folder, **options)
            try:
                for n in names:
                    if faults.FAULTS[n][1] is kind:
                        rounds_of(n, site, rounds, limits, results)
            finally:
                site.close()
    return all(len(results.of(n)) >= rounds for n in names)


def hooked(hooks, rounds):
    """Each hook makes its fault fail with the expected message."""
    missed = []
    for hook in hooks:
        name, options, want = faults.HOOKS[hook]
        for n in range(rounds):
            lib.failures.clear()
            run([name], 1, False, **options)
            if any(want in f for f in lib.failures):
                break
        else:
            missed.append(f"{hook} was not detected")
        print(f"hook {hook}: {len(lib.failures)} failures in round {n + 1}", flush=True)
    lib.failures[:] = missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", choices=faults.FAULTS, action="append")
    parser.add_argument("--results", metavar="F")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--hooks", action="store_true")
    parser.add_argument("--hook", choices=faults.HOOKS, action="append")
    args = parser.parse_args()
    why = cluster.reason() or (None if os.path.exists(clients.RECORD) else f"{clients.RECORD} is not built")
    if why:
        print(f"team: {why}")
        sys.exit(77)
    rounds = 200 if args.full else args.rounds
    if args.hooks or args.hook:
        hooked(args.hook or list(faults.HOOKS), rounds or 10)
    else:
        names = args.only or (list(faults.FAULTS) if rounds else ["kill_process", "kill_database"])
        whole = run(names, rounds or 1, rounds is not None, Results(args.results, args.minutes))
        if not whole and not lib.failures:
            print("team: continue with the same --results")
            sys.exit(3)
    lib.finish("team")


main()
