# SPDX-License-Identifier: Apache-2.0
"""The time of a step: every series is complete, the parts sum to the step, a slow loader shows only in data_wait, a
slow rank only in comm_exposed of the others; and bench's times of ops are parts of its steps."""
import json
import os

from helper import FINISHED, LAUNCHER, Folder, check, dptrain, fast, finish, make_set, read_run

PARTS = ["data_wait", "h2d", "forward", "backward", "comm_exposed", "optimizer", "other"]
FAST = fast()
STEPS = 12


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def medians(run, rank):
    """Median of each phase over the steps, without the first two, which warm up."""
    return {part: median([v for s, v in run["series"][("phase/" + part, rank)].items() if s > 2]) for part in PARTS + ["step", "comm_total"]}


def train(folder, *flags, env=None, steps=STEPS):
    runs = os.path.join(folder, "runs")
    p = dptrain("--synthetic", "--model", "resnet20", "--classes", 10, "--max-steps", steps, "--runs-dir", runs, *FAST, *flags, env=env)
    check(p.returncode == 0, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))
    return read_run(runs)


def sums(run, ranks, name):
    for rank in range(ranks):
        for key in PARTS + ["step", "comm_total"]:
            steps = sorted(run["series"].get(("phase/" + key, rank), {}))
            check(steps == list(range(1, len(steps) + 1)) and steps, "%s: phase/%s of rank %d: every step" % (name, key, rank))
        for step, total in run["series"][("phase/step", rank)].items():
            parts = {k: run["series"][("phase/" + k, rank)][step] for k in PARTS}
            check(parts["other"] >= 0, "%s: phase/other of step %d is %g" % (name, step, parts["other"]))
            check(abs(sum(parts.values()) - total) <= 1e-9 + 1e-6 * total, "%s: the parts of step %d sum to the step" % (name, step))
        m = medians(run, rank)
        check(m["other"] <= 0.05 * m["step"], "%s: phase/other of rank %d is %.1f %% of the step" % (name, rank, 100 * m["other"] / m["step"]))


def slowed():
    """The delay is so much longer than a step that a busy machine does not hide it; at least half of it must show in
    the expected phase, and less than a quarter in any other."""
    with Folder() as a, Folder() as b, Folder() as c:
        plain = train(a, "-b", 8, "--nproc-per-node", 2)
        delay = 0.5 + 5 * max(medians(plain, r)["step"] for r in range(2))
        loader = train(b, "-b", 8, "--nproc-per-node", 2, "--workers", 1, env={"DPTRAIN_TEST_SLOW_LOADER": str(1000 * delay)}, steps=8)
        rank = train(c, "-b", 8, "--nproc-per-node", 2, env={"DPTRAIN_TEST_SLOW_RANK": "1:%g" % (1000 * delay)}, steps=8)
        for name, run in (("plain", plain), ("slow loader", loader), ("slow rank", rank)):
            sums(run, 2, name)

        def grew(name, run, r, expected):
            base, slow = medians(plain, r), medians(run, r)
            for part in PARTS:
                growth = slow[part] - base[part]
                text = "%s: %s of rank %d grew by %.3f s, with a delay of %.3f s" % (name, part, r, growth, delay)
                check(growth > 0.5 * delay if part == expected else growth < 0.25 * delay, text)

        def waited(r, part):
            return medians(loader, r)[part] - medians(plain, r)[part]

        # A rank that got its first batch earlier stays ahead: it waits for the other rank instead of its data.
        late, early = sorted(range(2), key=lambda r: -waited(r, "data_wait"))
        grew("slow loader", loader, late, "data_wait")
        both = waited(early, "data_wait") + waited(early, "comm_exposed")
        check(both > 0.5 * delay, "slow loader: rank %d waited %.3f s longer for data and rank %d, with a delay of %.3f s" % (early, both, late, delay))
        grew("slow rank", rank, 0, "comm_exposed")
        grew("slow rank", rank, 1, "forward")


def complete():
    with Folder() as tmp:
        runs = os.path.join(tmp, "runs")
        p = dptrain("--data-path", make_set(tmp, 50, 21), "--model", "resnet20", "-b", 8, "--epochs", 2, "--nproc-per-node", 2, "--run-name",
                    "whole", "--experiment", "tests", "--runs-dir", runs, *FAST)
        check(p.returncode == 0, "two epochs: exit %d: %s" % (p.returncode, p.stderr))
        run = read_run(runs)
        steps = list(range(1, 9))  # ceil(50 / 16) in each epoch
        for key in ("train/loss", "train/lr", "train/grad_norm"):
            check(sorted(run["series"].get((key, -1), {})) == steps, "%s has every step" % key)
        for key in ("train_loss", "val_loss", "top1", "top5", "seconds", "eval_seconds", "samples_per_s"):
            check(sorted(run["series"].get(("epoch/" + key, -1), {})) == [1, 2], "epoch/%s: both epochs" % key)
        for rank in range(2):
            check(sorted(run["series"].get(("memory/peak_bytes", rank), {})) == [1, 2], "memory/peak_bytes of rank %d" % rank)
        top1 = run["series"][("epoch/top1", -1)][2]
        check(abs(top1 * 21 / 100 - round(top1 * 21 / 100)) < 1e-9, "top-1 of 21 images is a whole number of them: %g" % top1)
        params = {k: str(v) for k, v in run["params"].items()}
        for key, want in (("model", "resnet20"), ("steps_per_epoch", "4"), ("global_batch_size", "16"), ("classes", "10"), ("world_size", "2")):
            check(params.get(key) == want, "param %s is %s, not %s" % (key, params.get(key), want))
        for key in ("host", "cpu", "command", "backend", "dptrain"):
            check(run["env"].get(key), "environment holds %s" % key)
        check(run["status"].get(LAUNCHER) == FINISHED and run["status"].get(0) == FINISHED, "status %s" % run["status"])
        check(os.path.basename(run["folder"]) == "whole-" + run["id"][:8], "folder %s" % run["folder"])
        check(os.path.basename(os.path.dirname(run["folder"])) == "tests", "folder %s" % run["folder"])


def bench_by_op():
    p = dptrain("bench", "--model", "resnet20", "--classes", 10, "-b", 4, "--steps", 4, "--json", *FAST)
    check(p.returncode == 0, "bench: exit %d: %s" % (p.returncode, p.stderr))
    b = json.loads(p.stdout)
    steps, seconds = b["all_step_seconds"][1:], [o["seconds"] for o in b["ops"]]
    ops = {o["op"]: o for o in b["ops"]}
    check(len(b["loss"]) == 4 and all(s > 0 for s in steps), "bench: four steps")
    check(seconds == sorted(seconds, reverse=True), "bench: the slowest op is first")
    check(0 < sum(seconds) <= 1.001 * sum(steps) / len(steps), "bench: ops take %g s of steps of %s" % (sum(seconds), steps))
    # 3 x 3 x 2 convolutions, the stem, two shortcuts; the stem's input needs no gradient
    check([ops[o]["nodes"] for o in ("conv", "conv_dgrad", "conv_wgrad")] == [21, 20, 21], "bench: convolutions of resnet20")
    check(ops["conv"]["gflops"] > 0 and ops["bn_apply"]["gflops"] == 0, "bench: rates of ops")
    check(b["matmul_gflops"] > 0 and 0 <= b["other_share"] < 1, "bench: %g GFLOP/s, %g" % (b["matmul_gflops"], b["other_share"]))


def main():
    complete()
    slowed()
    bench_by_op()
    finish("phases")


main()
