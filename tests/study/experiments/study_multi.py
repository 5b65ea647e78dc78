# SPDX-License-Identifier: Apache-2.0
"""Several ranks (article 3): DP and DDP on 1, 2 and 4 ranks with equal global and with equal local batch, SyncBN, and two
machines (network namespaces). Two ranks have a core each. Four ranks on two cores are oversubscribed: their bytes and shares
count, their speed does not. Article 3 has 161.0 s on one GPU, 81.7 s with DP and 41.6 s with DDP on four V100 (the single run
had fewer loader threads), and 22.1 s on two machines, which two cores cannot repeat."""
from record import mean_of, median_of
from spaces import Spaces, has_transport

COLUMNS = ["equal global batch", "equal local batch"]
SERIES = ["phase/step", "phase/comm_exposed", "comm/bytes"]
ARTICLE = {("single", COLUMNS[0]): 161.0, ("DP, 4 devices", COLUMNS[0]): 81.7, ("DDP, 4 ranks (oversubscribed)", COLUMNS[0]): 41.6}
WAYS = {"single": (1, []), "DP, 2 devices": (1, ["--strategy", "dp", "--dp-devices", 2, "--threads", 2]),
        "DP, 4 devices": (1, ["--strategy", "dp", "--dp-devices", 4, "--threads", 2]),
        "DDP, 2 ranks": (2, []), "DDP, 2 ranks, SyncBN": (2, ["--sync-bn"]), "DDP, 4 ranks (oversubscribed)": (4, [])}
MACHINES = "DDP, 2 machines of a rank"


def flags_of(way, local, batch):
    ranks, more = WAYS[way]
    devices = more[3] if "--dp-devices" in more else 1
    b = batch * devices if local else batch // ranks
    strategy = ["--strategy", "ddp", "--nproc-per-node", ranks] if ranks > 1 else []
    return [*strategy, "-b", b, *([] if "--threads" in more else ["--threads", 1]), *more]


def on_machines(s, common, batch, tables):
    """DDP between two namespaces."""
    if s.over() or not has_transport("ucx"):
        s.problems.append("%s: %s" % (MACHINES, "no time" if s.over() else "this build has no ucx transport"))
        return
    with Spaces() as spaces:
        jobs = [spaces.start(i, *common, "-b", batch // 2, "--threads", 1, "--strategy", "ddp", "--nnodes", 2, "--nproc-per-node", 1, "--comm", "ucx",
                             "--master-addr", spaces.address[0], "--node-rank", i, "--runs-dir", s.runs_dir, "--experiment", "study-multi", "--run-name", MACHINES,
                             "--report-to", "none") for i in range(2)]
        said = [j.communicate(timeout=300) for j in jobs]
    folder = s.found(MACHINES)
    if any(j.returncode for j in jobs) or not folder:
        s.problems.append("%s: %s" % (MACHINES, said[0][1].strip().splitlines()[-1:]))
        return
    fill(tables, MACHINES, COLUMNS[0], s.recorded_run(folder))


def fill(tables, way, column, run):
    step_s = median_of(run, "phase/step")
    if step_s:
        waits = median_of(run, "phase/comm_exposed") or 0.0
        for t, value in zip(tables, (1e3 * step_s, 100 * waits / step_s, (mean_of(run, "comm/bytes", skip=1) or 0.0) / 1e6)):
            t.add(way, column, value, run["id"])


def facts(s, tables):
    share, sent = ([t.means().get((w, COLUMNS[0])) for w in ("DDP, 2 ranks", "DDP, 4 ranks (oversubscribed)", "DDP, 2 ranks, SyncBN")] for t in tables[1:])
    if None not in share[:2]:
        s.fact("the share of communication grows with the ranks", "confirmed" if share[1] > share[0] else "not confirmed",
               "%.1f %% of a step on 2 ranks, %.1f %% on 4" % tuple(share[:2]))
    if None not in sent[:2] and sent[0]:
        s.fact("a ring sends 2 (n - 1) / n of the gradients", "confirmed" if abs(sent[1] / sent[0] - 1.5) < 0.03 else "not confirmed",
               "4 ranks send %.3f times what 2 send (1.5 by the formula)" % (sent[1] / sent[0]))
    with_it, without = (tables[0].cells.get((w, COLUMNS[0])) for w in ("DDP, 2 ranks, SyncBN", "DDP, 2 ranks"))
    s.compare("SyncBN costs little", (with_it, without), (0, 1.15), "%.2f of the step without")


def measure(s):
    batch, steps, repeats = (32, 4, 1) if s.quick else (128, 20, 3)
    common = ["--model", "resnet20", "--synthetic", "--image-size", 32, "--classes", 10, "--max-steps", steps]
    tables = [s.table("step", "ms", COLUMNS, base=("single", COLUMNS[0]), article=ARTICLE), s.table("share of a step that waits for communication", "percent", COLUMNS),
              s.table("sent by a rank in a step", "MB", COLUMNS)]
    s.metrics = SERIES

    def one(cell, turn):
        way, local = cell
        run = s.train("%s, equal %s, %d" % (way, "local" if local else "global", turn + 1), *common, *flags_of(way, local, batch))
        if run:
            fill(tables, way, COLUMNS[local], run)
    on_machines(s, common, batch, tables)
    s.turns([(way, False) for way in WAYS] + [(way, True) for way in WAYS if way != "single"], repeats, one)
    facts(s, tables)
    s.notes.append("ResNet-20 at 32 px, batch %d: of all ranks (equal global), of each rank or device (equal local). Ratios are to the step of a single rank." % batch)
