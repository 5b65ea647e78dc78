# SPDX-License-Identifier: Apache-2.0
"""LoRA without PEFT: a run writes its adapter alone, --init-from RUN continues it, dptrain merge adds it to its weights with
equal logits; what does not fit is refused in one line. lora_peft.py compares with PEFT."""
import array
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from folders import SIZES, make_folder  # noqa: E402
from helper import Folder, check, distance, dptrain, environment, finish, norm, program, read_run, safetensors, write_safetensors  # noqa: E402

TERMS = [  # flags, words of the message
    (["--lora", "0"], ["--lora '0'", "R,ALPHA"]),
    (["--lora=-4"], ["--lora '-4'"]),
    (["--lora", "4x"], ["--lora '4x'"]),
    (["--lora", "4,0"], ["--lora '4,0'"]),
    (["--lora", "4,inf"], ["--lora '4,inf'"]),
    (["--lora", "99999"], ["--lora '99999'", "65536"]),
    (["--lora", "4", "--lora-targets", "q,w"], ["--lora-targets 'w'", "q, k, v, o, gate, up, down"]),
    (["--lora", "4", "--lora-targets", "q,,v"], ["--lora-targets ''"]),
    (["--lora", "4", "--lora-targets", "qkv"], ["--lora-targets 'qkv'"]),
    (["--lora", "4", "--freeze", "*"], ["--lora", "omit --freeze"]),
    (["--rslora"], ["need --lora R"]),
]


def run(title, *flags):
    p = dptrain(*flags)
    return check(p.returncode == 0, "%s: exit %d: %s" % (title, p.returncode, p.stderr))


def refused(title, words, *flags):
    p = dptrain(*flags)
    lines = p.stderr.strip().split("\n")
    check(p.returncode == 2 and all(w in lines[-1] for w in words), "%s: expected %s: exit %d: %s" % (title, words, p.returncode, p.stderr))


def train(batch, runs, *flags):
    return ["--batch-from", batch, "--backend", "ref", "--max-steps", 3, "--save-steps", 2, "--lr", 0.02, "--report-to", "none", "--runs-dir", runs, *flags]


def logits(title, batch, out, *flags):
    return run(title, "--batch-from", batch, "--backend", "ref", "--test-only", "--save-outputs", out, *flags) and safetensors(out)["logits"][1]


def same(title, got, want, limit):
    d = distance(got, want, norm(want)) if got and want else 9
    check(d <= limit, "%s: logits are %.2e apart" % (title, d))


def sampled(*flags):
    """Bytes, which are no text: the weights are random."""
    p = subprocess.run([program(), "sample", *flags, "--tokenizer", "bytes", "--prompt", "ab", "--max-tokens", "9", "--backend", "ref", "--temperature", "0"],
                       capture_output=True, env=environment(), timeout=100)
    check(p.returncode == 0, "sample: exit %d: %s" % (p.returncode, p.stderr))
    return p.stdout


def change_config(adapter, to, **keys):
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(adapter, to)
    with open(os.path.join(to, "adapter_config.json"), encoding="utf-8") as f:
        config = {**json.load(f), **keys}
    with open(os.path.join(to, "adapter_config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    return to


def without_hash(adapter, to, drop=0):
    """A copy as another program would have written it, without the first tensors."""
    change_config(adapter, to)
    path = os.path.join(to, "adapter_model.safetensors")
    write_safetensors(path, [(n, "F64", shape, v.tobytes()) for n, (shape, v) in list(safetensors(path).items())[drop:]])
    return to


def merging(base, other, adapter, batch, tmp):
    out, spoiled = os.path.join(tmp, "merged"), os.path.join(tmp, "spoiled")
    flags = ["merge", "--init-from", base, "--adapter"]
    copied = ["config.json", "LICENSE", "Notice.txt", "USE_POLICY.md"]
    for name in [*copied[1:], "modeling_qwen3.py", "README.md"]:
        with open(os.path.join(base, name), "x", encoding="ascii") as f:
            f.write("text of %s\r\n" % name)
    os.mkfifo(os.path.join(base, "licence.pipe"))
    run("merge", *flags, adapter, "--out", out)
    check(sorted(os.listdir(out)) == sorted([*copied, "model.safetensors"]), "the merged folder has %s" % os.listdir(out))
    check(not [n for n in os.listdir(tmp) if n.startswith("merged.")], "no part remains")
    for name in copied:
        with open(os.path.join(base, name), "rb") as f, open(os.path.join(out, name), "rb") as g:
            check(f.read() == g.read(), "%s of the merged folder is that of the base" % name)
    same("merged", logits("merged", batch, os.path.join(tmp, "m"), "--init-from", out),
         logits("adapter", batch, os.path.join(tmp, "a"), "--init-from", base, "--adapter", adapter), 1e-6)
    texts = [sampled(*f) for f in (["--init-from", out], ["--init-from", base, "--adapter", adapter], ["--init-from", base])]
    check(texts[0] == texts[1] != texts[2], "sampled: %s" % texts)
    refused("merge into it again", ["--out", "is not empty"], *flags, adapter, "--out", out)
    out += "2"
    refused("another base", ["adapter_model.safetensors", "other weights than", other], "merge", "--init-from", other, "--adapter", adapter, "--out", out)
    refused("a missing tensor", ["lora_A.weight is missing or does not fit"], *flags, without_hash(adapter, spoiled, 1), "--out", out)
    refused("another rank", ["does not fit"], *flags, change_config(adapter, spoiled, r=5), "--out", out)
    refused("DoRA", ["adapter_config.json: use_dora"], *flags, change_config(adapter, spoiled, use_dora=True), "--out", out)
    refused("no adapter", ["no run with LoRA", "--adapter DIR"], "merge", "--init-from", base, "--out", out)
    refused("no base", ["needs --init-from BASE"], "merge", "--out", out)
    check(not os.path.exists(out), "a refused merge leaves nothing")


def main():
    with Folder() as tmp:
        base = make_folder(os.path.join(tmp, "qwen3"), "qwen3", SIZES)
        other = make_folder(os.path.join(tmp, "gemma3"), "gemma3", {**SIZES, "num_hidden_layers": 2})
        batch, runs, moved = os.path.join(tmp, "batch.safetensors"), os.path.join(tmp, "runs"), os.path.join(tmp, "moved")
        write_safetensors(batch, [("tokens", "I64", (2, 9), array.array("q", [(7 * i) % 250 for i in range(18)]).tobytes())])
        for flags, words in TERMS:
            refused(" ".join(flags), words, "--init-from", base, *train(batch, runs, *flags))
        refused("no decoder", ["--init-from with the folder of a decoder"], *train(batch, runs, "--model", "gpt2-124m", "--lora", 4))
        run("a rank above the width", "--init-from", base, *train(batch, runs, "--lora", "40,3", "--lora-targets", "q_proj,down"))
        shutil.rmtree(runs)
        run("first", "--init-from", base, *train(batch, runs, "--lora", 4, "--run-name", "r"))
        made = read_run(runs)
        losses, folder = made["series"][("train/loss", -1)], made["folder"]
        check(losses[3] < losses[1] and str(made["params"]["lr"]) == "0.02" and made["params"]["lora"] in (4, "4"), "losses %s, %s" % (losses, made["params"]))
        for at in (folder, os.path.join(folder, "checkpoints", "step-2")):
            check(sorted(os.listdir(os.path.join(at, "adapter"))) == ["adapter_config.json", "adapter_model.safetensors"] and
                  not os.path.exists(os.path.join(at, "model.safetensors")), "%s holds the adapter alone" % at)
        want, adapter = logits("run", batch, os.path.join(tmp, "w"), "--init-from", folder), os.path.join(folder, "adapter")
        for title, flags in (("adapter's folder", ["--init-from", adapter]), ("both", ["--init-from", base, "--adapter", adapter]),
                             ("checkpoint", ["--init-from", os.path.join(folder, "checkpoints", "step-3")])):
            same(title, logits(title, batch, os.path.join(tmp, "o"), *flags), want, 0)
        again = os.path.join(tmp, "again")
        run("continued", "--init-from", folder, *train(batch, again))
        check(read_run(again)["series"][("train/loss", -1)][1] < losses[3], "the continued run begins where the first ended")
        refused("other terms", ["contradict", "--lora 4"], "--init-from", folder, *train(batch, again, "--lora", 8))
        refused("another base", ["other weights than", other], "--init-from", other, *train(batch, again, "--adapter", adapter))
        refused("another class", ["tensors do not fit the adapter"], "--init-from", other,
                *train(batch, again, "--adapter", without_hash(adapter, os.path.join(tmp, "foreign"))))
        merging(base, other, adapter, batch, tmp)
        os.rename(base, moved)
        refused("a base that moved", ["its weights are not at", base, "--init-from FOLDER --adapter"], "--init-from", folder, *train(batch, again))
        flags = train(batch, runs, "--lora", 4, "--run-name", "r", "--resume", "auto")
        run("resumed, moved", "--init-from", moved, *flags, "--max-steps", 4)
        with open(os.path.join(moved, "model.safetensors"), "r+b") as f:
            f.seek(-8, 2)
            f.write(b"\x01\x02\x03\x3e")
        refused("resumed on other weights", ["other weights than", moved], "--init-from", moved, *flags, "--max-steps", 5)
    finish("LoRA")


main()
