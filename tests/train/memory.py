# SPDX-License-Identifier: Apache-2.0
"""Memory planning: the plan's total is what the process then uses; a plan is hardly larger than the peak of live data,
for every model; a run that does not fit is refused before anything is allocated, with settings that do fit.
memory.py --full [WORD] checks this for the settings below whose line contains WORD (about ten minutes on two cores, 4
GB), and for every model with every precision and kind of recomputation (two minutes)."""
import itertools
import os
import re
import resource
import signal
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hugging_face"))
from folders import SIZES, make_folder
from helper import Folder, check, dptrain, environment, fast, finish, kernel_choices, program, read_run, sanitized, start

BIG = "--model resnet20 -b 512 --deterministic"
GPT = "--model gpt2-124m -b 2 --seq-len 128 --opt adamw --lr 1e-4 "
MANY = [BIG + more for more in ("", " --precision bf16 -b 1024", " --activation-checkpointing full -b 1024")]
MANY += ["--model resnet18 -b 48" + more for more in (
    "", " --opt lamb", " --opt adamw --model-ema", " --precision bf16 --grad-accum-steps 3", " --nproc-per-node 2 --sync-bn",
    " --nproc-per-node 2 --opt lars --global-batch-size 67")]
MANY += ["--model resnet50 -b 12" + more for more in (
    "", " --precision bf16", " --precision bf16 --opt adamw --model-ema --activation-checkpointing selective",
    " --activation-checkpointing full", " --grad-accum-steps 2 --clip-grad-norm 1", " --nproc-per-node 2 --precision bf16 --opt lamb",
    " --save-steps 1", " --threads 2", " -b 24 --image-size 128 --data")]
MANY += ["--model gpt2-124m -b 32 --seq-len 256 --n-layer 4 --n-head 6 --n-embd 384 --opt adamw --lr 1e-3" + more for more in (
    "", " --precision bf16 --dropout 0.1", " --no-tie-weights --activation-checkpointing selective", " --nproc-per-node 2 --grad-accum-steps 2",
    " --activation-checkpointing full --clip-grad-norm 1 --model-ema", " --threads 2")]
MANY += [GPT + more for more in (
    "", "--precision bf16", "--precision bf16 --opt lamb", "--opt sgd --activation-checkpointing full", "--precision bf16 --model-ema",
    "--grad-accum-steps 2", "--precision bf16 --nproc-per-node 2", "--nproc-per-node 2 --clip-grad-norm 1", "--save-steps 1",
    "--precision bf16 -b 8 --activation-checkpointing selective --threads 2",
    "--no-tie-weights --nproc-per-node 2 --strategy fsdp", "--nproc-per-node 4 --strategy fsdp", "--nproc-per-node 4 --strategy fsdp --zero-stage 1")]


def foreseen(line):
    with Folder() as runs:
        flags = line.replace(" --data", " --data-path /usr/share/datasets/fashion-mnist" if " --data" in line else "").split()
        backend = fast() if "--threads" not in flags else fast()[:2]
        p = dptrain(*flags, *([] if "--data" in line else ["--synthetic"]), "--max-steps", 3, *backend, "--runs-dir", runs, timeout=600)
        if not check(p.returncode == 0, "%s: exit %d: %s" % (line, p.returncode, p.stderr)):
            return
        series = read_run(runs)["series"]
        for rank in range(int(re.search("--nproc-per-node ([0-9]+)|$", line).group(1) or 1)):
            planned, used = (max(series.get(("memory/%s_bytes" % k, rank), {0: 0}).values()) for k in ("planned", "used"))
            print("planned %7.1f MiB, used %7.1f MiB, %+5.1f %%, rank %d: %s"
                  % (planned / 2**20, used / 2**20, 100 * (used - planned) / max(planned, 1), rank, line), flush=True)
            check(planned > 500 << 20, "a plan of %.0f MiB is large enough to judge: %s" % (planned / 2**20, line))
            check(abs(used - planned) <= 0.05 * planned, "planned and used differ: " + line)
        check("memory of a rank: " in p.stdout and "activations" in p.stdout, "the plan is printed: %s" % p.stdout)


def with_data():
    """The temporary memory for opening a data set, here twice its 31 MB, is not part of the plan, which holds with the kernels of
    every choice of the clock."""
    with Folder() as tmp:
        record = bytes([1]) + bytes(range(256)) * 12
        for name in ["data_batch_%d.bin" % i for i in range(1, 6)] + ["test_batch.bin"]:
            with open(os.path.join(tmp, name), "wb") as f:
                f.write(record * 2000)
        for n, (choice, env) in enumerate(kernel_choices()):
            runs, label = os.path.join(tmp, "runs%d" % n), "CIFAR-10, %s %s" % (choice, env)
            p = dptrain("--data-path", tmp, "--model", "resnet20", "-b", 8, "--nproc-per-node", 2, "--max-steps", 2, *fast(), *choice, "--runs-dir",
                        runs, env=env)
            if not check(p.returncode == 0, "%s: exit %d: %s" % (label, p.returncode, p.stderr)):
                continue
            series = read_run(runs)["series"]
            for rank in range(2):
                planned, used = (series.get(("memory/%s_bytes" % k, rank), {2: 0})[2] / 2**20 for k in ("planned", "used"))
                check(0 < planned < 25 and abs(used - planned) <= 0.1 * planned + 2,
                      "%s, rank %d: %.1f MiB planned, %.1f used" % (label, rank, planned, used))


def models():
    text = re.search(r"network to train: (.*?)\n +--act", dptrain("plan", "--help", "all").stdout, re.S).group(1)
    return sorted(set(re.findall(r"\b(?:resnet|gpt2?-)[a-z0-9.]+", text)))


def tight(full):
    """The plan compared with the peak of live data, on the fastest backend, including workspaces and batches."""
    modes = list(itertools.product(("none", "selective", "full"), ("fp32", "bf16") if fast()[1] == "cpu" else ("fp32",), (1, 2), (8, 1), (1, 3)))
    worst = 0
    for i, name in enumerate(models()):
        for ac, precision, ranks, batch, parts in modes if full else modes[i % len(modes):i % len(modes) + 1]:
            flags = ["--model", name, "-b", batch, "--precision", precision, "--nproc-per-node", ranks, "--grad-accum-steps", parts,
                     "--activation-checkpointing", ac, "--opt", "adamw"]
            p = dptrain("plan", *flags, "--synthetic", *fast()[:2], "--dump=summary")
            found = re.search(r"([0-9.]+) MiB planned, lower bound ([0-9.]+) MiB", p.stdout)
            if check(found, "plan %s: %s" % (flags, p.stderr)):
                planned, bound = map(float, found.groups())
                worst = max(worst, planned / bound)
                check(planned <= 1.05 * bound, "planned %.1f MiB, %.1f MiB are alive at once: %s" % (planned, bound, flags))
    print("plans are at most %.1f %% above the peak of live data" % (100 * (worst - 1)))


def refused():
    flags = ["--model", "resnet20", "--synthetic", "-b", 256, "--max-steps", 1]
    with Folder() as tmp:
        p = dptrain("plan", *flags[:2], *flags[3:5], *fast(), "--dump=summary")
        need = float(re.search(r"memory of a rank: ([0-9.]+) MiB", p.stdout).group(1))
        env = {"DPTRAIN_TEST_MEMORY": str(int(0.7 * need * 2**20))}
        p = dptrain(*flags, *fast(), "--runs-dir", tmp, env=env)
        check(p.returncode == 2 and "needs" in p.stderr and "what fits: " in p.stderr, "refused: %d %s" % (p.returncode, p.stderr))
        check(not os.listdir(tmp), "files in the runs folder")
        for advice in re.findall(r"(--[^;()]*) \(", p.stderr):
            given = [f for f in flags if "--batch-size" not in advice or f not in ("-b", 256)]
            p = dptrain(*given, *advice.split(), *fast(), "--runs-dir", tmp, env=env)
            check(p.returncode == 0, "%s should fit: %d %s" % (advice, p.returncode, p.stderr))
        p = dptrain(*flags, *fast(), "--runs-dir", tmp, env={"DPTRAIN_TEST_MEMORY": "1000"})
        check(p.returncode == 2 and "no batch size" in p.stderr, "nothing fits: %d %s" % (p.returncode, p.stderr))


def on_terminal(*flags, env=None, interrupt=""):
    """Runs dptrain on a terminal; sends SIGINT when `interrupt` appears there. Returns (exit code, output)."""
    above, below = os.openpty()
    p = subprocess.Popen([program(env), *map(str, flags)], env=environment(env), stdin=subprocess.DEVNULL, stdout=below, stderr=below)
    os.close(below)
    said = b""
    while True:
        try:
            more = os.read(above, 4096)
        except OSError:  # the last process has closed it
            break
        said += more
        if interrupt and interrupt.encode() in said:
            p.send_signal(signal.SIGINT)
            interrupt = ""
    os.close(above)
    return p.wait(100), said.decode()


def announced():
    """On a terminal, a run that needs more than half of the memory waits for ctrl-C before it takes it."""
    flags = ["--model", "resnet20", "--synthetic", "-b", 64, "--max-steps", 1, *fast()]
    p = dptrain("plan", *flags[:2], *flags[3:5], *fast(), "--dump=summary")
    need = float(re.search(r"memory of a rank: ([0-9.]+) MiB", p.stdout).group(1)) * 2**20
    small, large = ({"DPTRAIN_TEST_MEMORY": str(int(times * need))} for times in (1.5, 2.5))
    with Folder() as tmp:
        words = "ctrl-C stops it"
        code, said = on_terminal(*flags, "--runs-dir", tmp, env=small)
        check(code == 0 and said.count(words) == 1 and "the plan needs" in said, "on a terminal: %d %s" % (code, said))
        code, said = on_terminal(*flags, "--runs-dir", tmp, env=small, interrupt=words)
        check(code == 130, "interrupted: %d %s" % (code, said))
        code, said = on_terminal(*flags, "--runs-dir", tmp, env=large)
        check(code == 0 and words not in said, "less than half: %d %s" % (code, said))
        p = dptrain(*flags, "--runs-dir", tmp, env=small)
        check(p.returncode == 0 and words not in p.stderr, "no terminal: %d %s" % (p.returncode, p.stderr))


def limited():
    """ulimit -v is respected like a small memory; threads that do not fit in it are not started."""
    for size, flags, code, words in ((800, ["--model", "gpt2-124m", "-b", 1], 2, "(ulimit -v) leaves"),
                                     (250, ["--model", "resnet20", "-b", 4, "--print-freq", 1], 0, "step 2")):
        with Folder() as runs:
            limit = (resource.RLIMIT_AS, (size << 20, size << 20))
            p = start(*flags, "--synthetic", "--max-steps", 2, *fast(), "--runs-dir", runs, preexec_fn=lambda: resource.setrlimit(*limit))
            out, err = p.communicate(timeout=100)
            check(p.returncode == code and words in out + err, "ulimit -v of %d MiB: exit %d: %s%s" % (size, p.returncode, out, err))


def halved():
    """Fine-tuning takes the step of 32 samples in passes that fit, on each rank the same."""
    with Folder() as tmp:
        sizes = {**SIZES, "hidden_size": 256, "intermediate_size": 768, "max_position_embeddings": 512, "head_dim": 64}
        folder, words = make_folder(os.path.join(tmp, "model"), "qwen3", sizes), os.path.join(tmp, "words")
        os.mkdir(words)
        for name, n in (("train", 1300), ("val", 100)):
            with open(os.path.join(words, name + ".txt"), "w", encoding="ascii") as f:
                f.write("one of the words " * n)
        for ranks, mib, want in ((1, 4000, (32, 1)), (1, 400, (8, 4)), (2, 400, (4, 4))):
            runs = os.path.join(tmp, "runs%d-%d" % (ranks, mib))
            p = dptrain("--init-from", folder, "--data-path", words, "--tokenizer", "bytes", "--max-steps", 1, "--precision", "fp32", *fast(), "--nproc-per-node", ranks, "--runs-dir", runs,
                        env={"DPTRAIN_TEST_MEMORY": str(mib << 20)})
            if not check(p.returncode == 0, "fine-tuning in %d MiB on %d ranks: exit %d: %s%s" % (mib, ranks, p.returncode, p.stdout, p.stderr)):
                continue
            params = read_run(runs)["params"]
            got = (params["batch_size"], params["grad_accum_steps"])
            told = "a step at once would need" in p.stderr
            check(got == want and told == (want[1] > 1), "%d ranks in %d MiB: %s, expected %s: %s" % (ranks, mib, got, want, p.stderr))


def main():
    full = "--full" in sys.argv
    refused()
    announced()
    halved()
    tight(full and sys.argv[-1] == "--full")
    if sanitized():
        print("memory used: skipped, a sanitizer uses memory itself")
    else:
        limited()
        with_data()
        for line in MANY if full else [BIG]:
            if sys.argv[-1] in line or not full or sys.argv[-1] == "--full":
                foreseen(line)
    finish("memory")


main()
