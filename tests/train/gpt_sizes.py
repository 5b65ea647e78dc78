# SPDX-License-Identifier: Apache-2.0
"""The sizes of the GPT family: exact parameter counts, computed here from the architecture; describing the largest is
cheap."""
import resource

from helper import check, dptrain, finish, sanitized

SIZES = {"gpt2-124m": (12, 768, True), "gpt2-350m": (24, 1024, True), "gpt2-774m": (36, 1280, True), "gpt2-1558m": (48, 1600, True),
         "gpt-2.7b": (32, 2560, False), "gpt-6.7b": (32, 4096, False), "gpt-13b": (40, 5120, False), "gpt-34b": (48, 7680, False),
         "gpt-81b": (80, 9216, False), "gpt-175b": (96, 12288, False), "gpt-1t": (128, 25600, False)}
PUBLISHED = {"gpt2-124m": 124439808, "gpt2-774m": 774030080, "gpt2-1558m": 1557611200}


def count(layers, width, tied, vocab=50257, context=1024):
    block = 12 * width * width + 13 * width
    return layers * block + 2 * width + (vocab + context) * width + (0 if tied else vocab * width)


def counts():
    for name, size in SIZES.items():
        p = dptrain("config", "--model", name)
        want = count(*size)
        check(PUBLISHED.get(name, want) == want, "%s has the published count" % name)
        check(p.stdout.startswith("%s: %d parameters\n" % (name, want)), "%s: %d parameters: %s %s" % (name, want, p.stdout[:80], p.stderr))
    p = dptrain("config", "--model", "gpt2-124m", "--no-tie-weights", "--n-layer", 3, "--vocab-size", 100, "--block-size", 32, "--synthetic",
                "--max-steps", 1)
    check(p.stdout.startswith("gpt2-124m: %d parameters" % count(3, 768, False, 100, 32)), "flags change the count: %s" % p.stdout[:80])


def describing_is_fast():
    """The plan of a trillion parameters takes at most a second of one core and 100 MB, and equals the sum of its
    parts."""
    if sanitized():
        print("cost of a description: skipped under a sanitizer")
        return
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = dptrain("plan", "--model", "gpt-1t", "--dump=summary")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    check(p.returncode == 0 and "memory of a rank" in p.stdout, "plan of gpt-1t: exit %d: %s %s" % (p.returncode, p.stdout, p.stderr))
    check(seconds < 1, "plan of gpt-1t: %.2f s of CPU time" % seconds)
    check(after.ru_maxrss < 100 << 10, "plan of gpt-1t: %.0f MB resident" % (after.ru_maxrss / 1024))


def seconds_of_strategy(*strategy):
    """Processor time of a plan, with the placement's share in it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = dptrain("plan", "--model", "gpt2-124m", "--n-layer", 960, "--n-embd", 32, "--n-head", 2, "--vocab-size", 64, "--seq-len", 16, "--synthetic",
                "--max-steps", 1, "-b", 4, "--strategy", *strategy, "--dump=summary")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check(p.returncode == 0, "plan of 960 layers by %s: exit %d: %s" % (strategy, p.returncode, p.stderr))
    return after.ru_utime - before.ru_utime


def deep_nets():
    """A plan of dp, or of four stages of a pipeline with 16 micro-batches, costs at most a few times what one of a single device
    costs. A pass or a search for gaps that is quadratic in layers costs four to thirty times as much."""
    if sanitized():
        return
    single = min(seconds_of_strategy("single") for _ in range(2))
    for most, strategy in (3, ["dp"]), (5, ["pdp", "--nproc-per-node", 4, "--pp-stages", 4]):
        seconds = seconds_of_strategy(*strategy)
        check(seconds < most * single, "plans of 960 layers by single and %s: %.2f and %.2f s" % (strategy[0], single, seconds))


def main():
    describing_is_fast()
    deep_nets()
    counts()
    finish("gpt_sizes")


main()
