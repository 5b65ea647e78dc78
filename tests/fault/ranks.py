# SPDX-License-Identifier: Apache-2.0
"""Ranks, launchers, wires and disks that fail while a job runs on two machines (network namespaces), 2 ranks each,
placed by our launcher or by another: every message names the right rank, with the collective, in time, and no process
remains.

    ranks.py [--only CAUSE]... [--long N [--results FILE] [--minutes M]]

--long: each cause N times, about a minute per round of all; the same command continues where the previous one stopped,
and each call ends with how often every cause was tested."""
import argparse
import os
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", *folder) for folder in (("train",), ("nodes",), ("bench", "parts"))]

import results
from helper import DPTRAIN, FAILED, FINISHED, LAUNCHER, Folder, alive, check, children, environment, failures, fast, finish, read_run, skip
from spaces import Spaces, has_transport

SILENCE = 4
ENDLESS = ["--synthetic", "--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--seq-len", 16, "--vocab-size", 64,
           "-b", 2, "--max-steps", 10 ** 9, "--print-freq", 20, "--workers", 0, "--heartbeat-timeout", SILENCE, *fast()]


def unwatched():
    """The environment, in which a sanitizer leaves a segmentation fault to its signal."""
    words = environment()
    return dict(words, ASAN_OPTIONS=":".join(filter(None, (words.get("ASAN_OPTIONS"), "handle_segv=0"))))


class Job:
    """A job on two machines, or (spaces None) one; its launchers' output goes to files."""

    def __init__(self, folder, spaces, port, *flags, come=2):
        self.folder, self.spaces, self.launchers, self.said = folder, spaces, [], []
        os.makedirs(folder, exist_ok=True)
        for i in range(come if spaces else 1):
            path = os.path.join(folder, "said%d" % i)
            meet = ["--nnodes", 2, "--node-rank", i, "--master-addr", spaces.address[0], "--master-port", port] if spaces else []
            words = [DPTRAIN, *ENDLESS, "--nproc-per-node", 2, "--runs-dir", os.path.join(folder, "runs"), *meet, *flags]
            with open(path, "w", encoding="utf-8") as out:
                self.launchers.append(subprocess.Popen(spaces.command(i, *words) if spaces else list(map(str, words)), env=unwatched(), stdout=out, stderr=out,
                                                       stdin=subprocess.DEVNULL))
            self.said.append(path)

    def words(self, i):
        with open(self.said[i], encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_for_steps(self):
        deadline = time.monotonic() + 100
        while "step 20/" not in self.words(0):
            if time.monotonic() > deadline or any(p.poll() is not None for p in self.launchers):
                return check(False, "the job runs: %s" % [self.words(i) for i in range(len(self.said))])
            time.sleep(0.05)
        self.ranks = [children(p.pid) for p in self.launchers]
        return check(all(len(r) == 2 for r in self.ranks), "the ranks are the launchers' only children: %s" % self.ranks)

    def ended(self, name, seconds, codes):
        deadline = time.monotonic() + seconds
        for i, p in enumerate(self.launchers):
            try:
                code = p.wait(max(0.1, deadline - time.monotonic()))
                check(code == codes[i], "%s: node %d: exit code %d: %s" % (name, i, code, self.words(i)))
            except subprocess.TimeoutExpired:
                check(False, "%s: node %d still runs after %g s: %s" % (name, i, seconds, self.words(i)))
        pids = [r for ranks in self.ranks for r in ranks]
        while any(alive(r) for r in pids) and time.monotonic() < deadline + 3:
            time.sleep(0.02)
        check(not any(alive(r) for r in pids), "%s: no rank remains" % name)
        self.kill()

    def says(self, name, i, *words):
        text = self.words(i)
        check(all(w in text for w in words), "%s: node %d says %s: %s" % (name, i, words, text))

    def status(self, name):
        status = read_run(os.path.join(self.folder, "runs"))["status"]
        check(status.get(LAUNCHER) == FAILED, "%s: the run has failed: %s" % (name, status))

    def kill(self):
        for p in self.launchers:
            p.kill()
            p.wait()


def signalled(number, name):
    def fault(job):
        os.kill(job.ranks[1][0], number)
        job.ended(name, 8, [1, 1])
        for i in range(2):
            job.says(name, i, "rank 2 (process %d) was ended by signal %d" % (job.ranks[1][0], number))
        job.says(name, 1, "last collectives of rank 2", "all-reduce of ", "bytes", "step ")
        job.status(name)
    return fault


def stopped(job):
    os.kill(job.ranks[1][1], signal.SIGSTOP)
    job.ended("SIGSTOP", SILENCE + 8, [1, 1])
    for i in range(2):
        job.says("SIGSTOP", i, "rank 3: no heartbeat for %d s" % SILENCE, "rank 2 waits in all-", "bytes")
    job.says("SIGSTOP", 1, "rank 3 (process %d) has sent no heartbeat for 3 s" % job.ranks[1][1])
    job.status("SIGSTOP")


def launcher_killed(job):
    job.launchers[1].kill()
    job.ended("launcher killed", 8, [1, -signal.SIGKILL])
    job.says("launcher killed", 0, "node 1 (10.77.0.2) is lost: its launcher ended")
    job.status("launcher killed")


def first_launcher_killed(job):
    job.launchers[0].kill()
    job.ended("node 0's launcher killed", 8, [-signal.SIGKILL, 1])
    job.says("node 0's launcher killed", 1, "node 0 (10.77.0.1) is lost: its launcher ended")


def paused(job):
    """A whole job that is paused for longer than the time limit has no fault; then it is asked to stop."""
    all_pids = [p.pid for p in job.launchers] + [r for ranks in job.ranks for r in ranks]
    for pid in all_pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(SILENCE + 1)
    for pid in all_pids:
        os.kill(pid, signal.SIGCONT)
    time.sleep(1)
    check(all(p.poll() is None for p in job.launchers), "paused: the job continues: %s" % [job.words(i) for i in range(2)])
    job.launchers[1].send_signal(signal.SIGTERM)
    job.ended("paused, then SIGTERM on one machine", 20, [75, 75])


def unplugged(job):
    job.spaces.link(1, "down")
    job.ended("link down", SILENCE + 10, [1, 1])
    job.spaces.link(1, "up")
    job.spaces.wait_up()
    job.says("link down", 0, "node 1 (10.77.0.2)", "for %d s" % SILENCE)
    job.says("link down", 1, "node 0 (10.77.0.1)", "for %d s" % SILENCE)
    for i in range(2):
        check(any("silent" in line and "waits in all-" in line and " bytes" in line for line in job.words(i).splitlines()),
              "link down: node %d names the collective that waits: %s" % (i, job.words(i)))
    job.status("link down")


def restarted(folder, spaces):
    """A rank is killed once: the run continues from its last checkpoint and ends with the same bits as an undisturbed
    one."""
    flags = ["--deterministic", "--max-steps", 300, "--save-steps", 10, "--save-total-limit", 2]
    job = Job(folder + "-undisturbed", spaces, 29720, *flags)
    if job.wait_for_steps():
        job.ended("undisturbed", 300, [0, 0])
    whole = read_run(os.path.join(job.folder, "runs"))["series"]["train/loss", -1]
    job = Job(folder, spaces, 29721, *flags, "--max-restarts", 1)
    if job.wait_for_steps():
        os.kill(job.ranks[1][0], signal.SIGKILL)
        job.ended("restarted", 300, [0, 0])
        for i in range(2):
            job.says("restarted", i, "rank 2 (process %d) was ended by signal 9" % job.ranks[1][0], "restarting the ranks (1 of 1)")
        job.says("restarted", 0, "checkpoint", "step")
        run = read_run(os.path.join(job.folder, "runs"))
        check(run["status"].get(LAUNCHER) == FINISHED, "restarted: the run is finished: %s" % run["status"])
        check(len(whole) == 300 and run["series"]["train/loss", -1] == whole, "restarted: the losses have the bits of an undisturbed run")
    job.kill()


def shrunk(folder, spaces):
    """A machine is lost for good: the job continues on the other one, from its last checkpoint, with the same global
    batch."""
    flags = ["--nnodes", "1:2", "--backend", "ref", "--precision", "fp64", "--max-steps", 300, "--save-steps", 10, "--save-total-limit", 2]
    job = Job(folder + "-undisturbed", spaces, 29723, *flags)
    if job.wait_for_steps():
        job.ended("undisturbed", 300, [0, 0])
    whole = read_run(os.path.join(job.folder, "runs"))["series"]["train/loss", -1]
    job = Job(folder, spaces, 29724, *flags, "--max-restarts", 1)
    if job.wait_for_steps():
        job.launchers[1].kill()
        job.ended("shrunk", 300, [0, -signal.SIGKILL])
        job.says("shrunk", 0, "node 1 (10.77.0.2) is lost: its launcher ended", "restarting the ranks (1 of 1) on 1 of 2 machines", "2 ranks of 1 thread, global batch 8")
        run = read_run(os.path.join(job.folder, "runs"))
        check(run["status"].get(LAUNCHER) == FINISHED, "shrunk: the run is finished: %s" % run["status"])
        got = run["series"]["train/loss", -1]
        check(len(whole) == 300 and sorted(got) == sorted(whole) and all(abs(got[s] - whole[s]) <= 1e-9 for s in whole),
              "shrunk: the losses are those of an undisturbed run")
    job.kill()
    job = Job(folder + "-fewer", spaces, 29726, *flags, "--rdzv-timeout", 1, come=1)
    if job.wait_for_steps():
        job.ended("started with fewer", 300, [0])
        job.says("started with fewer", 0, "1 of 2 machines arrived within 1 s", "2 ranks of 1 thread, global batch 8")
        got = read_run(os.path.join(job.folder, "runs"))["series"]["train/loss", -1]
        check(sorted(got) == sorted(whole) and all(abs(got[s] - whole[s]) <= 1e-9 for s in whole), "started with fewer: the losses are those of all machines")
    job.kill()
    job = Job(folder + "-enough", spaces, 29725, *flags[2:], "--max-restarts", 1)
    if job.wait_for_steps():
        job.launchers[1].kill()
        job.ended("both are needed", 20, [1, -signal.SIGKILL])
    job.kill()


def alone(folder, _=None):
    """One machine: a stopped rank is named there too."""
    job = Job(folder, None, 0)
    if job.wait_for_steps():
        os.kill(job.ranks[0][1], signal.SIGSTOP)
        job.ended("SIGSTOP, one machine", SILENCE + 8, [1])
        job.says("SIGSTOP, one machine", 0, "rank 1: no heartbeat for %d s" % SILENCE, "rank 0 waits in all-")
        job.status("SIGSTOP, one machine")
    job.kill()


class Small:
    """A disk of this many MB mounted at the folder."""

    def __init__(self, folder, size):
        self.folder, self.size = folder, size
        os.makedirs(folder)

    def __enter__(self):
        p = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % self.size, "none", self.folder], stderr=subprocess.PIPE, universal_newlines=True)
        self.mounted = not p.returncode
        if not self.mounted:
            print("disk full: skipped, mounting is not permitted: %s" % p.stderr.strip())
        return self.mounted

    def __exit__(self, *unused):
        if self.mounted:
            subprocess.run(["umount", "-l", self.folder], stderr=subprocess.DEVNULL)


def wait_for(found, seconds):
    deadline = time.monotonic() + seconds
    while not found() and time.monotonic() < deadline:
        time.sleep(0.05)
    return found()


def fill(f):
    """Writes until the disk is full."""
    try:
        while f.write(bytes(4096)):
            pass
    except OSError:
        pass


def disk_full(folder, spaces):
    """Shards are sent to rank 0, which can no longer write them: reported once with the file, no rank waits, and
    checkpoints are written again once there is space."""
    disk = os.path.join(folder, "runs")
    job = None
    with Small(disk, 3) as mounted:
        if not mounted:
            return
        job = Job(folder, spaces, 29722, "--strategy", "fsdp", "--save-steps", 5, "--save-total-limit", 1)
        if job.wait_for_steps():
            with open(os.path.join(disk, "filler"), "wb", buffering=0) as f:
                # repeatedly, because a completed checkpoint frees space when it replaces the older one
                said = wait_for(lambda: fill(f) or "training continues" in job.words(0), 8)
            check(said, "disk full: reported within 8 s: %s" % job.words(0))
            job.says("disk full", 0, "No space left on device", "checkpoints")
            steps = job.words(0).count("step ")
            check(wait_for(lambda: job.words(0).count("step ") > steps + 3, 20), "disk full: training continues: %s" % job.words(0))
            check(job.words(0).count("training continues") == 1, "disk full: reported once: %s" % job.words(0))
            os.unlink(os.path.join(disk, "filler"))
            job.launchers[1].send_signal(signal.SIGTERM)
            job.ended("disk full", 20, [75, 75])
            check(any("optimizer.safetensors" in files for _, _, files in os.walk(disk)), "disk full: a checkpoint once there is space: %s" % job.words(0))
        job.kill()


class Placed:
    """Four ranks placed by another launcher, with torchrun's variables; no launcher watches them."""

    def __init__(self, folder, spaces, missing, *flags):
        seat = lambda i, k: dict(unwatched(), RANK=str(2 * i + k), WORLD_SIZE="4", LOCAL_RANK=str(k), LOCAL_WORLD_SIZE="2", MASTER_ADDR=spaces.address[0],
                                 MASTER_PORT="29730", TORCHELASTIC_RUN_ID=folder)
        self.ranks = {2 * i + k: spaces.start(i, *ENDLESS, "--runs-dir", folder, *flags, env=seat(i, k)) for i in range(2) for k in range(2) if 2 * i + k != missing}

    def ended(self, name, victim, seconds, words):
        """All except the victim end in time with one line, and at least one of them names the cause."""
        start_s, named = time.monotonic(), []
        for r, p in self.ranks.items():
            if r == victim:
                continue
            try:
                said = p.communicate(timeout=max(0.1, start_s + seconds - time.monotonic()))[1]
                check(p.returncode == 1 and sum("error" in line for line in said.splitlines()) == 1, "%s: rank %d: exit %d: %s" % (name, r, p.returncode, said))
                named.append(said)
            except subprocess.TimeoutExpired:
                check(False, "%s: rank %d still runs after %g s" % (name, r, seconds))
        check(any(w in said for w in words for said in named), "%s: one of the ranks prints %s: %s" % (name, words, named))
        for p in self.ranks.values():
            p.kill()
            p.communicate()


def placed(folder, spaces):
    """Ranks that wait for the failed one name it; the others report that the job ended."""
    for number, words in ((signal.SIGKILL, ["rank 2 died", "connection to rank 2 broke"]), (signal.SIGSEGV, ["rank 2 died", "connection to rank 2 broke"]),
                          (signal.SIGSTOP, ["rank 2 did not arrive at "])):
        job = Placed("%s-%d" % (folder, number), spaces, None, "--ddp-timeout", 2)
        run = "%s-%d/default" % (folder, number)
        steps = lambda: read_run(os.path.dirname(run))["series"].get(("train/loss", -1)) if os.path.exists(run) and os.listdir(run) else None
        if check(wait_for(lambda: steps() and len(steps()) > 20, 60), "placed ranks: the job runs"):
            os.kill(job.ranks[2].pid, number)
        job.ended("placed, %s" % number.name, 2, 8, words)
    job = Placed(folder + "-none", spaces, 0, "--rdzv-timeout", 2)
    job.ended("placed, rank 0 never comes", 0, 8, ["rank 0 did not start within 2 s", "rank 0 did not answer within 2 s"])
    job = Placed(folder + "-first", spaces, 2, "--rdzv-timeout", 2)
    job.ended("placed, rank 2 never comes", 2, 8, ["rank 2 did not start within 2 s"])


def at_work(port, fault):
    """A cause: the fault is applied to a job that runs on both machines."""
    def cause(folder, spaces):
        job = Job(folder, spaces, port)
        if job.wait_for_steps():
            fault(job)
        job.kill()
    return cause


CAUSES = {"SIGSTOP, one machine": alone, "restarted": restarted, "on half of the machines": shrunk, "disk full": disk_full, "placed by another": placed,
          "SIGKILL": at_work(29700, signalled(signal.SIGKILL, "SIGKILL")), "SIGSEGV": at_work(29701, signalled(signal.SIGSEGV, "SIGSEGV")),
          "SIGSTOP": at_work(29702, stopped), "launcher killed": at_work(29703, launcher_killed),
          "first launcher killed": at_work(29704, first_launcher_killed), "paused": at_work(29705, paused), "link down": at_work(29706, unplugged)}


def once(cause, spaces):
    """Returns what failed."""
    before = len(failures)
    with Folder() as tmp:
        cause(os.path.join(tmp, "job"), spaces)
    return failures[before:]


def seen(rows):
    """Returns (how often, in how many of them something failed) by cause."""
    each = {name: [row for (cause, _), row in rows.items() if cause == name] for name in CAUSES}
    return {name: (len(found), sum(bool(row) for row in found)) for name, found in each.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", action="append", choices=CAUSES)
    p.add_argument("--long", type=int, default=1, metavar="N")
    results.add_arguments(p)
    o = p.parse_args()
    if not has_transport("ucx"):
        once(alone, None)
        skip("the ucx transport is not built (Debian: libucx-dev)")
    kept = results.Results(o.results, o.minutes, lambda row: "; ".join(row) or "as promised")
    turns = {"%s, %d" % (name, k + 1): (name, k) for k in range(o.long) for name in o.only or CAUSES}
    with Spaces() as spaces:
        rows = {turns[key]: row for key, row in kept.each(turns, lambda key: once(CAUSES[turns[key][0]], spaces))}
    failures.extend(f for row in rows.values() for f in row if f not in failures)
    if o.long > 1:
        print("; ".join("%s %d of %d%s" % (name, n, o.long, ", %d failed" % bad if bad else "") for name, (n, bad) in seen(rows).items() if n))
    finish("ranks")


main()
