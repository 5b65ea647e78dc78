"""Memory is foreseen: the plan's total is what the process then takes, and a plan that does not fit is refused before
anything is allocated, with settings that do fit."""
import os
import re

from helper import Folder, check, dptrain, fast, finish, read_run, sanitized

BIG = ["--model", "resnet20", "--synthetic", "-b", 512, "--max-steps", 2, "--deterministic"]


def foreseen():
    if sanitized():
        print("memory used: not with a sanitizer's own memory")
        return
    with Folder() as runs:
        p = dptrain(*BIG, *fast(), "--runs-dir", runs, timeout=300)
        if not check(p.returncode == 0, "batch of 512: exit %d: %s" % (p.returncode, p.stderr)):
            return
        series = read_run(runs)["series"]
        planned, used = (series.get(("memory/%s_bytes" % k, 0), {}).get(2, 0) for k in ("planned", "used"))
        check(planned > 500 << 20, "a plan of %.0f MiB is large enough to judge" % (planned / 2**20))
        check(abs(used - planned) <= 0.05 * planned, "planned %.1f MiB, used %.1f MiB" % (planned / 2**20, used / 2**20))
        check("memory of a rank: " in p.stdout and "activations" in p.stdout, "the plan is printed: %s" % p.stdout)


def refused():
    flags = ["--model", "resnet20", "--synthetic", "-b", 256, "--max-steps", 1]
    with Folder() as tmp:
        p = dptrain("plan", *flags[:2], *flags[3:5], *fast(), "--dump=summary")
        need = float(re.search(r"memory of a rank: ([0-9.]+) MiB", p.stdout).group(1))
        env = {"DPTRAIN_TEST_MEMORY": str(int(0.7 * need * 2**20))}
        p = dptrain(*flags, *fast(), "--runs-dir", tmp, env=env)
        check(p.returncode == 2 and "needs" in p.stderr and "what fits: " in p.stderr, "refused: %d %s" % (p.returncode, p.stderr))
        check(not os.listdir(tmp), "nothing was recorded")
        for advice in re.findall(r"(--[^;()]*) \(", p.stderr):
            given = [f for f in flags if "--batch-size" not in advice or f not in ("-b", 256)]
            p = dptrain(*given, *advice.split(), *fast(), "--runs-dir", tmp, env=env)
            check(p.returncode == 0, "%s was said to fit: %d %s" % (advice, p.returncode, p.stderr))
        p = dptrain(*flags, *fast(), "--runs-dir", tmp, env={"DPTRAIN_TEST_MEMORY": "1000"})
        check(p.returncode == 2 and "no batch size" in p.stderr, "nothing fits: %d %s" % (p.returncode, p.stderr))


def main():
    refused()
    foreseen()
    finish("memory")


main()
