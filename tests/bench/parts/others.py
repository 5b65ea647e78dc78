# SPDX-License-Identifier: Apache-2.0
"""Processor time used by other programs during a measurement, and repeated measurements while it is high."""
import glob
import os
import resource
import sys

MOST = 0.03  # share of all cores, used by other programs


def busy_seconds():
    """Returns seconds over all cores: used or stolen by the hypervisor, and available."""
    with open("/proc/stat", encoding="ascii") as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - fields[3] - fields[4]) / tick, sum(fields) / tick


def own_seconds():
    """Processor time of this process and of all its descendants that have ended."""
    return sum(r.ru_utime + r.ru_stime for r in (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)))


def kernel_seconds():
    """Processor time of kernel threads, which read, write and free memory for all processes: the children of
    kthreadd."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:  # ended in the meantime
            continue
        ticks += int(fields[11]) + int(fields[12]) if fields[1] == "2" else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def others_seconds():
    """Returns seconds over all cores: used by other programs (not this process, its descendants or the kernel), and
    available."""
    busy, whole = busy_seconds()
    return busy - own_seconds() - kernel_seconds(), whole


class Watch:
    """others(): the share of all cores' time that others used since the start. Processes started since must have
    ended."""

    def __init__(self):
        self.theirs, self.whole = others_seconds()

    def others(self):
        theirs, whole = others_seconds()
        return max(0.0, (theirs - self.theirs) / max(whole - self.whole, 1e-3))


def measured(make, tries=3):
    """Returns the result of make(), and the share that others used meanwhile: from the first try with less than MOST,
    or the calmest of all tries."""
    best = None
    for k in range(max(tries, 1)):
        watch = Watch()
        got = make()
        share = watch.others()
        if best is None or share < best[1]:
            best = got, share
        if share < MOST:
            break
        print("others took %.0f %% of the cores: %s" % (100 * share, "once more" if k + 1 < tries else "the row is marked"),
              file=sys.stderr, flush=True)
    return best


def marked(make, tries=3):
    """make() returns a row, a dict, to which the share is added as "others"."""
    row, share = measured(make, tries)
    return dict(row, others=share)


def calm(row):
    """A row without "others" counts as calm."""
    return not isinstance(row, dict) or row.get("others", 0) < MOST


def tell(rows):
    """Prints a line on stderr if rows were measured while others used the cores."""
    loud = [row["others"] for row in rows if not calm(row)]
    if loud:
        print("%d of %d rows beside others, which took up to %.0f %% of the cores: no figure of theirs counts"
              % (len(loud), len(rows), 100 * max(loud)), file=sys.stderr)
