# SPDX-License-Identifier: Apache-2.0
"""Folders of decoders that cannot be trained, and data that do not fit them, are refused in one line that names the file, the
key and what to do; and what fine-tuning such a folder sets without flags."""
import array
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from folders import SIZES, make_folder  # noqa: E402
from helper import Folder, check, dptrain, fast, finish, read_run, safetensors, write_safetensors  # noqa: E402

CASES = [  # kind of folder, keys that change (None: removed), further flags, words of the message
    ("qwen3", {"architectures": ["MixtralForCausalLM"]}, [], ["config.json: architectures", "MixtralForCausalLM", "Qwen3ForCausalLM"]),
    ("qwen3", {"hidden_size": None}, [], ["config.json: hidden_size", "is missing", "expected"]),
    ("qwen3", {"num_attention_heads": "4"}, [], ["config.json: num_attention_heads", "expected an integer"]),
    ("qwen3", {"quantization_config": {"bits": 4}}, [], ["config.json: quantization_config", "cannot be trained"]),
    ("qwen3", {"num_experts": 8}, [], ["config.json: num_experts", "cannot be trained"]),
    ("qwen3", {"hidden_act": "relu"}, [], ["config.json: hidden_act", "relu", "silu"]),
    ("qwen3", {"rope_scaling": {"type": "dynamic", "factor": 2}}, [], ["config.json: rope_type", "dynamic", "yarn"]),
    ("qwen3", {"intermediate_size": 48}, [], ["model.safetensors", "gate_proj.weight", "file [40,24], model [48,24]"]),
    ("qwen3", {"attention_bias": True}, [], ["model.safetensors", "12 missing", "q_proj.bias"]),
    ("qwen3", {"num_hidden_layers": 2}, [], ["model.safetensors", "11 unexpected", "model.layers.2"]),
    ("qwen3", {"tie_word_embeddings": True}, [], ["model.safetensors", "1 unexpected", "lm_head.weight"]),
    ("qwen3", {"vocab_size": 200}, [], ["config.json: vocab_size 200", "up to 255", "tokenizer"]),
    ("qwen3", {}, ["--seq-len", 100], ["config.json: max_position_embeddings 64", "--seq-len 64"]),
    ("qwen3", {}, ["--dropout", 0.1], ["--dropout", "omit it"]),
    ("qwen3", {}, ["--n-layer", 5], ["--n-layer 5 contradicts", "config.json"]),
    ("gemma3", {"final_logit_softcapping": 30.0}, [], ["config.json: final_logit_softcapping", "soft caps", "Gemma 2"]),
]


def refused(title, folder, words, *flags):
    p = dptrain("--init-from", folder, *flags, "--backend", "ref", "--epochs", 1, "--report-to", "none", "--runs-dir", folder + "-runs")
    last = p.stderr.strip().split("\n")[-1]
    check(p.returncode == 2 and all(w in last for w in words), "%s: expected %s: exit %d: %s" % (title, words, p.returncode, p.stderr))


def shards(folder, words):
    """An index that names no file, a file that is not there, a file elsewhere."""
    os.remove(os.path.join(folder, "model.safetensors"))
    named = '{"weight_map": {"model.norm.weight": "%s"}}'
    for text, expected in (("{", ["index.json:1"]), (named % "model-1.safetensors", ["model-1.safetensors", "is missing", "download"]),
                           (named % "../x.safetensors", ["index.json", "not a plain file name"])):
        with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="ascii") as f:
            f.write(text)
        refused("index %s" % text, folder, expected, "--data-path", words, "--tokenizer", "bytes")


def defaults(folder, words, runs):
    """adamw, 1e-5 after a warm-up of 3 %, no decay, 32 samples a step of the model's context: printed, recorded, and computed."""
    p = dptrain("--init-from", folder, "--data-path", words, "--tokenizer", "bytes", *fast(), "--max-steps", 20, "--report-to", "none", "--runs-dir", runs)
    want = {"seq_len": "64", "global_batch_size": "32", "opt": "adamw", "lr": "1e-05", "wd": "0", "warmup_steps": "1"}
    said = " ".join("%s %s" % pair for pair in want.items())
    check(p.returncode == 0 and said in p.stderr, "defaults: exit %d: %s" % (p.returncode, p.stderr))
    run = read_run(runs)
    got = {k: str(run["params"].get(k)) for k in want}
    check(got == want, "recorded: %s" % got)
    names = [set(safetensors(os.path.join(f, "model.safetensors"))) for f in (folder, run["folder"])]
    check(names[0] == names[1], "the run's folder has the tensors of the folder, not %s" % (names[0] ^ names[1]))


def precision(folder, words, tmp):
    """bf16 where the processor has its products; a run keeps the precision in which it began, also elsewhere."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        products = "avx512_bf16" in f.read()
    here, other = {}, {"DPTRAIN_CPU_ISA": "avx2"}
    if fast()[1] != "cpu":
        return
    train = ("--init-from", folder, "--data-path", words, "--tokenizer", "bytes", *fast(), "--save-steps", 2, "--run-name", "r", "--report-to", "none")
    for title, first, then, want in (("here", here, other, "bf16" if products else "fp32"), ("AVX2", other, here, "fp32")):
        runs = os.path.join(tmp, "precision " + title)
        for i, env in enumerate((first, then)):
            p = dptrain(*train, "--max-steps", 2 + 2 * i, "--runs-dir", runs, "--resume", "auto", env=env)
            check(p.returncode == 0 and ("in which this machine computes faster" in p.stderr) == (not i and want == "bf16"),
                  "%s, part %d: exit %d: %s" % (title, i, p.returncode, p.stderr))
            check(read_run(runs)["params"].get("precision") == want, "%s, part %d: %s" % (title, i, read_run(runs)["params"].get("precision")))
        p = dptrain(*train, "--max-steps", 6, "--runs-dir", runs, "--resume", "auto", "--precision", "fp32" if want == "bf16" else "bf16")
        check(p.returncode == 2 and "was begun with --precision " + want in p.stderr, "%s, another one: exit %d: %s" % (title, p.returncode, p.stderr))


def few(folder, tmp):
    """Fewer samples than the 32 of a step: the step is all of them, also on two ranks and in stages. A batch that was given is refused."""
    words = os.path.join(tmp, "few")
    os.mkdir(words)
    for name, n in (("train.txt", 51), ("val.txt", 20)):
        with open(os.path.join(words, name), "w", encoding="ascii") as f:
            f.write("one of the words " * n)
    train = ("--init-from", folder, "--data-path", words, "--tokenizer", "bytes", *fast(), "--max-steps", 2)
    for i, flags in enumerate(((), ("--nproc-per-node", 2), ("--nproc-per-node", 2, "--strategy", "pdp"))):
        runs = os.path.join(tmp, "few%d" % i)
        p = dptrain(*train, *flags, "--report-to", "none", "--runs-dir", runs)
        said = p.stderr.strip().split("\n")[-1]
        check(p.returncode == 0 and read_run(runs)["params"].get("global_batch_size") == 14, "few %s: exit %d: %s" % (flags, p.returncode, said))
    refused("few, a batch of 20", folder, ["14 samples", "lower --global-batch-size"], *train[2:], "--global-batch-size", 20)
    refused("few, -b 20", folder, ["14 samples", "lower --batch-size"], *train[2:], "-b", 20)


def main():
    with Folder() as tmp:
        words = os.path.join(tmp, "words")
        os.mkdir(words)
        for name, n in (("train.txt", 700), ("val.txt", 20)):
            with open(os.path.join(words, name), "w", encoding="ascii") as f:
                f.write("one of the words " * n)
        for i, (name, keys, flags, expected) in enumerate(CASES):
            folder = make_folder(os.path.join(tmp, str(i)), name, SIZES)
            with open(os.path.join(folder, "config.json"), encoding="ascii") as f:
                config = {**json.load(f), **keys}
            with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as f:
                json.dump({k: v for k, v in config.items() if v is not None}, f)
            refused("%s %s" % (keys, flags), folder, expected, "--data-path", words, "--tokenizer", "bytes", *flags)
        folder, batch = make_folder(os.path.join(tmp, "good"), "qwen3", SIZES), os.path.join(tmp, "batch.safetensors")
        write_safetensors(batch, [("tokens", "I64", (1, 3), array.array("q", [1, 300, 2]).tobytes())])
        p = dptrain("--init-from", folder, "--batch-from", batch, "--backend", "ref", "--max-steps", 1, "--report-to", "none")
        check(p.returncode == 2 and "300" in p.stderr.strip().split("\n")[-1], "a token of 300: exit %d: %s" % (p.returncode, p.stderr))
        refused("no tokenizer", folder, ["has no tokenizer.json", words, "--tokenizer"], "--data-path", words)
        defaults(folder, words, os.path.join(tmp, "runs"))
        precision(folder, words, tmp)
        few(folder, tmp)
        shards(folder, words)
    finish("folders that cannot be trained")


main()
