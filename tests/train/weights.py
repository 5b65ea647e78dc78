# SPDX-License-Identifier: Apache-2.0
"""Weights in and out: the file that a run writes describes itself; --init-from reads it, --reset-head and --freeze
change only what they should; files of other programs need flags or are refused. An evaluation takes what it needs of
the training set from the file: sizes, and classes by their names (ultralytics/ultralytics#13936,
huggingface/pytorch-image-models#957)."""
import json
import os
import re
import shutil
import struct

from helper import Folder, check, dptrain, fast, finish, make_pictures, make_set, read_run, safetensors

FAST = fast()


def raw(path):
    """Returns header and {name: bytes} of a safetensors file."""
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(n))
        body = f.read()
    return head, {k: body[v["data_offsets"][0]:v["data_offsets"][1]] for k, v in head.items() if k != "__metadata__"}


def rewrite(source, target, change):
    """Writes the same tensors with another header."""
    head, tensors = raw(source)
    change(head)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(tensors.values()))


def train(name, *flags, code=0, says=""):
    p = dptrain(*flags, *(() if flags[0] == "shard" else FAST))
    check(p.returncode == code and says in p.stderr, "%s: exit %d, wanted %d and %r: %s" % (name, p.returncode, code, says, p.stderr))
    return p


def leaves_weights(tmp, data):
    """The file in the run's folder contains all that an evaluation needs; labels are smoothed in training alone."""
    runs = os.path.join(tmp, "runs")
    train("training", "--data-path", data, "--model", "resnet20", "--act", "gelu", "-b", 20, "--epochs", 1, "--runs-dir", runs,
          "--label-smoothing", 0.3)
    run = read_run(runs)
    path = os.path.join(run["folder"], "model.safetensors")
    meta = raw(path)[0]["__metadata__"]
    want = {"model": "resnet20", "act": "gelu", "classes": "10", "in_channels": "1", "weights": "raw", "format": "pt"}
    check({k: meta.get(k) for k in want} == want and float(meta["mean"]) > 0 and float(meta["std"]) > 0, "metadata: %s" % meta)
    p = train("evaluation", "--data-path", data, "--test-only", "--init-from", path, "-b", 20)
    said = "loss %.6f" % run["series"][("epoch/val_loss", -1)][1]
    check(said in p.stdout, "evaluation printed %r, recorded is %s" % (p.stdout, said))
    return path


def foreign(tmp, data, path):
    other = os.path.join(tmp, "foreign.safetensors")
    rewrite(path, other, lambda head: head.pop("__metadata__"))
    train("no metadata", "--data-path", data, "--test-only", "--init-from", other, code=2, says="add --model")
    train("no metadata, but the flag", "--data-path", data, "--test-only", "--model", "resnet20", "--init-from", other)
    rewrite(path, other, lambda head: head["__metadata__"].update(mean="0.1,0.2"))
    train("mean of two channels", "--data-path", data, "--test-only", "--init-from", other, code=2, says="its mean and std")
    with open(other, "wb") as f:
        f.write(b"PK\3\4 and more")
    train("PyTorch's own", "--data-path", data, "--model", "resnet20", "--test-only", "--init-from", other, code=2, says="python3 -c")


def normalises_alike(tmp, path):
    """Other images are normalised with the mean and std with which the weights were trained."""
    os.mkdir(os.path.join(tmp, "bright"))
    other = make_set(os.path.join(tmp, "bright"), 40, 20, seed=6)
    plain = os.path.join(tmp, "plain.safetensors")
    rewrite(path, plain, lambda head: [head["__metadata__"].pop(k) for k in ("mean", "std")])
    said = [train("other images", "--data-path", other, "--test-only", "--init-from", p).stdout for p in (path, plain)]
    check(said[0] != said[1], "the file's mean and std are used: %r, without them %r" % (said[0], said[1]))


def fine_tunes(tmp, path):
    os.mkdir(os.path.join(tmp, "five"))
    data = make_set(os.path.join(tmp, "five"), 40, 20, classes=5)
    common = ["--data-path", data, "--init-from", path, "-b", 20, "--max-steps", 2, "--lr", 0.5]
    train("another number of classes", *common, "--runs-dir", os.path.join(tmp, "no"), code=2, says="--reset-head")
    train("a missing name", *common, "--reset-head", "--freeze", "layer9.*", code=2, says="no parameter of resnet20")
    train("everything", *common, "--reset-head", "--freeze", "*", code=2, says="nothing is left to train")
    before = raw(path)[1]
    for patterns, ranks, changes in (("*,!fc.*", 1, lambda n: n.startswith("fc.")),
                                     ("layer2.*", 2, lambda n: not n.startswith("layer2.")),
                                     ("*.weight,*.bias,!fc.*", 1, lambda n: n.startswith("fc.") or "running" in n)):
        out = os.path.join(tmp, "tuned.safetensors")
        train("--freeze " + patterns, *common, "--reset-head", "--freeze", patterns, "--nproc-per-node", ranks, "--global-batch-size", 20,
              "--runs-dir", os.path.join(tmp, "tuned"), "--save-weights", out)
        after = raw(out)[1]
        check(list(after) == list(before), "--freeze %s: the same tensors" % patterns)
        for name in before:
            check((before[name] != after[name]) == changes(name), "--freeze %s: %s %s" %
                  (patterns, name, "stays" if changes(name) else "changes"))
        check(safetensors(out)["fc.weight"][0] == [5, 64], "the new head has 5 classes")


def evaluate(name, data, *flags, code=0, says=""):
    """Returns count, loss and top-1 of an evaluation."""
    p = train(name, "--data-path", data, "--test-only", *flags, code=code, says=says)
    found = re.search(r"evaluation of (\d+) samples: loss ([\d.]+), top-1 ([\d.]+)", p.stdout)
    check(bool(found) == (code == 0), "%s: %s" % (name, p.stdout))
    return tuple(map(float, found.groups())) if found else (0, 0, 0)


def classes_by_name(tmp):
    data, runs = make_pictures(os.path.join(tmp, "abc")), os.path.join(tmp, "by-name")
    train("pictures", "--data-path", data, "--model", "resnet20", "--image-size", 24, "--eval-resize", 30, "-b", 8, "--lr", 0.02, "--epochs", 3,
          "--runs-dir", runs)
    run = read_run(runs)
    path, want = os.path.join(run["folder"], "model.safetensors"), run["series"]
    meta = raw(path)[0]["__metadata__"]
    check(json.loads(meta["class_names"]) == ["a", "b", "c"] and meta["image_size"] == "24x24", "metadata: %s" % meta)
    for source in (("--init-from", path), ("--init-from", run["folder"]), ("--resume", run["folder"])):
        n, loss, top1 = evaluate("the same set", data, *source)
        check(n == 15 and abs(loss - want["epoch/val_loss", -1][3]) < 1e-6 and abs(top1 - want["epoch/top1", -1][3]) < 0.01,
              "evaluation by %s: %g, %g instead of %s" % (source[0], loss, top1, want["epoch/val_loss", -1]))
    parts = {}
    for names in ("a", "bc", "cd"):
        parts[names] = os.path.join(tmp, names)
        for split in ("train", "val"):
            for name in names:
                shutil.copytree(os.path.join(data, split, "c" if name == "d" else name), os.path.join(parts[names], split, name))
    for source in (("--init-from", path), ("--resume", run["folder"])):
        a, bc = evaluate("class a", parts["a"], *source), evaluate("classes b, c", parts["bc"], *source)
        for i in (1, 2):  # the mean over 5 and 10 samples is that over all
            check(abs((5 * a[i] + 10 * bc[i]) / 15 - evaluate("all", data, *source)[i]) < (1e-5, 0.01)[i - 1], "parts by %s: %s, %s" % (source[0], a, bc))
    check(evaluate("the count is given", parts["bc"], "--init-from", path, "--classes", 3) == bc, "--classes 3 counts labels anew")
    p = train("shards", "shard", "--data-path", parts["bc"], "--out", os.path.join(tmp, "shards"))
    check(evaluate("shards", os.path.join(tmp, "shards"), "--init-from", path)[:1] == bc[:1], "shards of a part")
    check(abs(evaluate("shards", os.path.join(tmp, "shards"), "--init-from", path)[1] - bc[1]) < 1e-5, "classes of shards have names in their index")
    evaluate("another count", parts["bc"], "--init-from", path, "--classes", 5, code=2, says="--classes 5")
    evaluate("a class that is unknown", parts["cd"], "--init-from", path, code=2, says="class 'd' is unknown")
    evaluate("a random classifier", data, "--init-from", path, "--reset-head", code=2, says="--reset-head")
    copy = os.path.join(tmp, "copy.safetensors")
    evaluate("a copy", parts["bc"], "--init-from", path, "--save-weights", copy)
    check(raw(copy)[0]["__metadata__"] == meta, "metadata of a copy: %s" % raw(copy)[0]["__metadata__"])
    rewrite(path, copy, lambda head: [head["__metadata__"].pop(k) for k in ("class_names", "classes")])
    evaluate("weights without names", parts["bc"], "--init-from", copy, code=2, says="use --classes 3")


def sizes_of_arrays(tmp, data, path):
    """Images that are not resized: another size is evaluated on request alone."""
    os.mkdir(os.path.join(tmp, "small"))
    small = make_set(os.path.join(tmp, "small"), 20, 10, size=20, classes=7)
    evaluate("another size", small, "--init-from", path, code=2, says="add --image-size 20")
    check(evaluate("fewer labels", small, "--init-from", path, "--image-size", 20)[0] == 10, "an evaluation without the largest labels")


def first_gains(tmp, data):
    """A step of length 0 leaves the initial weights: every gain is 1, the last of each block 0 on request. A run
    continues with either, because the flag only affects the start."""
    common = ["--data-path", data, "--model", "resnet20", "-b", 20, "--lr", 0]
    for flags, last in (([], 1), (["--zero-init-residual"], 0)):
        name, out = " ".join(["first weights", *flags]), os.path.join(tmp, "first.safetensors")
        runs = os.path.join(tmp, "first-%d" % last)
        train(name, *common, *flags, "--max-steps", 1, "--runs-dir", runs, "--save-weights", out)
        gains = {n: set(v) for n, (shape, v) in safetensors(out).items() if n.endswith(".weight") and len(shape) == 1}
        check(len(gains) == 21, "%s: %d gains" % (name, len(gains)))
        for n, values in gains.items():
            check(values == {last if ".bn2." in n else 1}, "%s: %s is %s" % (name, n, sorted(values)[:3]))
        other = ["--zero-init-residual" if last else "--no-zero-init-residual"]
        train(name + ", resumed", *common, *other, "--max-steps", 2, "--runs-dir", runs, "--resume", read_run(runs)["folder"],
              says="continuing after step 1")


def main():
    with Folder() as tmp:
        data = make_set(tmp, 40, 20)
        first_gains(tmp, data)
        path = leaves_weights(tmp, data)
        foreign(tmp, data, path)
        normalises_alike(tmp, path)
        fine_tunes(tmp, path)
        classes_by_name(tmp)
        sizes_of_arrays(tmp, data, path)
    finish("weights")


main()
