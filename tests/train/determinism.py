# SPDX-License-Identifier: Apache-2.0
"""Same seed, same bits: two runs with the same ranks and threads have the same losses, with --deterministic and, once
the choice of kernels is cached, without it; in f32 and bf16, on 1 and 2 ranks, with batch norm and attention. Several
ranks use one choice: the one that rank 0 measured."""
import os

from helper import Folder, check, dptrain, fast, finish, make_set, read_run

WORDS = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 64, "--block-size", 32, "--vocab-size", 97, "--dropout", 0.1,
         "--synthetic", "-b", 4, "--max-steps", 3]


def run(name, flags, env):
    with Folder() as runs:
        p = dptrain(*flags, "--runs-dir", runs, env=env)
        check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr))
        series = read_run(runs)["series"]
        return [series.get((key, -1)) for key in ("train/loss", "train/grad_norm")]


def chosen_once(data, tmp):
    """On a first start with an empty cache, each computation is timed by one rank."""
    env = {"XDG_CACHE_HOME": os.path.join(tmp, "fresh")}
    run("first start of 3 ranks", ["--data-path", data, "--model", "resnet20", "-b", 3, "--max-steps", 1, "--nproc-per-node", 3], env)
    path = os.path.join(tmp, "fresh", "dptrain", "cpu-picks-13")
    if check(os.path.exists(path), "choices are kept"):
        with open(path, encoding="utf-8") as f:
            keys = [line.split("\t")[0] for line in f]
        check(keys and len(keys) == len(set(keys)), "%d of %d computations were timed by several ranks"
              % (len(keys) - len(set(keys)), len(keys)))


def main():
    backend = fast()
    bf16 = "bf16" in "".join(line for line in dptrain("backends").stdout.splitlines() if line.startswith("cpu"))
    with Folder() as tmp:
        data = make_set(tmp, 40, 4)
        env = {"XDG_CACHE_HOME": os.path.join(tmp, "cache")}
        if "cpu" in backend:
            chosen_once(data, tmp)
        images = ["--data-path", data, "--model", "resnet20", "-b", 8, "--max-steps", 4, "--threads", 2]
        for ranks in (1, 2):
            for precision in ["fp32"] * ("cpu" in backend) + ["bf16"] * bf16 + ["fp64"] * ("cpu" not in backend):
                for kind, flags in (("images", images), ("words", WORDS)):
                    for more in (["--deterministic"], []):
                        name = "%s, %s, %d ranks %s" % (kind, precision, ranks, more)
                        all_flags = [*backend[:2], *flags, "--precision", precision, "--nproc-per-node", ranks, *more]
                        if not more:
                            run(name, [*all_flags, "--max-steps", 1], env)  # chooses kernels and caches the choice
                        first = run(name, all_flags, env)
                        check(first[0] and first == run(name, all_flags, env), "%s: two runs differ" % name)
    finish("determinism")


main()
