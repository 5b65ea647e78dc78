# SPDX-License-Identifier: Apache-2.0
"""A run with every optimiser and every schedule that is stopped by SIGTERM, resumed, killed with its launcher (kill
-9) and resumed again ends with the bits of an undisturbed run: each point of train/*, parameters, moments, averages,
loss scale. On two ranks, with micro-batches of unequal size, averages, clipping, warm-up and, if the backend has fp16,
a loss scale that steps have lowered. The lists are those of the flags, so a new optimiser or schedule is tested
automatically."""
import json
import os
import struct

from helper import SOURCE, Folder, check, dptrain, fast, finish, make_set, read_run, safetensors

STEPS, ASKED, KILLED, SAVE = 10, 3, 8, 2
GPT = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 8, "--block-size", 8, "--tokenizer", "bytes", "--dropout", 0.1]
FILES = ("checkpoints/step-%d/model.safetensors" % STEPS, "checkpoints/step-%d/optimizer.safetensors" % STEPS, "model.safetensors",
         "model-ema.safetensors")
ENV = {}  # for every run: tests/gpu/whole.py sets it
EXTRA = {"sgd": ["--nesterov"]}  # options of an optimiser beyond its plain form


def choices(flag):
    with open(os.path.join(SOURCE, "schema", "config", "run-config.schema.json"), encoding="utf-8") as f:
        return [c for c in json.load(f)["properties"][flag]["enum"] if c]


def state(folder):
    with open(os.path.join(folder, "checkpoints", "step-%d" % STEPS, "state.json"), encoding="utf-8") as f:
        s = json.load(f)
    return {k: s[k] for k in ("step", "epoch", "batches_of_epoch", "best", "values")}, s["segment"]


def outcome(runs):
    """The complete result of a run: files, state, points."""
    run = read_run(runs)
    files = {}
    for name in FILES:
        with open(os.path.join(run["folder"], name), "rb") as f:
            files[name] = f.read()
    end, segment = state(run["folder"])
    points = {key: values for key, values in run["series"].items() if key[0].startswith(("train/", "val/"))}
    return files, end, points, segment


def differences(one, other):
    found = ["different bytes in " + n for n in FILES if one[0][n] != other[0][n]]
    found += ["state %s, not %s" % (other[1], one[1])] * (one[1] != other[1])
    for key in sorted(set(one[2]) | set(other[2])):
        a, b = ({step: repr(v) for step, v in o[2].get(key, {}).items()} for o in (one, other))
        found += ["%s of step %d is %s, not %s" % (key[0], s, b.get(s), a.get(s)) for s in sorted(set(a) | set(b)) if a.get(s) != b.get(s)]
    return found


def run(name, flags, runs, code, **env):
    p = dptrain(*flags, "--runs-dir", runs, "--resume", "auto", env={**ENV, **env}, timeout=300)
    return check(p.returncode == code, "%s: exit %d, not %d: %s" % (name, p.returncode, code, p.stderr))


def disturbed(name, flags):
    """Compares a disturbed run with an undisturbed one; returns the points of the latter."""
    with Folder() as tmp:
        one, other = os.path.join(tmp, "one"), os.path.join(tmp, "other")
        if not (run(name + ", undisturbed", flags, one, 0) and
                run(name + ", asked to end", flags, other, 75, DPTRAIN_TEST_DIE="launcher:%d:15" % ASKED) and
                run(name + ", killed", flags, other, -9, DPTRAIN_TEST_DIE="launcher:%d" % KILLED)):
            return None
        if not run(name + ", to the end", flags, other, 0):
            return None
        want, got = outcome(one), outcome(other)
        check(got[3] == 2, "%s: both restarts continued from a checkpoint: %d segments" % (name, got[3] + 1))
        found = differences(want, got)
        check(not found, "%s: %s" % (name, "; ".join(found[:4])))
        return want[2]


def steep(folder, data, common):
    """Weights with which the first loss scales overflow fp16: the token table, which is also the classifier, is
    multiplied."""
    with Folder() as tmp:
        path = os.path.join(folder, "steep.safetensors")
        p = dptrain(*common, "--precision", "fp32", "--data-path", data, "--max-steps", 1, "--runs-dir", tmp, "--save-weights", path,
                    env=ENV)
        check(p.returncode == 0, "initial weights: exit %d: %s" % (p.returncode, p.stderr))
    with open(path, "rb") as f:
        b = bytearray(f.read())
    n, = struct.unpack("<Q", b[:8])
    head = json.loads(b[8:8 + n])
    name = next(k for k in head if k.endswith("wte.weight"))
    begin, end = (8 + n + at for at in head[name]["data_offsets"])
    values = struct.unpack("<%df" % ((end - begin) // 4), b[begin:end])
    b[begin:end] = struct.pack("<%df" % len(values), *(1500 * v for v in values))
    with open(path, "wb") as f:
        f.write(b)
    return path


def make_words(folder):
    words = os.path.join(folder, "words")
    os.mkdir(words)
    with open(os.path.join(words, "t.txt"), "w", encoding="ascii") as f:
        f.write(" ".join("%d stops and %d goes on" % (i * i, i) for i in range(24)))
    return words


def main():
    backend = fast()
    fp16 = "cpu" in backend
    common = [*GPT, *backend]
    with Folder() as tmp:
        words, pictures = make_words(tmp), os.path.join(tmp, "pictures")
        os.mkdir(pictures)
        both = ["--run-name", "r", "--deterministic", "--nproc-per-node", 2, "--max-steps", STEPS, "--save-steps", SAVE, "--save-total-limit", 2,
                "--model-ema", "--model-ema-decay", 0.9, "--clip-grad-norm", 0.5]
        flags = [*common, "--data-path", words, "--global-batch-size", 7, "--batch-size", 2, *both]
        if fp16:
            flags += ["--precision", "fp16", "--init-from", steep(tmp, words, common)]
        for opt in choices("opt"):
            for schedule in choices("lr_scheduler"):
                shape = ["--opt", opt, "--lr-scheduler", schedule, "--warmup-steps", 2]
                shape += {"step": ["--lr-step-size", 0.3], "constant": []}.get(schedule, ["--min-lr", 1e-4])
                for more in ([], EXTRA.get(opt)) if EXTRA.get(opt) and schedule == "cosine" else ([],):
                    name = " ".join([opt, schedule, *more])
                    points = disturbed(name, [*flags, *shape, *more])
                    skipped = list((points or {}).get(("train/skipped_steps", -1), {}).values())
                    check(not points or not fp16 or 0 < skipped[-1] < STEPS // 2, "%s: some steps were skipped: %s" % (name, skipped))
        make_set(pictures, 32, 4, size=8)
        for opt in choices("opt"):
            disturbed("batch norm, " + opt, ["--model", "resnet20", *backend, "--data-path", pictures, "--augment", "crop,flip",
                                             "--global-batch-size", 7, "--batch-size", 2, "--opt", opt, *both])
    finish("stops")


if __name__ == "__main__":
    main()
