"""Processes of a training die at any moment and --resume auto goes on: what the store then shows, point by point, and the
weights at the end, are those of a run that nobody disturbed, bit for bit. Read through the store, so that what the
killed processes had recorded beyond their last checkpoint is proven hidden. Over S3 the steps of the deaths are drawn: three of them,
or as many as $RESUME_DEATHS says, by $SEED."""
import csv
import io
import os
import random
import subprocess
import sys

from helper import BUILD, SOURCE, Folder, check, dptrain, environment, fast, finish, make_set

sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
import s3server  # noqa: E402

DPTRACK = os.path.join(BUILD, "dptrack")
SERIES = ("epoch/train_loss", "epoch/val_loss", "epoch/top1", "epoch/top5")


def points(runs, *more):
    """What the store shows of the only run, as the texts that it prints (they read back bit for bit)."""
    p = subprocess.run([DPTRACK, "export", "--series", "--csv", "--experiment", "default", "--logdir", runs, *more], env=environment(), timeout=100,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    check(p.returncode == 0, "export: exit %d: %s" % (p.returncode, p.stderr))
    rows = [r for r in csv.DictReader(io.StringIO(p.stdout)) if r["key"].startswith(("train/", "val/")) or r["key"] in SERIES]
    return [(r["key"], int(r["rank"]), int(r["step"]), r["value"]) for r in rows]


def weights(runs):
    for folder, _, names in os.walk(runs):
        if "weights.safetensors" in names:
            with open(os.path.join(folder, "weights.safetensors"), "rb") as f:
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
    """The shards behind a server that checks every signature; this process's environment has the keys from now on."""
    make_shards(folder)
    server = s3server.S3(folder)
    os.environ.update({k: v for k, v in server.environment().items() if k.startswith(("AWS_", "no_proxy"))})
    return "s3://shards"


def random_deaths():
    """Who dies at which step, in order, between the first checkpoint and the last step."""
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    n, draw = int(os.environ.get("RESUME_DEATHS", "3")), random.Random(seed)
    print("SEED=%d RESUME_DEATHS=%d" % (seed, n))
    return [(draw.choice(["launcher", 0, 1]), step) for step in sorted(draw.sample(range(4, 16 * (1 + n // 8) - 1), n))]


def killed(name, make, flags, deaths, least=1):
    """make: writes the data set into a folder. deaths: (who, at which step); every start goes on with --resume auto, also the first.
    least: points that the deaths take back; 0 where they are drawn, since all can fall on steps that a checkpoint has."""
    with Folder() as tmp:
        one, many = os.path.join(tmp, "one"), os.path.join(tmp, "many")
        os.mkdir(os.path.join(tmp, "data"))
        data = make(os.path.join(tmp, "data"))
        common = ["--data-path", data, "--run-name", "r", "--deterministic", *flags]
        p = dptrain(*common, "--runs-dir", one)
        check(p.returncode == 0, "%s, undisturbed: exit %d: %s" % (name, p.returncode, p.stderr))
        went_on = 0
        for who, step in deaths:
            p = dptrain(*common, "--runs-dir", many, "--resume", "auto", env={"DPTRAIN_TEST_DIE": "%s:%d" % (who, step), "DPTRAIN_TEST_SLOW_RANK": "0:25"})
            check(p.returncode in (1, -9), "%s, %s dies at step %d: exit %d: %s" % (name, who, step, p.returncode, p.stderr))
            went_on += "goes on after step" in p.stderr
        p = dptrain(*common, "--runs-dir", many, "--resume", "auto")
        check(p.returncode == 0, "%s, to the end: exit %d: %s" % (name, p.returncode, p.stderr))
        went_on += "goes on after step" in p.stderr
        check(went_on > 0, "%s: some restart found a checkpoint" % name)
        check(len(run_folders(many)) == 1, "%s: one run, not %s" % (name, run_folders(many)))
        want, got = points(one), points(many)
        check(len(want) > 0 and len(set(p[:3] for p in want)) == len(want), "%s: the undisturbed run has each point once" % name)
        check(sorted(got) == sorted(want), "%s: points differ: missing %s, too many %s" %
              (name, sorted(set(want) - set(got))[:5], sorted(set(got) - set(want))[:5] or len(got) - len(want)))
        taken_back = len(points(many, "--segments", "all")) - len(want)
        check(taken_back >= least, "%s: what was taken back is kept" % name)
        print("%s: %d points, %d restarts from a checkpoint, %d points taken back" % (name, len(want), went_on, taken_back))
        check(weights(one) and weights(one) == weights(many), "%s: the weights at the end are the same bytes" % name)


def main():
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
    killed("a small GPT", make_text,
           ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 32, "--tokenizer", "bytes", "--dropout", 0.1,
            "--opt", "adamw", "--lr", 0.001, "--global-batch-size", 8, "--nproc-per-node", 2, "--epochs", 2, "--save-steps", 4, *fast()],
           [("launcher", 6), (1, 11), (0, 15)])
    finish("resume")


main()
