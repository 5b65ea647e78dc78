#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--cache-shared, trainings of two ranks on each of two or three nodes: the losses have the bits of a run from disk, also
when a rank is killed and the job starts again, when a node is lost for good, when ctrl-C ends the job and it resumes, and
when the disk of a node is full. The run records what came from the store, the other node and its own cache."""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "train"), os.path.join(HERE, "..", "data")]

from helper import DPTRAIN, alive, check, children, environment, finish, read_run
from jobs import ended
from shared_jobs import KEY, SAMPLES, launch, stored

TRAIN = ["--model", "resnet20", "--image-size", 16, "-b", 4, "--deterministic", "--val-split", 0, "--shuffle", "window", "--shuffle-window", 100,
         "--workers", 1, "--max-steps", 30, "--save-steps", 5, "--save-total-limit", 2, "--run-name", "shared"]
IN_FLIGHT = 16  # blocks that a rank requests at a time
OWN_MODE = 0o600  # of the file of a block that a node fetched from the store; other modes: copies


def losses(runs):
    return read_run(runs)["series"]["train/loss", -1]


def wait_for_steps(runs, job, steps):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and all(p.poll() is None for p in job):
        try:
            if len(losses(runs)) >= steps:
                return True
        except (OSError, KeyError, IndexError, ValueError):
            pass
        time.sleep(0.05)
    return check(False, "the job makes %d steps" % steps)


def killed(folder, store, runs, remote, want, n_blocks):
    """A rank is killed: what it was fetching is fetched again."""
    job = launch(folder, *remote, "--runs-dir", runs, "--max-restarts", 1)
    if not wait_for_steps(runs, job, 12):
        return
    rank = children(job[1].pid)[0]
    os.kill(rank, signal.SIGKILL)
    codes, texts = ended("killed", job)
    check(codes == [0, 0] and "restarting the ranks (1 of 1)" in texts[0], "killed: exit codes %s: %s" % (codes, texts))
    check(not alive(rank) and losses(runs) == want, "killed: the losses have the bits of the run from disk")
    blocks = store.blocks()
    check(len(set(blocks)) == n_blocks and len(blocks) <= n_blocks + IN_FLIGHT, "killed: %d requests for %d of %d blocks" % (len(blocks), len(set(blocks)), n_blocks))


def own_blocks(folder):
    """Counts the blocks in a node's cache that the node fetched from the store."""
    return sum(os.stat(os.path.join(d, f)).st_mode & 0o777 == OWN_MODE for d, _, files in os.walk(folder) if len(os.path.basename(d)) == 2 for f in files)


def lost(folder, store, runs, remote, want, n_blocks):
    """A node is killed for good: the other one continues alone, and fetches its blocks."""
    job = launch(folder, *remote, "--runs-dir", runs, "--max-restarts", 1, nnodes="1:2")
    if not wait_for_steps(runs, job, 12):
        return
    job[1].kill()
    codes, texts = ended("lost", job)
    check(codes == [0, -signal.SIGKILL] and "on 1 of 2 machines" in texts[0], "lost: exit codes %s: %s" % (codes, texts))
    check(losses(runs) == want, "lost: the losses have the bits of the run from disk")
    blocks = store.blocks()
    check(len(set(blocks)) == n_blocks < len(blocks) <= 2 * n_blocks, "lost: %d requests for %d of %d blocks" % (len(blocks), len(set(blocks)), n_blocks))


def lost_of_three(folder, store, n_blocks):
    """One of three nodes is killed for good, after the first epoch: the two others continue, and fetch only blocks that it
    owned."""
    runs, flags = folder + "-runs", [*TRAIN, "--global-batch-size", 48]
    want = from_disk(store, folder + "-disk", *flags)
    job = launch(folder, *flags, "--cache-shared", "--data-path", store.url + "/train.json", "--runs-dir", runs, "--max-restarts", 1, nodes=3, nnodes="2:3")
    if not wait_for_steps(runs, job, SAMPLES // 48 + 2):
        return
    job[1].kill()
    codes, texts = ended("one of three", job)
    check(codes == [0, -signal.SIGKILL, 0] and "on 2 of 3 machines" in texts[0], "one of three: exit codes %s: %s" % (codes, texts))
    check(want and losses(runs) == want, "one of three: the losses have the bits of the run from disk")
    blocks, owned = store.blocks(), own_blocks(os.path.join(folder, "cache1"))
    check(len(set(blocks)) == n_blocks, "one of three: %d of %d blocks" % (len(set(blocks)), n_blocks))
    check(0 < owned < n_blocks and len(blocks) - n_blocks <= owned, "one of three: %d requests for %d blocks; it owned %d" % (len(blocks), n_blocks, owned))


def interrupted(folder, store, runs, remote, want):
    job = launch(folder, *remote, "--runs-dir", runs)
    if not wait_for_steps(runs, job, 5):
        return
    job[0].send_signal(signal.SIGINT)
    codes, texts = ended("ctrl-C", job)
    check(codes == [130, 130], "ctrl-C: exit codes %s: %s" % (codes, texts))
    codes, texts = ended("resumed", launch(folder, *remote, "--runs-dir", runs, "--resume", "auto"))
    check(codes == [0, 0] and losses(runs) == want, "resumed: exit codes %s: %s" % (codes, texts))
    check(not store.blocks(), "resumed: nothing is fetched again")


def recorded(name, folder, store, runs, remote, want, before=(), says=()):
    """A training on caches of a fifth of the set, or a full disk: the run records what the store sent."""
    codes, texts = ended(name, launch(folder, *remote, "--runs-dir", runs, before=before))
    check(codes == [0, 0] and losses(runs) == want, "%s: exit codes %s: %s" % (name, codes, texts))
    check(all(w in "".join(texts) for w in says), "%s: says %s: %s" % (name, says, texts))
    blocks = store.blocks()
    sent = sum(store.size(*b) for b in blocks)
    again = sent - sum(store.size(*b) for b in set(blocks))
    series = read_run(runs)["series"]
    got = {kind: sum(sum(v.values()) for (k, _), v in series.items() if k == "data/" + kind) for kind in ("remote_bytes", "peer_bytes", "cache_bytes", "refetched_bytes", "peer_failures")}
    probes = 4 * len(os.listdir(store.folder))  # a byte each
    check(0.98 * sent <= got["remote_bytes"] <= sent + probes, "%s: the store sent %d, the run says %s" % (name, sent, got))
    check(again - 0.02 * sent <= got["refetched_bytes"] <= again, "%s: the store sent %d again, the run says %s" % (name, again, got))
    check(got["peer_bytes"] > 0 and got["peer_failures"] == 0, "%s: the nodes served each other: %s" % (name, got))
    return sent


def from_disk(store, runs, *flags):
    """Trains on the files of the store; returns the losses."""
    flags = [*flags, "--data-path", os.path.join(store.folder, "train.json"), "--nproc-per-node", 4, "--threads", 1, "--runs-dir", runs]
    codes, texts = ended("disk", [subprocess.Popen([DPTRAIN, *map(str, flags)], env=environment(KEY), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                   universal_newlines=True)])
    return losses(runs) if check(codes == [0], "disk: %s" % texts) else None


def trainings(folder, store, total, n_blocks):
    runs = [os.path.join(folder, "runs%d" % i) for i in range(4)]
    want = from_disk(store, runs[0], *TRAIN)
    if not want:
        return
    remote = [*TRAIN, "--cache-shared", "--data-path", store.url + "/train.json"]
    killed(folder, store, runs[1], remote, want, n_blocks)
    lost(folder + "-lost", store, folder + "-lost-runs", remote, want, n_blocks)
    lost_of_three(folder + "-three", store, n_blocks)
    interrupted(folder, store, runs[2], remote, want)
    small = folder + "-small"
    sent = recorded("small caches", small, store, runs[3], [*remote, "--cache-size", total // 5], want)
    check(sent > 1.05 * total, "caches of a fifth fetch again: %d of %d" % (sent, total))
    full = folder + "-full"
    os.makedirs(os.path.join(full, "cache1"))
    before = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=4796k none %s && exec "$0" "$@"' % os.path.join(full, "cache1")]
    if subprocess.run([*before, "true"], stderr=subprocess.DEVNULL).returncode:
        print("full disk: skipped, mounting is not permitted")
    else:
        recorded("full disk", full, store, full + "-runs", remote, want, ((), before), ["No space left on device: blocks are not cached"])


def main():
    with stored() as (folder, store, total, n_blocks):
        trainings(os.path.join(folder, "train"), store, total, n_blocks)
    finish("shared training")


main()
