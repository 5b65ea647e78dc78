# SPDX-License-Identifier: Apache-2.0
"""Processes of a training are killed at any moment and --resume auto continues: the store's points, and the final
weights, are those of an undisturbed run, bit for bit. Points are read through the store, which proves that whatever
the killed processes recorded beyond their last checkpoint is hidden. Over S3 the steps of the deaths are drawn by
$SEED: three of them, or $RESUME_DEATHS; and the bytes that the store delivers again after a death are counted."""
import csv
import io
import os
import random
import re
import subprocess
import sys

from helper import BUILD, SOURCE, Folder, check, dptrain, environment, fast, finish, make_set

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import s3server  # noqa: E402

DPTRACK = os.path.join(BUILD, "dptrack")
SERIES = ("epoch/train_loss", "epoch/val_loss", "epoch/top1", "epoch/top5")


def points(runs, *more):
    """The store's points of the only run, as printed (the texts read back bit for bit)."""
    p = subprocess.run([DPTRACK, "export", "--series", "--csv", "--experiment", "default", "--logdir", runs, *more], env=environment(), timeout=100,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    check(p.returncode == 0, "export: exit %d: %s" % (p.returncode, p.stderr))
    rows = [r for r in csv.DictReader(io.StringIO(p.stdout)) if r["key"].startswith(("train/", "val/")) or r["key"] in SERIES]
    return [(r["key"], int(r["rank"]), int(r["step"]), r["value"]) for r in rows]


def weights(runs):
    for folder, _, names in os.walk(runs):
        if "model.safetensors" in names and "state.json" not in names:
            with open(os.path.join(folder, "model.safetensors"), "rb") as f:
                return f.read()
    return None


def run_folders(runs):
    return [e.path for e in os.scandir(os.path.join(runs, "default"))]


def make_text(folder):
    draw = random.Random(3)
    words = ["the", "run", "that", "was", "killed", "goes", "on", "where", "it", "stood", "and", "nobody", "sees"]
    with open(os.path.join(folder, "text.txt"), "w", encoding="ascii") as f:
        f.write(" ".join(draw.choice(words) for _ in range(600)))
    return folder


def make_shards(folder):
    plain, shards = os.path.join(folder, "plain"), os.path.join(folder, "shards")
    os.mkdir(plain)
    make_set(plain, 60, 20)
    p = dptrain("shard", "--data-path", plain, "--out", shards, "--shard-size", "20kB")
    check(p.returncode == 0, "shard: exit %d: %s" % (p.returncode, p.stderr))
    return shards


def make_bucket(folder):
    """The shards behind a server that checks every signature; this process's environment has the keys afterwards."""
    make_shards(folder)
    server = s3server.S3(folder)
    os.environ.update({k: v for k, v in server.environment().items() if k.startswith(("AWS_", "no_proxy"))})
    return "s3://shards"


def random_deaths():
    """Returns which process dies at which step, in order, between the first checkpoint and the last step."""
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    n, draw = int(os.environ.get("RESUME_DEATHS", "3")), random.Random(seed)
    print("SEED=%d RESUME_DEATHS=%d" % (seed, n))
    return [(draw.choice(["launcher", 0, 1]), step) for step in sorted(draw.sample(range(4, 16 * (1 + n // 8) - 1), n))]


def make_mix(folder):
    paths = []
    for i in range(3):
        paths.append(os.path.join(folder, str(i)))
        os.mkdir(paths[-1])
        make_text(paths[-1])
    return "::".join(paths)


def age(run):
    """Makes a run's checkpoints like those of an old version, which had neither a shuffle order nor a checksum of the
    state."""
    for folder, _, names in os.walk(run):
        for path in [os.path.join(folder, n) for n in names if n == "state.json"]:
            with open(path, "rb") as f:
                text = re.sub(rb'\n  "shuffle(_window)?": "\w+",', b"", f.read())
            with open(path, "wb") as f:
                f.write(re.sub(rb',\n "crc32c": \d+\n}$', b"\n}", text))


def killed(name, make, flags, deaths, least=1, first=(), between=None):
    """make: writes the data set into a folder. deaths: (process, step); every start uses --resume auto, including the
    first. least: points that the deaths roll back; 0 for drawn steps, since all of them can be steps with a checkpoint.
    first: flags of the undisturbed run, and of each start until a checkpoint exists. between: called with the run's
    folder after each death."""
    with Folder() as tmp:
        one, many = os.path.join(tmp, "one"), os.path.join(tmp, "many")
        os.mkdir(os.path.join(tmp, "data"))
        data = make(os.path.join(tmp, "data"))
        common = ["--data-path", data, "--run-name", "r", "--deterministic", *flags]
        p = dptrain(*common, *first, "--runs-dir", one)
        check(p.returncode == 0, "%s, undisturbed: exit %d: %s" % (name, p.returncode, p.stderr))
        went_on = 0
        for i, (who, step) in enumerate(deaths):
            begun = any("state.json" in names and not os.path.basename(at).startswith(".")  # hidden: not yet complete
                        for at, _, names in os.walk(many))
            p = dptrain(*common, *(() if begun else first), "--runs-dir", many, "--resume", "auto", env={"DPTRAIN_TEST_DIE": "%s:%d" % (who, step), "DPTRAIN_TEST_SLOW_RANK": "0:25"})
            check(p.returncode in (1, -9), "%s, %s dies at step %d: exit %d: %s" % (name, who, step, p.returncode, p.stderr))
            went_on += "continuing after step" in p.stderr
            if between:
                between(run_folders(many)[0])
        p = dptrain(*common, "--runs-dir", many, "--resume", "auto")
        check(p.returncode == 0, "%s, to the end: exit %d: %s" % (name, p.returncode, p.stderr))
        went_on += "continuing after step" in p.stderr
        check(went_on > 0, "%s: some restart found a checkpoint" % name)
        check(len(run_folders(many)) == 1, "%s: one run, not %s" % (name, run_folders(many)))
        want, got = points(one), points(many)
        check(len(want) > 0 and len(set(p[:3] for p in want)) == len(want), "%s: the undisturbed run has each point once" % name)
        check(sorted(got) == sorted(want), "%s: points differ: missing %s, too many %s" %
              (name, sorted(set(want) - set(got))[:5], sorted(set(got) - set(want))[:5] or len(got) - len(want)))
        taken_back = len(points(many, "--segments", "all")) - len(want)
        check(taken_back >= least, "%s: rolled-back points are stored" % name)
        print("%s: %d points, %d restarts from a checkpoint, %d points rolled back" % (name, len(want), went_on, taken_back))
        check(weights(one) and weights(one) == weights(many), "%s: the weights at the end are the same bytes" % name)


def shards_asked(server):
    """Requested bytes of each shard since the last call, without probes of its size."""
    asked = {}
    for path, headers in server.log:
        want = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range", ""))
        if "/train-" in path and want and want[0] != "bytes=0-0":
            asked[path] = asked.get(path, 0) + int(want[2]) - int(want[1]) + 1
    server.log.clear()
    return asked


def order_of(shards, batch, window):
    """Numbers of the training samples in the order of an epoch, as the loader delivers them."""
    def listed(*how):
        p = subprocess.run([os.path.join(BUILD, "tests", "data", "deliver"), shards, "list=1", "plain=1", *how], check=True, timeout=60,
                           stdout=subprocess.PIPE, universal_newlines=True)
        return [line.split()[1] for line in p.stdout.splitlines() if len(line.split()[-1]) == 64 and " " in line]
    number = {h: i for i, h in enumerate(listed("shuffle=0"))}
    return [number[h] for h in listed("shuffle=3", "batch=%d" % batch, "window=%d" % window)]


def counted():
    """A run resumed after a death requests at most one window of the data that it has trained on again, and for each
    lane the shard in which its part of the window begins or ends."""
    samples, window, batch, save, shard = 960, 64, 8, 5, 4
    with Folder() as tmp:
        plain, shards = os.path.join(tmp, "plain"), os.path.join(tmp, "b", "shards")
        os.mkdir(plain)
        os.mkdir(os.path.dirname(shards))
        make_set(plain, samples, 8, size=12)
        size = 2048 * shard + 1024
        p = dptrain("shard", "--data-path", plain, "--out", shards, "--shard-size", "%d" % size)
        check(p.returncode == 0, "shard: exit %d: %s" % (p.returncode, p.stderr))
        order = order_of(shards, batch, window)
        check(sorted(order) == list(range(samples)), "an order of all samples")
        server = s3server.S3(tmp)
        flags = ["--data-path", "s3://b/shards", "--run-name", "r", "--model", "resnet20", "--global-batch-size", batch, "--epochs", 1, "--workers", 1,
                 "--nproc-per-node", 2, "--save-steps", save, "--shuffle", "window", "--shuffle-window", window, "--runs-dir", os.path.join(tmp, "runs"),
                 "--resume", "auto", "--augment", "none", *fast()]
        env = {**{k: v for k, v in server.environment().items() if k.startswith(("AWS_", "no_proxy"))}, "XDG_CACHE_HOME": os.path.join(tmp, "cache")}
        p = dptrain("bench", "--loader", *flags[:2], "--no-decode", env=env)  # indexes the samples, which reads everything once
        check(p.returncode == 0, "bench: exit %d: %s" % (p.returncode, p.stderr))
        shards_asked(server)
        p = dptrain("bench", "--loader", *flags[:2], "--no-decode", "--nproc-per-node", 4, "-b", batch // 4, "--epochs", 1, "--shuffle", "window", env=env)
        check(p.returncode == 0, "bench on 4 ranks: exit %d: %s" % (p.returncode, p.stderr))
        fetched = sum(shards_asked(server).values()) / (size * samples // shard)
        check(1 <= fetched <= 1.1, "four ranks fetch %.3f times the set in an epoch" % fetched)
        most = size * (window // shard + batch)
        for step in (30, 70, None):
            p = dptrain(*flags, env={**env, "DPTRAIN_TEST_SLOW_RANK": "0:2", **({"DPTRAIN_TEST_DIE": "launcher:%d" % step} if step else {})})
            check(p.returncode == (-9 if step else 0), "counted, dies at step %s: exit %d: %s" % (step, p.returncode, p.stderr))
            asked, went_on = shards_asked(server), re.search(r"continuing after step (\d+)", p.stderr)
            if went_on:
                trained = {"/b/shards/train-%06d.tar" % (i // shard) for i in order[:batch * int(went_on[1])]}
                again = sum(n for path, n in asked.items() if path in trained)
                check(again <= most, "after step %s %d bytes are requested again, limit %d" % (went_on[1], again, most))
                print("counted: after step %s %d of %d bytes again; a window is %d" % (went_on[1], again, size * len(trained), 2048 * window))
            check(went_on or step == 30, "the start that dies at step %s resumes" % step)
        server.stop()


def main():
    counted()
    killed("resnet20 on 2 ranks", lambda folder: make_set(folder, 60, 20),
           ["--model", "resnet20", "--augment", "crop,flip", "--global-batch-size", 8, "--epochs", 3, "--nproc-per-node", 2,
            "--save-steps", 5, "--save-total-limit", 2, *fast()],
           [("launcher", 7), (0, 12), (1, 16), (1, 18)])
    killed("shards in windows", make_shards,
           ["--model", "resnet20", "--augment", "crop,flip", "--global-batch-size", 8, "--epochs", 2, "--nproc-per-node", 2, "--shuffle", "window",
            "--shuffle-window", 24, "--save-steps", 3, "--workers", 2, *fast()],
           [(1, 5), (0, 12)])
    deaths = random_deaths()
    killed("shards in a bucket", make_bucket,
           ["--model", "resnet20", "--augment", "crop,flip", "--global-batch-size", 8, "--epochs", 2 * (1 + len(deaths) // 8), "--nproc-per-node", 2,
            "--save-steps", 3, "--workers", 2, *fast()], deaths, least=0)
    killed("checkpoints without an order", lambda folder: make_set(folder, 60, 20),
           ["--model", "resnet20", "--global-batch-size", 8, "--epochs", 2, "--save-steps", 3, *fast()], [("launcher", 5), ("launcher", 11)],
           least=0, first=["--shuffle", "table"], between=age)
    gpt = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 16, "--tokenizer", "bytes", *fast()]
    killed("a mix of texts", make_mix, [*gpt, "--mix", "0.5,0.3,0.2", "--epoch-samples", 120, "--global-batch-size", 8, "--nproc-per-node", 2,
                                        "--epochs", 2, "--save-steps", 4], [(1, 6), ("launcher", 13), (0, 22)])
    killed("a small GPT", make_text,
           ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 32, "--tokenizer", "bytes", "--dropout", 0.1,
            "--opt", "adamw", "--lr", 0.001, "--global-batch-size", 8, "--nproc-per-node", 2, "--epochs", 2, "--save-steps", 4, *fast()],
           [("launcher", 6), (1, 11), (0, 15)])
    finish("resume")


main()
