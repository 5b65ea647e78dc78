# SPDX-License-Identifier: Apache-2.0
"""Of ranks on two machines that another program started, one is asked to end: all end after the same step, with a checkpoint of it."""
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "train")]

from helper import Folder, check, finish, read_run, skip
from jobs import ended
from spaces import Spaces, has_transport

ENDLESS = ["--backend", "ref", "--synthetic", "--model", "resnet20", "--classes", 10, "--image-size", 16, "-b", 2, "--max-steps", 1000000,
           "--print-freq", 1, "--watch-steps", 0, "--system-interval", 0, "--report-to", "none"]


def start_ranks(spaces, runs, *flags):
    """Two ranks on each machine, with torchrun's variables."""
    env = lambda i, k: {"RANK": str(2 * i + k), "WORLD_SIZE": "4", "LOCAL_RANK": str(k), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": spaces.address[0],
                        "MASTER_PORT": "29600", "TORCHELASTIC_RUN_ID": "asked-alone"}
    return [spaces.start(i, *ENDLESS, *flags, "--comm", "ucx", "--runs-dir", runs, env=env(i, k)) for i in range(2) for k in range(2)]


def asked(spaces, tmp, strategy, rank):
    name, runs = "%s, rank %d" % (strategy, rank), os.path.join(tmp, "%s-%d" % (strategy, rank))
    job = start_ranks(spaces, runs, "--strategy", strategy)
    check(any("step 2/" in line for line in job[0].stdout), "%s: no second step" % name)
    job[rank].send_signal(signal.SIGTERM)
    codes, texts = ended(name, job, 60)
    check(codes == [75] * 4, "%s: exit %s: %s" % (name, codes, texts))
    kept = [name for _, folders, _ in os.walk(runs) for name in folders if name.startswith("step-")]
    last = max(read_run(runs)["series"][("train/loss", -1)], default=0)
    check(kept == ["step-%d" % last], "%s: checkpoints %s of %d steps" % (name, kept, last))


if not has_transport("ucx"):
    skip("the ucx transport is not built (Debian: libucx-dev)")
with Spaces() as two_machines, Folder() as folder:
    asked(two_machines, folder, "ddp", 3)
    asked(two_machines, folder, "ddp", 0)
    asked(two_machines, folder, "fsdp", 2)
finish("asked_alone")
