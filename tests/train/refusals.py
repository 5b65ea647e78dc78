# SPDX-License-Identifier: Apache-2.0
"""Unusable input is reported in one line; evaluation every few steps; a non-finite loss ends the run."""
import os
import struct
import subprocess

from helper import DPTRAIN, Folder, check, dptrain, environment, fast, finish, make_set, read_run, sanitized, write_safetensors


def written(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}."""
    write_safetensors(path, [(name, *rest) for name, rest in tensors.items()])
    return path


def refused(what, words, *flags, code=2):
    p = dptrain(*flags, *fast())
    line = p.stderr.strip().splitlines()
    check(p.returncode == code and line and all(w in p.stderr for w in words), "%s: exit %d: %s" % (what, p.returncode, p.stderr))


def bad_batches(tmp):
    def images(value, label, channels=3):
        count = 2 * channels * 32 * 32
        pixels = struct.pack("<%df" % count, *([0.5] * (count - 1) + [value]))
        return {"images": ("F32", [2, channels, 32, 32], pixels), "labels": ("I64", [2], struct.pack("<2q", 0, label))}

    base = ["--model", "resnet20", "--max-steps", 1, "--runs-dir", tmp, "--batch-from"]
    path = os.path.join(tmp, "b.safetensors")
    refused("NaN", ["image 1", "nan", "not finite"], *base, written(path, images(float("nan"), 1)))
    refused("label", ["label 12 of sample 1"], *base, written(path, images(0, 12)), "--classes", 10)
    refused("channels", ["5 channels", "at most 4"], *base, written(path, images(0, 1, channels=5)))
    tokens = {"tokens": ("I64", [1, 5], struct.pack("<5q", 1, 2, 3, 99, 4))}
    refused("token", ["token 99", "0 to 49"], "--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--vocab-size", 50,
            "--max-steps", 1, "--runs-dir", tmp, "--batch-from", written(path, tokens))


def without_proc(tmp):
    """The modules are next to the program, whose folder /proc tells."""
    inside = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
    # a sanitizer itself needs /proc
    if sanitized() or fast()[1] != "cpu" or subprocess.run([*inside, "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode:
        return
    flags = ["--synthetic", "--model", "resnet20", "--image-size", "32", "-b", "4", "--max-steps", "1", "--runs-dir", os.path.join(tmp, "np")]
    for command in ([], ["plan"]):
        p = subprocess.run([*inside, DPTRAIN, *command, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, env=environment())
        check(p.returncode == 2 and "backend cpu is not installed (no dptrain_cpu.so next to the program, whose folder is unknown because /proc is missing, in "
              in p.stderr and p.stderr.count("\n") == 1, "without /proc: exit %d: %s" % (p.returncode, p.stderr))


def sharing():
    """Options that need fsdp, and numbers of ranks that cannot be divided as requested."""
    base = ["--synthetic", "--model", "resnet20", "--max-steps", 1, "--nproc-per-node", 2]
    for flags in (["--zero-stage", 2], ["--fsdp-unit", "layer"], ["--no-reshard-after-forward"], ["--shard-degree", 1], ["--gather-prefetch", 2],
                  ["--sync-each-batch"]):
        refused("%s without fsdp" % flags[0], [flags[0].replace("--no-", "--"), "only --strategy fsdp"], *base, *flags)
    refused("devices of several processes", ["--strategy dp: needs one rank", "2"], *base, "--strategy", "dp")
    one = ["--synthetic", "--model", "resnet20", "--max-steps", 1]
    refused("devices without dp", ["--dp-devices", "only --strategy dp"], *one, "--dp-devices", 2)
    dp = [*one, "--strategy", "dp", "--dp-devices", 3]
    refused("devices without samples", ["--dp-devices 3", "2 samples"], *dp, "-b", 2)
    refused("devices and passes", ["--grad-accum-steps 2", "--strategy dp"], *dp, "-b", 6, "--grad-accum-steps", 2)
    refused("devices' batch norm", ["--sync-bn"], *dp, "--sync-bn")
    fsdp = [*base, "--strategy", "fsdp"]
    refused("a shard degree that does not divide the ranks", ["--shard-degree 3", "2 ranks"], *fsdp, "--shard-degree", 3)
    refused("stage 1 gathers once", ["--gather-prefetch", "--zero-stage 3"], *fsdp, "--zero-stage", 1, "--gather-prefetch", 2)
    refused("stage 1 keeps whole gradients", ["--sync-each-batch", "--zero-stage 2 or 3"], *fsdp, "--zero-stage", 1, "--sync-each-batch")
    refused("deterministic sums need complete gradients", ["--sync-each-batch", "--deterministic", "2 passes"], *fsdp, "--sync-each-batch",
            "--deterministic", "--grad-accum-steps", 2)


def without_effect(tmp):
    """Flags without effect are reported."""
    one = ["--synthetic", "--model", "resnet20", "-b", 2, "--max-steps", 1, "--runs-dir", tmp]
    small = ["--synthetic", "--model", "resnet18", "--image-size", 32, "--classes", 10, "--max-steps", 1, "-b", 1, "--runs-dir", tmp]
    refused("batch norm over one value", ["batch norm over one value", "layer4", "--batch-size"], *small)
    os.mkdir(os.path.join(tmp, "few"))
    few = make_set(os.path.join(tmp, "few"), 5, 4)
    refused("batch norm over one value in the last batch", ["the last batch of an epoch, with --batch-size 2", "one value"], "--data-path", few,
            "--model", "resnet18", "-b", 2, "--epochs", 1, "--runs-dir", tmp)
    refused("batch norm over one value of each rank", ["batch norm over one value", "--sync-bn"], *small, "--nproc-per-node", 2)
    refused("batch norm over one value of all ranks in the last batch", ["the last batch of an epoch", "one value", "--drop-last"],
            "--data-path", few, "--model", "resnet18", "-b", 2, "--nproc-per-node", 2, "--sync-bn", "--epochs", 1, "--runs-dir", tmp)
    p = dptrain(*small, "--nproc-per-node", 2, "--sync-bn", *fast())
    check(p.returncode == 0, "batch norm over the values of two ranks: exit %d: %s" % (p.returncode, p.stderr))
    p = dptrain(*one, "--threads", 4096, timeout=60)
    check(p.returncode == 0 and "each uses no more threads" in p.stderr and "of 4096 threads" not in p.stdout,
          "more threads than cores: exit %d: %s%s" % (p.returncode, p.stdout, p.stderr))
    refused("a trace of steps beyond the last", ["--trace-steps 5", "step 1"], *one, "--trace-steps", 5)
    refused("a device of the CPU", ["--device 0", "has no devices"], *one, "--device", 0, code=0)


def few_classes(tmp):
    """With 5 classes or fewer top-5 is always 100 %: it is neither printed nor recorded, and chooses no checkpoint."""
    os.mkdir(os.path.join(tmp, "three"))
    data = ["--data-path", make_set(os.path.join(tmp, "three"), 24, 6, classes=3), "--model", "resnet20", "-b", 8, "--epochs", 1]
    runs = os.path.join(tmp, "three", "runs")
    refused("--save-best of top-5", ["epoch/top5", "100 %", "epoch/top1"], *data, "--save-best", "epoch/top5", "--runs-dir", runs)
    p = dptrain(*data, "--runs-dir", runs, "--run-name", "three", *fast())
    check(p.returncode == 0 and "top-1 " in p.stdout and "%, top-5" not in p.stdout, "three classes: exit %d: %s%s" % (p.returncode, p.stdout, p.stderr))
    check(("epoch/top1", -1) in read_run(runs)["series"] and ("epoch/top5", -1) not in read_run(runs)["series"], "series of three classes")
    check("goal" not in read_run(runs)["params"], "the goal of a plan is no param of a run without one")


def learning_rates(tmp, data):
    """A schedule whose end moves (Lightning#18618 and others lost it), and a warm-up that does not end (prime-rl#968)."""
    base = ["--data-path", data, "--model", "resnet20", "-b", 8, "--runs-dir", os.path.join(tmp, "rates"), "--run-name", "r", "--resume", "auto"]
    said = [dptrain(*base, "--epochs", n, *fast()).stderr for n in (1, 2, 2)]
    check(["follows the new end of training: step 4 has 0.05\n" in s for s in said] == [False, True, False], "a moved end: %s" % said)
    p = dptrain("--synthetic", "--model", "resnet20", "-b", 2, "--max-steps", 3, "--warmup-steps", 9, "--runs-dir", tmp, *fast())
    check(p.returncode == 0 and "the learning rate reaches 0.03 of --lr 0.1" in p.stderr, "a long warm-up: exit %d: %s" % (p.returncode, p.stderr))


def unwritable(tmp, data):
    """Files that cannot be written at the end are reported before the first step, and a device is never replaced by a
    file."""
    base = ["--data-path", data, "--model", "resnet20", "-b", 8, "--epochs", 1, "--runs-dir", os.path.join(tmp, "unwritable")]
    pipe = os.path.join(tmp, "pipe")
    os.mkfifo(pipe)
    for flag in ("--save-weights", "--save-outputs", "--dump-grads"):
        for target, words in ((os.path.join(tmp, "nowhere", "x"), "No such file"), (tmp, "not a regular file"), (pipe, "not a regular file")):
            p = dptrain(*base, flag, target, *fast())
            check(p.returncode == 2 and target in p.stderr and words in p.stderr, "%s %s: exit %d: %s" % (flag, target, p.returncode, p.stderr))
            check("step 1" not in p.stdout, "%s %s: refused before the first step: %s" % (flag, target, p.stdout))
    refused("a hardware file", [pipe, "Not a directory"], "bench", "--calibrate", "--out", os.path.join(pipe, "x"), code=1)
    refused("outputs of an evaluation", ["No such file"], *base, "--test-only", "--save-outputs", os.path.join(tmp, "nowhere", "x"))
    inside = os.path.join(tmp, "fresh", "w.safetensors")
    p = dptrain(*base[:-2], "--max-steps", 1, "--runs-dir", os.path.dirname(inside), "--save-weights", inside, *fast())
    check(p.returncode == 0 and os.path.exists(inside), "a file in the runs folder, which the run creates: exit %d: %s" % (p.returncode, p.stderr))


def evaluation(tmp, data):
    runs = os.path.join(tmp, "eval")
    p = dptrain("--data-path", data, "--model", "resnet20", "-b", 8, "--epochs", 2, "--eval-steps", 3, "--deterministic", "--lr-scheduler", "constant",
                "--runs-dir", runs, *fast())
    check(p.returncode == 0, "--eval-steps: exit %d: %s" % (p.returncode, p.stderr))
    series = read_run(runs)["series"]
    loss, top1 = series.get(("val/loss", -1), {}), series.get(("val/top1", -1), {})
    check(sorted(loss) == [3, 6] and sorted(top1) == [3, 6], "evaluated after steps 3 and 6: %s %s" % (loss, top1))
    check(loss.get(6) == series.get(("epoch/val_loss", -1), {}).get(2), "the end of the epoch is evaluated once: %s" % loss)
    weights = os.path.join(tmp, "w.safetensors")
    common = ["--data-path", data, "--model", "resnet20", "-b", 8, "--deterministic", "--lr-scheduler", "constant", *fast()]
    dptrain(*common, "--epochs", 2, "--max-steps", 3, "--save-weights", weights, "--runs-dir", os.path.join(tmp, "part"))
    p = dptrain(*common, "--test-only", "--init-from", weights)
    check("loss %.6f" % loss.get(3, -1) in p.stdout, "weights of step 3 alone evaluate to %s, recorded is %s" % (p.stdout, loss))


def documented():
    """Keys of series in `dptrain --help all`, which is also the man page."""
    lines = iter(dptrain("--help", "all").stdout.splitlines())
    for line in lines:
        if line.startswith("Series of a run"):
            break
    words = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    return {w for w in words if "/" in w}


def series(tmp, data):
    """Runs of all kinds record exactly the series that the help lists."""
    keys = set()
    text = os.path.join(tmp, "text")
    os.mkdir(text)
    with open(os.path.join(text, "t.txt"), "w", encoding="ascii") as f:
        f.write("what is recorded is documented " * 9)
    refused("bytes end at 255", ["--vocab-size 255: expected at least the vocabulary of %s, 256" % text], "--data-path", text, "--model", "gpt2-124m",
            "--vocab-size", 255, "--seq-len", 8, "-b", 1, "--runs-dir", tmp)
    fp16 = ["--precision", "fp16"] if "cpu" in fast() else []
    kinds = (["--data-path", data, "--model", "resnet20", "-b", 8, "--nproc-per-node", 2, *fp16],
             ["--data-path", text, "--model", "gpt2-124m", "--n-layer", 1, "--n-head", 1, "--n-embd", 8, "--block-size", 8, "-b", 8,
              "--optim-offload"])
    for number, flags in enumerate(kinds):
        runs = os.path.join(tmp, "series%d" % number)
        p = dptrain(*flags, "--epochs", 1, "--eval-steps", 1, "--save-steps", 1, "--report-to", "none", "--system-interval", 0.1,
                    "--runs-dir", runs, *fast(), env={"DPTRACK_URL": "http://127.0.0.1:1", "DPTRAIN_TEST_SLOW_LOADER": "100"})
        check(p.returncode == 0 and "server" not in p.stderr, "series: exit %d: %s" % (p.returncode, p.stderr))
        keys |= {key for key, _ in read_run(runs)["series"]}
    # Series of damaged images; of fp16; of several machines; of shards; of machines with sensors; of runs of seconds;
    # of pipelines; of watched steps in parts; of GPUs; of dptrain doctor; of --auto.
    rare = {"doctor/bare_step", "plan/step", "data/unreadable", "train/loss_scale", "train/skipped_steps", "comm/bytes_nodes", "data/remote_bytes",
            "data/cache_bytes", "data/peer_bytes", "data/peer_failures", "data/refetched_bytes", "data/local_bytes", "data/requests",
            "data/retries", "system/power_watts", "system/clock_mhz", "system/cpu_throttled_percent", "system/memory_wait_percent",
            "system/loop_us", "phase/bubble", "train/noise_scale",
            "memory/device_bytes", *("system/gpu_" + name for name in (
                "util_percent", "memory_bytes", "power_watts", "temperature_c", "sm_mhz", "throttle_percent"))}
    check(keys <= documented() and documented() <= keys | rare, "series and help differ: %s, %s" % (sorted(keys - documented()), sorted(documented() - keys)))


def main():
    with Folder() as tmp:
        bad_batches(tmp)
        data = make_set(os.path.join(tmp), 24, 6)
        train = ["--data-path", data, "--model", "resnet20", "--runs-dir", os.path.join(tmp, "runs")]
        refused("larger than the set", ["larger than the training set", "24"], *train, "-b", 25)
        without_proc(tmp)
        sharing()
        without_effect(tmp)
        refused("a model far too large, before its kernels are timed", ["the plan needs", "no batch size"], "--synthetic", "--model", "gpt-175b",
                "--max-steps", 1, "-b", 1)
        refused("no epoch", ["epochs"], *train, "--epochs", 0)
        refused("warm-up without epochs", ["--lr-warmup-epochs 1", "--warmup-steps"], "--synthetic", "--model", "resnet20", "--max-steps", 1,
                "--lr-warmup-epochs", 1)
        refused("two warm-ups", ["give one of them"], *train, "--lr-warmup-epochs", 1, "--warmup-steps", 3)
        refused("no evaluation set", ["eval"], "--synthetic", "--model", "resnet20", "--max-steps", 1, "--eval-steps", 1)
        refused("loss", ["the loss is ", "at step ", "in the samples of rank ", "of epoch 1"], *train, "-b", 8, "--nproc-per-node", 2, "--lr", 1e6, "--act", "gelu",
                "--lr-scheduler", "constant", "--global-batch-size", 8, "--opt", "sgd", "--wd", 1e6, "--max-steps", 40, code=1)
        few_classes(tmp)
        learning_rates(tmp, data)
        unwritable(tmp, data)
        evaluation(tmp, data)
        series(tmp, data)
    finish("refusals")


main()
