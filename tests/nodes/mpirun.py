# SPDX-License-Identifier: Apache-2.0
"""Ranks that Open MPI's mpirun places on two machines (network namespaces)."""
import os
import subprocess

from helper import DPTRAIN, environment

HOSTS = ["dptnode0", "dptnode1"]
AGENT = """#!/bin/sh
host=$1
shift
case $host in %s) space=%s;; *) space=%s;; esac
exec ip netns exec $space unshare --uts sh -c "hostname $host; exec sh -c '$*'"
"""  # used by mpirun in place of ssh


def start(words, env):
    if "--comm" in words:  # MPI's own memory is not a leak of ours
        env = dict(env, ASAN_OPTIONS=":".join(filter(None, (env.get("ASAN_OPTIONS"), "detect_leaks=0"))))
    return subprocess.Popen(list(map(str, words)), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, universal_newlines=True)


class Mpirun:
    """Open MPI's launcher between two network namespaces that find each other by the names in HOSTS."""

    def __init__(self, spaces, folder):
        self.spaces, self.agent = spaces, os.path.join(folder, "agent")
        with open(self.agent, "w", encoding="utf-8") as f:
            f.write(AGENT % (HOSTS[0], *spaces.names))
        os.chmod(self.agent, 0o755)

    def start(self, *flags):
        """Four ranks, two on each."""
        job = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", self.agent, "--bind-to", "none", "--host", "%s:2,%s:2" % tuple(HOSTS), "-np", 4]
        return start(self.spaces.named(0, *job, DPTRAIN, "--master-addr", HOSTS[0], *flags), environment())
