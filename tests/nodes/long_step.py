#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job on two machines that is asked to end in a step that takes long: all ranks give up the same step, also those that wait in a
collective for a rank of the other machine, and the run that continues ends with the bits of an undisturbed one. Also where one machine
hears of the request a step later than the other one. Under a sanitizer this and two cases, with pairs and with stages."""
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "launch"), os.path.join(HERE, "..", "train"), os.path.join(HERE, "..", "data")]

from helper import Folder, check, finish, sanitized, skip, start
from jobs import ended
from shared_jobs import KEY, free_port
from slow_steps import COMMON, PACE, checkpoints, read_until, result
from spaces import has_transport

SHARDED = ["--strategy", "fsdp"]
# name, flags, ranks of a machine, the slow machines, the machine that receives the signal
CASES = [
    ("ddp", [], 1, (0, 1), 0),
    ("fsdp", SHARDED, 1, (0, 1), 1),
    ("fsdp, where machine 0 waits", SHARDED, 1, (1,), 0),
    ("fsdp, where machine 1 waits", SHARDED, 2, (0,), 1),
    ("fsdp in pairs", [*SHARDED, "--shard-degree", 2], 2, (0, 1), 0),
    ("pdp, a stage on each machine", ["--strategy", "pdp", "--pp-stages", 2], 1, (0, 1), 1),
]


def launch(flags, runs, slow=(), pace=None):
    """Starts the launchers of both machines; steps of the slow ones take long."""
    port = free_port()
    return [start(*COMMON, *flags, "--nnodes", 2, "--node-rank", i, "--master-addr", "127.0.0.1", "--master-port", port, "--runs-dir", runs,
                  env={**KEY, **((pace or PACE) if i in slow else {})}) for i in range(2)]


def given_up(name, flags, runs, slow, asked):
    job = launch(flags, runs, slow)
    said = read_until(name, job[0], "step 1/3")
    job[asked].send_signal(signal.SIGTERM)
    codes, texts = ended(name, job, 60)
    check(codes == [75, 75] and "step 2 is given up" in said + texts[0], "%s: exit %s: %s, %s" % (name, codes, said, texts))
    return check(checkpoints(runs) == ["step-1"], "%s: checkpoints: %s" % (name, checkpoints(runs)))


def case(tmp, name, flags, ranks, slow, asked):
    flags = [*flags, "--nproc-per-node", ranks]
    runs, whole = os.path.join(tmp, name + "-given-up"), os.path.join(tmp, name + "-whole")
    if not given_up(name, flags, runs, slow, asked):
        return
    for folder, more in ((runs, ["--resume", "auto"]), (whole, [])):
        codes, texts = ended(name, launch([*flags, *more], folder), 300)
        check(codes == [0, 0], "%s: exit %s: %s" % (name, codes, texts))
    check(result(runs) == result(whole), "%s: differs from an undisturbed run: %s, %s" % (name, result(runs)[0], result(whole)[0]))


def heard_late(tmp):
    """Machine 0 waits in the last sum of step 1 for machine 1, whose launcher is suspended until that step is over: neither leaves step 1."""
    name, runs = "heard late", os.path.join(tmp, "heard-late")
    # small pictures: machine 0 reaches the sum within seconds on a busy machine, too
    job = launch(["--heartbeat-timeout", 300, "--image-size", 16], runs, (1,), {"DPTRAIN_TEST_PACE": "1.5e7"})
    said = read_until(name, job[0], "recorded in")
    job[1].send_signal(signal.SIGSTOP)
    late = threading.Timer(100, job[1].send_signal, [signal.SIGCONT])  # where step 1 never ends
    late.start()
    job[0].send_signal(signal.SIGTERM)
    said += read_until(name, job[0], "step 1/3")
    late.cancel()
    job[1].send_signal(signal.SIGCONT)
    codes, texts = ended(name, job, 60)
    check(codes == [75, 75] and "step 2 is given up" in said + texts[0], "%s: exit %s: %s, %s" % (name, codes, said, texts))
    check(checkpoints(runs) == ["step-1"], "%s: checkpoints: %s" % (name, checkpoints(runs)))


if not has_transport("ucx"):
    skip("the ucx transport is not built (Debian: libucx-dev)")
with Folder() as folder, ThreadPoolExecutor(3) as pool:
    cases = CASES[4:] if sanitized() else CASES
    for task in [pool.submit(heard_late, folder), *(pool.submit(case, folder, *c) for c in cases)]:
        task.result()
finish("long_step")
