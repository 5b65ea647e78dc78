# SPDX-License-Identifier: Apache-2.0
"""--resume as a user sees it: other numbers of ranks continue with the same losses; damaged, foreign and incompatible
checkpoints are skipped or refused; a full disk causes a warning; which checkpoints are kept; a run that is being
written cannot be resumed."""
import glob
import json
import math
import os
import resource
import shutil
import signal
import subprocess

from helper import (DPTRAIN, Folder, check, dptrain, environment, fast, finish, make_pictures, make_set, read_run, records, safetensors,
                    sanitized, start, write_safetensors)

FAST = fast()


def run(name, *flags, code=0, says=(), **more):
    p = dptrain(*flags, **more)
    check(p.returncode == code and all(s in p.stderr for s in says),
          "%s: exit %d, wanted %d and %r: %s" % (name, p.returncode, code, says, p.stderr))
    return p


def folder_of(runs):
    return next(e.path for e in os.scandir(os.path.join(runs, "default")))


def steps_of(runs):
    return sorted(int(n.split("-")[1]) for n in os.listdir(os.path.join(folder_of(runs), "checkpoints")) if n.startswith("step-"))


def losses(runs):
    return read_run(runs)["series"].get(("train/loss", -1), {})


def other_ranks(tmp):
    """Resumes from step 5 of a momentum run on two ranks, in f64 on ref with batch norm over all ranks."""
    os.mkdir(os.path.join(tmp, "small"))
    data = make_set(os.path.join(tmp, "small"), 40, 4, size=8)
    runs = os.path.join(tmp, "two")
    common = ["--data-path", data, "--model", "resnet20", "--backend", "ref", "--sync-bn", "--lr", 0.1, "--global-batch-size", 6,
              "--max-steps", 10, "--augment", "crop,flip"]
    run("two ranks", *common, "--nproc-per-node", 2, "--save-steps", 5, "--runs-dir", runs)
    want = losses(runs)
    check(sorted(want) == list(range(1, 11)), "two ranks: ten losses")
    for ranks in (1, 2, 3):
        other = os.path.join(tmp, "from%d" % ranks)
        run("%d ranks" % ranks, *common, "--nproc-per-node", ranks, "--runs-dir", other, "--resume",
            os.path.join(folder_of(runs), "checkpoints", "step-5"), says=("continuing after step 5",))
        got = losses(other)
        check(sorted(got) == [6, 7, 8, 9, 10], "%d ranks: steps %s" % (ranks, sorted(got)))
        for step in got:
            check(abs(got[step] - want[step]) <= 1e-9 * want[step],
                  "%d ranks: loss of step %d is %.17g, undisturbed %.17g" % (ranks, step, got[step], want[step]))


def edit_state(path, change):
    """Edits a checkpoint's state and removes its checksum, which old checkpoints do not have."""
    with open(os.path.join(path, "state.json"), encoding="utf-8") as f:
        state = json.load(f)
    change(state)
    del state["crc32c"]
    with open(os.path.join(path, "state.json"), "w", encoding="utf-8") as f:
        json.dump(state, f)


def kept_checkpoints(tmp, data, common):
    """Returns the folder of a run with checkpoints 4 and 6, the first of them kept as the best."""
    runs = os.path.join(tmp, "kept")
    run("limits", *common, "--max-steps", 6, "--save-steps", 1, "--save-total-limit", 2, "--runs-dir", runs)
    check(steps_of(runs) == [5, 6], "--save-total-limit 2 keeps %s" % steps_of(runs))
    runs = os.path.join(tmp, "best")
    run("best", *common, "--epochs", 3, "--save-best", "epoch/val_loss", "--save-steps", 1, "--save-total-limit", 1, "--runs-dir", runs)
    values = read_run(runs)["series"][("epoch/val_loss", -1)]
    best = 2 * min(values, key=lambda epoch: (values[epoch], epoch)) # two steps per epoch
    check(steps_of(runs) == sorted({best, 6}), "--save-best: %s of %s" % (steps_of(runs), values))
    run("another series", *common, "--epochs", 4, "--save-best", "epoch/top1", "--save-total-limit", 1, "--runs-dir", runs, "--resume",
        folder_of(runs))
    with open(os.path.join(folder_of(runs), "checkpoints", "step-8", "state.json"), encoding="utf-8") as f:
        got = json.load(f)["best"]
    check(got == {"value": read_run(runs)["series"][("epoch/top1", -1)][4], "step": 8}, "the best of another series: %s" % got)
    runs = os.path.join(tmp, "none")
    p = run("none", *common, "--max-steps", 1, "--save-total-limit", 0, "--runs-dir", runs)
    check(not os.path.exists(os.path.join(folder_of(runs), "checkpoints")), "--save-total-limit 0 writes none")
    check("\nno checkpoint and no weights are kept (--save-total-limit 0)\n" in p.stdout, "--save-total-limit 0 says so: %s" % p.stdout)
    p = run("weights alone", *common, "--max-steps", 1, "--save-total-limit", 0, "--save-weights", os.path.join(tmp, "alone"), "--runs-dir", runs)
    check("are kept" not in p.stdout, "--save-weights keeps them: %s" % p.stdout)


def nonfinite_is_never_best(tmp, data, common):
    """A running mean of -inf: training is well, every evaluation has a loss of nan. No accuracy counted there is a best one."""
    weights, runs = os.path.join(tmp, "spoilt.safetensors"), os.path.join(tmp, "never-best")
    run("weights", *common, "--max-steps", 1, "--save-weights", weights, "--runs-dir", os.path.join(tmp, "first"))
    tensors = safetensors(weights)
    tensors["bn1.running_mean"][1][0] = -math.inf
    write_safetensors(weights, [(name, "F32" if values.typecode == "f" else "I64", shape, values.tobytes()) for name, (shape, values) in tensors.items()])
    for key in ("epoch/top1", "epoch/val_loss"):
        folder = os.path.join(runs, key.replace("/", "-"))
        p = run(key, *common, "--epochs", 3, "--init-from", weights, "--save-best", key, "--runs-dir", folder, says=("evaluation loss is nan",))
        check("val loss nan" in p.stdout and "-nan" not in p.stdout, "a loss of nan has no sign: %s" % p.stdout)
        series = read_run(folder)["series"]
        check(all(math.isnan(v) for v in series["epoch/val_loss", -1].values()) and steps_of(folder) == [6],
              "--save-best %s of evaluations that are not finite keeps %s: %s" % (key, steps_of(folder), series["epoch/val_loss", -1]))
    for ranks in (1, 2):
        run("--test-only, %d ranks" % ranks, *common, "--init-from", weights, "--test-only", "--nproc-per-node", ranks, code=1,
            says=("the evaluation loss is nan",))
    if "fp16" in "".join(line for line in dptrain("backends").stdout.splitlines() if line.startswith("cpu")) and "cpu" in FAST:
        # fp16 continues for ten steps after a loss of nan, so epochs end with it.
        tensors["fc.weight"][1][:] = tensors["fc.weight"][1].__class__("f", [math.inf] * len(tensors["fc.weight"][1]))
        write_safetensors(weights, [(name, "F32" if values.typecode == "f" else "I64", shape, values.tobytes()) for name, (shape, values) in tensors.items()])
        p = run("fp16", *common, "--epochs", 2, "--init-from", weights, "--precision", "fp16", "--runs-dir", os.path.join(tmp, "signless"))
        check("train loss nan" in p.stdout and "-nan" not in p.stdout + p.stderr, "the mean loss of an epoch has no sign: %s" % p.stdout)


def best_without_its_series(tmp, common):
    """A series that the run does not record would never choose a checkpoint."""
    text = os.path.join(tmp, "text")
    os.mkdir(text)
    with open(os.path.join(text, "t.txt"), "w", encoding="ascii") as f:
        f.write("a text to learn from " * 20)
    words = ["--data-path", text, "--model", "gpt2-124m", "--n-layer", 1, "--n-head", 1, "--n-embd", 8, "--block-size", 8, "-b", 2, *FAST]
    for flags, key, says in ((["--synthetic", "--model", "resnet20"], "epoch/top1", "has no samples"), (common, "val/top1", "--eval-steps"),
                             (words, "val/loss", "--eval-steps"), (words, "epoch/top1", "model of tokens"),
                             ([*common, "--eval-steps", 1], "val/perplexity", "model of images")):
        run("--save-best without its series", *flags, "--max-steps", 1, "--save-best", key, "--runs-dir", tmp, code=2,
            says=("--save-best " + key, says))


def bad_checkpoints_are_refused(tmp, data, common):
    runs = os.path.join(tmp, "refused")
    common = [*common, "--runs-dir", runs, "--run-name", "r"]
    run("the run", *common, "--max-steps", 4, "--save-steps", 2)
    newest = os.path.join(folder_of(runs), "checkpoints", "step-4")
    more = [*common, "--max-steps", 6]
    for flag, value in (("--lr", 0.2), ("--seed", 3), ("--momentum", 0.5), ("--model", "resnet56"), ("--label-smoothing", 0.1),
                        ("--conv-algo", "direct")):
        run(flag, *more, flag, value, "--resume", "auto", code=2, says=("begun with " + flag,))
    run("another global batch", *more, "--global-batch-size", 10, "--resume", "auto", code=2, says=("--global-batch-size 20",))
    os.mkdir(os.path.join(tmp, "others"))
    other = make_set(os.path.join(tmp, "others"), 40, 20, size=12, seed=9)
    run("other data", *more, "--data-path", other, "--resume", newest, code=2, says=("with other data",))
    run("no such path", *more, "--resume", os.path.join(tmp, "nowhere"), code=2, says=("nowhere: No such file",))
    run("a folder without a checkpoint", *more, "--resume", tmp, code=2, says=("has no checkpoint; give the folder of a run",))
    run("auto without a name", *common[:-2], "--max-steps", 6, "--resume", "auto", code=2, says=("--run-name",))
    with open(os.path.join(newest, "model.safetensors"), "r+b") as f:
        f.truncate(1000)
    run("truncated, by its path", *more, "--resume", newest, code=2, says=("model.safetensors: is damaged",))
    run("truncated, auto", *more, "--resume", "auto", says=("skipped: ", "is damaged", "continuing after step 2"))
    with open(os.path.join(folder_of(runs), "checkpoints", "step-6", "state.json"), "r+", encoding="utf-8") as f:
        text = f.read()
        f.seek(0)
        f.write(text.replace('"samples": ', '"samples":1'))
    run("another state, auto", *more, "--resume", "auto", says=("step-6/state.json: is damaged: its checksum", "continuing after step 2"))
    for folder in ("step-2", "step-6"):
        edit_state(os.path.join(folder_of(runs), "checkpoints", folder), lambda s: s.update(run_id="f" * 32))
    run("foreign, auto", *more, "--resume", "auto", says=("belongs to another run", "begins again"))
    check(sorted(losses(runs)) == [1, 2, 3, 4, 5, 6], "at the end: steps %s" % sorted(losses(runs)))


def killed_at_once(tmp, common):
    """Killed when the journal had only its first line: the run continued from step 1 records its params."""
    runs = os.path.join(tmp, "early")
    common = [*common, "--runs-dir", runs, "--run-name", "r", "--max-steps", 1, "--save-total-limit", 0]
    run("the run", *common)
    want = read_run(runs)["params"]
    del want["data_files_left_out"]  # the runs are in the data folder, so there are more files the second time
    for name in os.listdir(folder_of(runs)):
        if name.startswith("events.") or name.endswith(".journal"):
            path = os.path.join(folder_of(runs), name)
            os.truncate(path, sum(len(r) + 16 for r in list(records(path))[:2])) # the version and the header
    check("lr" not in read_run(runs)["params"], "the journal is truncated before its params")
    run("again", *common, "--resume", "auto", says=("begins again",))
    got = read_run(runs)["params"]
    same = {k: v for k, v in got.items() if k not in ("resume", "data_files_left_out")} == want
    check(same, "params of a restarted run: %s, not %s" % (got, want))


def full_disk(tmp, data, common):
    """A limit on the size of files simulates a full disk: journals fit, tensors do not."""
    runs = os.path.join(tmp, "full")
    common = [*common, "--runs-dir", runs, "--run-name", "r"]
    run("room", *common, "--max-steps", 2)
    p = subprocess.run([DPTRAIN, *map(str, common), "--max-steps", "6", "--save-steps", "1", "--resume", "auto"], env=environment(), timeout=100,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, restore_signals=False,
                       preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                           resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))))
    check(p.stderr.count("training continues") == 1, "a full disk is reported once: %s" % p.stderr)
    check(p.returncode == 1 and "model.safetensors" in p.stderr, "weights that cannot be written: exit %d: %s" % (p.returncode, p.stderr))
    check(sorted(losses(runs)) == [1, 2, 3, 4, 5, 6], "training continues to its end: %s" % sorted(losses(runs)))
    check(os.listdir(os.path.join(folder_of(runs), "checkpoints")) == ["step-2"], "only the older checkpoint exists")
    run("space again", *common, "--max-steps", 6, "--resume", "auto", says=("continuing after step 2",))


def being_written(tmp, data, common):
    runs = os.path.join(tmp, "busy")
    common = [*common, "--runs-dir", runs, "--run-name", "r", "--max-steps", 100000]
    p = start(*common, "--resume", "auto", "--print-freq", 1)
    for line in p.stdout:
        if " step " in line:
            break
    run("a run that is being written", *common, "--resume", "auto", code=2, says=("is being written by another process",))
    p.send_signal(signal.SIGUSR1)
    p.communicate(timeout=60)
    check(p.returncode == 75, "preempted: exit %d" % p.returncode)
    q = start(*common, "--resume", "auto", "--print-freq", 1)
    for line in q.stdout:
        if " step " in line:
            break
    q.send_signal(signal.SIGINT)
    _, err = q.communicate(timeout=60)
    check(q.returncode == 130 and "continuing after step" in err, "interrupted: exit %d: %s" % (q.returncode, err))
    steps = sorted(losses(runs))
    check(steps == list(range(1, len(steps) + 1)) and steps_of(runs)[-1] == len(steps), "checkpoints %s of %d steps" % (steps_of(runs), len(steps)))


def during_evaluation(tmp):
    """Asked to stop during an evaluation: the continuation evaluates the epoch, and no result is lost."""
    os.mkdir(os.path.join(tmp, "long"))
    data = make_set(os.path.join(tmp, "long"), 16, 300 if sanitized() else 3000, size=20) # which take about as long
    common = ["--data-path", data, "--model", "resnet20", "--global-batch-size", 8, "--epochs", 2, "--eval-steps", 2, "--deterministic", "--run-name", "r",
              "--print-freq", 1, *FAST]
    one, two = os.path.join(tmp, "whole"), os.path.join(tmp, "asked")
    run("undisturbed", *common, "--runs-dir", one)
    p = start(*common, "--runs-dir", two)
    for line in p.stdout:
        if "step 2/2" in line:
            break
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=60)
    check(p.returncode == 75, "asked to stop while evaluating: exit %d: %s" % (p.returncode, err))
    run("continued", *common, "--runs-dir", two, "--resume", "auto", says=("continuing after step 2",))
    want, got = read_run(one)["series"], read_run(two)["series"]
    for key in ("epoch/train_loss", "epoch/val_loss", "epoch/top1", "train/loss", "val/loss", "val/top1"):
        check(got.get((key, -1)) == want[(key, -1)], "%s: %s instead of %s" % (key, got.get((key, -1)), want[(key, -1)]))


def kernels_of(runs, step):
    with open(os.path.join(folder_of(runs), "checkpoints", "step-%d" % step, "state.json"), encoding="utf-8") as f:
        return json.load(f)["kernels"]


def same_kernels(tmp, data, common):
    """A run keeps the kernels chosen by timing, whatever the cache contains later: the same bits."""
    cache = os.path.join(tmp, "cache")
    flags = [*common, "--augment", "crop,flip", "--workers", 1]
    run("choosing", *flags, "--max-steps", 1, "--runs-dir", os.path.join(tmp, "chosen"), env={"XDG_CACHE_HOME": cache})
    picks = os.path.join(cache, "dptrain", "cpu-picks-13")
    if not os.path.exists(picks):
        return # this backend does not time kernels
    with open(picks, encoding="utf-8") as f:
        keys = [line.split("\t")[0] for line in f]
    with open(picks, "w", encoding="utf-8") as f:
        f.writelines("%s\tanother\n" % key for key in keys) # not a library: its first choice is used
    one, two = os.path.join(tmp, "uncut"), os.path.join(tmp, "cut")
    run("uncut", *flags, "--max-steps", 6, "--runs-dir", one, env={"XDG_CACHE_HOME": cache})
    run("cut", *flags, "--max-steps", 6, "--save-steps", 3, "--runs-dir", two, env={"XDG_CACHE_HOME": cache})
    chosen = kernels_of(two, 3)
    check(chosen and set(chosen.values()) == {"another"}, "the chosen kernels: %s" % chosen)
    shutil.rmtree(os.path.join(folder_of(two), "checkpoints", "step-6"))
    run("goes on", *flags, "--max-steps", 6, "--runs-dir", two, "--resume", os.path.join(folder_of(two), "checkpoints", "step-3"),
        env={"XDG_CACHE_HOME": os.path.join(tmp, "empty")}, says=("continuing after step 3",))
    check(kernels_of(two, 6) == chosen, "kernels after the resume: %s instead of %s" % (kernels_of(two, 6), chosen))
    for name in ("model.safetensors", "optimizer.safetensors"):
        files = [os.path.join(folder_of(r), "checkpoints", "step-6", name) for r in (one, two)]
        check(open(files[0], "rb").read() == open(files[1], "rb").read(), "different bits in %s" % name)


def exchange(folder, one, two):
    for a, b in ((one, "exchanged"), (two, one), ("exchanged", two)):
        os.rename(os.path.join(folder, a), os.path.join(folder, b))


def another_set(tmp):
    """Pictures with the same names: exchanged classes, replaced files, a class by another name; also where the evaluation's part
    alone changed, and with equal sizes where the content is compared (OpenTau#502, NVIDIA-NeMo/RL#2519)."""
    data, hashed, runs = (os.path.join(tmp, n) for n in ("pictures", "hashed", "pictures-runs"))
    for folder in (data, hashed):
        make_pictures(folder, "ab", train=6, val=2)
    for k, file in enumerate(glob.glob(os.path.join(data, "*", "*", "*.png"))):
        os.truncate(file, 1000 + k)
    changes = {"classes": lambda d: [exchange(os.path.join(d, s), "a", "b") for s in ("train", "val")],
               "evaluation alone": lambda d: exchange(os.path.join(d, "val"), "a/000.png", "b/001.png"),
               "a picture": lambda d: shutil.copy(os.path.join(d, "train", "a", "001.png"), os.path.join(d, "train", "a", "000.png")),
               "a name": lambda d: [os.rename(os.path.join(d, s, "b"), os.path.join(d, s, "c")) for s in ("train", "val")]}
    for source, flags in ((data, []), (hashed, ["--hash-content"])):
        common = ["--model", "resnet20", "--image-size", 16, "-b", 4, "--run-name", os.path.basename(source), "--runs-dir", runs, *flags, *FAST]
        run("pictures", "--data-path", source, *common, "--epochs", 1)
        for name, change in changes.items():
            other = os.path.join(tmp, "other")
            shutil.copytree(source, other)
            change(other)
            run("another set: %s %s" % (name, flags), "--data-path", other, *common, "--epochs", 2, "--resume", "auto", code=2, says=("with other data",))
            shutil.rmtree(other)
        moved = shutil.move(source, source + "-moved")
        run("a moved set", "--data-path", moved, *common, "--epochs", 2, "--resume", "auto", says=("continuing after step 3",))


def a_copied_run(tmp, data, common):
    """A copy of a run's folder anywhere: the new run is in the folder of runs, not next to the copy."""
    runs, other, copy = (os.path.join(tmp, n) for n in ("copied-from", "copied-to", os.path.join("copies", "backup", "run7")))
    run("the run", *common, "--max-steps", 1, "--runs-dir", runs)
    shutil.copytree(folder_of(runs), copy)
    for path in (copy, os.path.join(copy, "checkpoints", "step-1")):
        run("its copy", *common, "--max-steps", 2, "--resume", path, env={"DPTRACK_RUNS_DIR": other}, says=("is not in " + other,))
        check(os.listdir(os.path.join(tmp, "copies")) == ["backup"] and sorted(losses(other)) == [2], "a run from a copy: steps %s" % sorted(losses(other)))
        shutil.rmtree(other)
    run("the run itself", *common, "--max-steps", 2, "--resume", folder_of(runs), env={"DPTRACK_RUNS_DIR": other})
    check(sorted(losses(runs)) == [1, 2] and not os.path.exists(other), "the run goes on in its folder of runs: steps %s" % sorted(losses(runs)))


def where_from(tmp, data, common):
    """--init-from takes folders and files; --mean and --std override the file."""
    runs = os.path.join(tmp, "source")
    run("source", *common, "--max-steps", 1, "--runs-dir", runs, "--mean", "0.25", "--std", "0.5")
    folder, tests = folder_of(runs), []
    cut_off = os.path.join(tmp, "cut-off")
    shutil.copytree(os.path.join(folder, "checkpoints"), os.path.join(cut_off, "checkpoints"))
    older = os.path.join(tmp, "older") # the name in runs of older versions
    os.mkdir(older)
    shutil.copy(os.path.join(folder, "model.safetensors"), os.path.join(older, "weights.safetensors"))
    for source in (folder, os.path.join(folder, "checkpoints", "step-1"), os.path.join(folder, "model.safetensors"), cut_off, older):
        tests.append(run(source, "--data-path", data, "--init-from", source, "--test-only", *FAST).stdout.split(",")[:3])
    check(all(t == tests[0] for t in tests), "--init-from of folder and file: %s" % tests)
    other = run("another mean", "--data-path", data, "--init-from", folder, "--test-only", "--mean", "0.5", *FAST).stdout.split(",")[:3]
    check(other != tests[0], "--mean is without effect")
    run("nothing there", "--data-path", data, "--init-from", tmp, "--test-only", code=2, says=("no model.safetensors",))
    for flag, value in (("--mean", "0.1,0.2"), ("--std", "0"), ("--std", "x")):
        run(flag, *common, "--max-steps", 1, flag, value, "--runs-dir", runs, code=2, says=("%s '%s'" % (flag, value),))


def main():
    with Folder() as tmp:
        data = make_set(tmp, 40, 20, size=12)
        common = ["--data-path", data, "--model", "resnet20", "--global-batch-size", 20, *FAST]
        other_ranks(tmp)
        kept_checkpoints(tmp, data, common)
        nonfinite_is_never_best(tmp, data, common)
        bad_checkpoints_are_refused(tmp, data, common)
        killed_at_once(tmp, common)
        full_disk(tmp, data, common)
        being_written(tmp, data, common)
        during_evaluation(tmp)
        same_kernels(tmp, data, common)
        another_set(tmp)
        a_copied_run(tmp, data, common)
        where_from(tmp, data, common)
        best_without_its_series(tmp, common)
        shutil.rmtree(tmp)
    finish("checkpoints")


main()
