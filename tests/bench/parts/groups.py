# SPDX-License-Identifier: Apache-2.0
"""Control groups for one program, of both versions: a quota of processor time, a memory limit."""
import contextlib
import os

ROOT = "/sys/fs/cgroup"
NAME = "dptrain-bench-%d" % os.getpid()
UNIFIED = os.path.exists(os.path.join(ROOT, "cgroup.controllers"))
PERIOD_US = 100000


def put(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def folders(controllers):
    """Returns the group's folder for each controller."""
    return [os.path.join(ROOT, NAME)] if UNIFIED else [os.path.join(ROOT, c, NAME) for c in controllers]


class Group:
    def __init__(self, quota, limit_bytes):
        controllers = (["cpu"] if quota else []) + (["memory"] if limit_bytes else [])
        self.folders = folders(controllers)
        if UNIFIED:
            put(os.path.join(ROOT, "cgroup.subtree_control"), " ".join("+" + c for c in controllers))
        for f in self.folders:
            os.mkdir(f)
        if quota:
            limit = "%d" % (quota * len(os.sched_getaffinity(0)) * PERIOD_US)
            if UNIFIED:
                put(os.path.join(self.folders[0], "cpu.max"), "%s %d" % (limit, PERIOD_US))
            else:
                put(os.path.join(self.folders[0], "cpu.cfs_period_us"), "%d" % PERIOD_US)
                put(os.path.join(self.folders[0], "cpu.cfs_quota_us"), limit)
        if limit_bytes:
            put(os.path.join(self.folders[-1], "memory.max" if UNIFIED else "memory.limit_in_bytes"), "%d" % limit_bytes)

    def close(self):
        for f in self.folders:
            with contextlib.suppress(OSError):
                os.rmdir(f)


def why_not():
    """Why groups cannot be created here; "" if they can."""
    try:
        with made(0.5, 1 << 30):
            return ""
    except OSError as e:
        return "no control groups can be made here (%s)" % e


@contextlib.contextmanager
def made(quota, limit_bytes):
    """A group with that quota (a share of all cores; None: no quota) and limit; None if both are None."""
    if not quota and not limit_bytes:
        yield None
        return
    g = Group(quota, limit_bytes)
    try:
        yield g
    finally:
        g.close()


def enter(group):
    """Returns a function that moves a child process into the group."""
    def go():
        for f in group.folders:
            put(os.path.join(f, "cgroup.procs"), "0")
    return go
