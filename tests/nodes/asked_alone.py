# SPDX-License-Identifier: Apache-2.0
"""Of ranks on two machines that another program started, those of one machine alone are asked to end in a step that takes long: all
give up that step, and the checkpoint is of the step before it."""
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "launch"), os.path.join(HERE, "..", "train")]

from helper import Folder, check, finish, skip
from jobs import ended
from slow_steps import COMMON, PACE, checkpoints, read_until
from spaces import Spaces, has_transport


def start_ranks(spaces, runs, *flags):
    """Two ranks on each machine, with torchrun's variables."""
    env = lambda i, k: {"RANK": str(2 * i + k), "WORLD_SIZE": "4", "LOCAL_RANK": str(k), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": spaces.address[0],
                        "MASTER_PORT": "29600", "TORCHELASTIC_RUN_ID": "asked-alone", **PACE}
    return [spaces.start(i, *COMMON, *flags, "--comm", "ucx", "--runs-dir", runs, env=env(i, k)) for i in range(2) for k in range(2)]


def asked(spaces, tmp, strategy, rank):
    name, runs = "%s, rank %d" % (strategy, rank), os.path.join(tmp, "%s-%d" % (strategy, rank))
    job = start_ranks(spaces, runs, "--strategy", strategy)
    said = read_until(name, job[0], "step 1/3")
    job[rank].send_signal(signal.SIGTERM)
    codes, texts = ended(name, job, 60)
    check(codes == [75] * 4 and "step 2 is given up" in said + texts[0], "%s: exit %s: %s, %s" % (name, codes, said, texts))
    check(checkpoints(runs) == ["step-1"], "%s: checkpoints: %s" % (name, checkpoints(runs)))


if not has_transport("ucx"):
    skip("the ucx transport is not built (Debian: libucx-dev)")
with Spaces() as two_machines, Folder() as folder:
    asked(two_machines, folder, "ddp", 3)
    asked(two_machines, folder, "ddp", 0)
    asked(two_machines, folder, "fsdp", 2)
finish("asked_alone")
