#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job that is asked to end in a step that takes long: the step is given up, on one rank and on two, and the run that continues
from the checkpoint of the step before it ends with the bits of an undisturbed one. Also where ranks own parts of the state and
write the checkpoint together (fsdp, pdp), and where another program started the ranks and asks one of them. On several machines:
tests/nodes/long_step.py."""
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import Folder, check, dptrain, finish, start
from slow_steps import COMMON, PACE, checkpoints, read_until, result


def ask(name, runs, flags, number, after):
    """Starts a slow run and sends the signal once it has printed `after`; returns its exit code and its output."""
    p = start(*COMMON, *flags, "--runs-dir", runs, env=PACE)
    said = read_until(name, p, after)
    p.send_signal(number)
    out, errors = p.communicate(timeout=300)
    return p.returncode, said + out + errors


def continued(tmp, name, *flags):
    runs, whole = os.path.join(tmp, name + "-given-up"), os.path.join(tmp, name + "-whole")
    code, said = ask(name, runs, flags, signal.SIGTERM, "step 1/3")
    check(code == 75 and "step 2 is given up" in said, "%s: exit %d: %s" % (name, code, said))
    check(checkpoints(runs) == ["step-1"], "%s: checkpoints: %s" % (name, checkpoints(runs)))
    for folder, more in ((runs, ["--resume", "auto"]), (whole, [])):
        p = dptrain(*COMMON, *flags, "--runs-dir", folder, *more, timeout=300)
        check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr))
    check(result(runs) == result(whole), "%s: differs from an undisturbed run: %s, %s" % (name, result(runs)[0], result(whole)[0]))


def unsaved(tmp):
    """Nothing is saved where no step has finished, or saving is off."""
    for name, flags, after in (("first", [], "recorded in"), ("off", ["--save-total-limit", 0], "step 1/3")):
        runs = os.path.join(tmp, name)
        code, said = ask(name, runs, flags, signal.SIGTERM, after)
        check(code == 1 and "is given up; there is no step to save" in said, "%s: exit %d: %s" % (name, code, said))
        check(checkpoints(runs) == [], "%s: checkpoints: %s" % (name, checkpoints(runs)))


def interrupted(tmp):
    runs = os.path.join(tmp, "interrupted")
    code, said = ask("ctrl-C", runs, [], signal.SIGINT, "step 1/3")
    check(code == 130 and "step 2 is given up" in said, "ctrl-C: exit %d: %s" % (code, said))
    check(checkpoints(runs) == ["step-1"], "ctrl-C: checkpoints: %s" % checkpoints(runs))


def asked_alone(tmp):
    """Rank 1 of a job that another program started receives the signal, rank 0 does not: both give up the step. Rank 1 does not end
    before rank 0 has written its files, because that program may then end rank 0."""
    runs = os.path.join(tmp, "asked-alone")
    place = lambda r: {"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "a%d" % os.getpid()}
    ranks = [start(*COMMON, "--runs-dir", runs, env={**PACE, **place(r)}) for r in range(2)]
    said = read_until("asked alone", ranks[0], "step 1/3")
    ranks[1].send_signal(signal.SIGTERM)
    ranks[1].wait(timeout=300)
    files = [name for _, _, names in os.walk(runs) for name in names]
    check("model.safetensors" in files and checkpoints(runs) == ["step-1"], "asked alone: files when rank 1 has ended: %s" % files)
    texts = ["".join(p.communicate(timeout=300)) for p in ranks]
    codes = [p.returncode for p in ranks]
    check(codes == [75, 75] and "step 2 is given up" in said + texts[0], "asked alone: exit %s: %s, %s" % (codes, said, texts))


def main():
    with Folder() as tmp, ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(continued, tmp, "one"), pool.submit(continued, tmp, "ddp", "--nproc-per-node", 2), pool.submit(unsaved, tmp),
                 pool.submit(interrupted, tmp), pool.submit(asked_alone, tmp), pool.submit(continued, tmp, "fsdp", "--nproc-per-node", 3, "--strategy", "fsdp"),
                 pool.submit(continued, tmp, "pdp", "--nproc-per-node", 4, "--strategy", "pdp", "--pp-stages", 2)]
        for task in tasks:
            task.result()
    finish("given_up")


main()
