"""What ran on the cores beside a measurement, and a measurement made again while that was much."""
import glob
import os
import resource
import sys

MOST = 0.03  # of all cores, by processes that are none of ours


def busy_seconds():
    """Of all cores: at work or taken by the machine below, and all there were."""
    with open("/proc/stat", encoding="ascii") as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - fields[3] - fields[4]) / tick, sum(fields) / tick


def own_seconds():
    """Processor time of this process and of all that it started and that ended."""
    return sum(r.ru_utime + r.ru_stime for r in (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)))


def kernel_seconds():
    """Processor time of the kernel's threads, which read, write and free memory for whoever asks: the children of kthreadd."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        ticks += int(fields[11]) + int(fields[12]) if fields[1] == "2" else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def others_seconds():
    """Of all cores: taken by others than this process, what it started and the kernel; and all there were."""
    busy, whole = busy_seconds()
    return busy - own_seconds() - kernel_seconds(), whole


class Watch:
    """others(): the share of all cores' time that others took since it was made. What was started since has ended."""

    def __init__(self):
        self.theirs, self.whole = others_seconds()

    def others(self):
        theirs, whole = others_seconds()
        return max(0.0, (theirs - self.theirs) / max(whole - self.whole, 1e-3))


def measured(make, tries=3):
    """What make() returns, and the share of others beside it: of the first try beside which they took less than MOST, or of the
    calmest of so many."""
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
    """A row, a dict, with the share as "others"."""
    row, share = measured(make, tries)
    return dict(row, others=share)


def calm(row):
    """A row that knows of no others is calm."""
    return not isinstance(row, dict) or row.get("others", 0) < MOST


def tell(rows):
    """A line on stderr where rows were measured beside others."""
    loud = [row["others"] for row in rows if not calm(row)]
    if loud:
        print("%d of %d rows beside others, which took up to %.0f %% of the cores: no figure of theirs counts"
              % (len(loud), len(rows), 100 * max(loud)), file=sys.stderr)
