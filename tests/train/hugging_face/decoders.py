#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of decoders with random weights, made by transformers: dptrain computes its loss and all gradients in f64 to
1e-9 (with its casts to f32 lifted), on cpu its logits, and trains; transformers loads the folder of the run unedited and
computes the same logits; `dptrain sample` draws the tokens of generate(). Several classes, tied and untied, windows,
each kind of RoPE, whole and in shards. Skipped where transformers cannot be installed. `decoders.py NAME...` runs some of the table."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helper import DPTRAIN, Folder, environment, check, distance, dptrain, finish, norm, read_run, safetensors  # noqa: E402
from transformers_venv import install, python  # noqa: E402

SIZES = {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
PROMPT = "what is the matter, "
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16}
LONGROPE = {"rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.1, 1.3], "long_factor": [1.5, 2.0, 4.0]}
CASES = {  # class, what differs from SIZES
    "llama": ("Llama", {}),
    "llama, biases": ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "llama3 scaling": ("Llama", {"rope_parameters": LLAMA3, "head_dim": 8}),
    "linear scaling": ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}}),
    "yarn scaling": ("Llama", {"rope_parameters": YARN, "head_dim": 8}),
    "mistral": ("Mistral", {"sliding_window": 5, "head_dim": 8}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True, "use_sliding_window": False, "sliding_window": 8}),
    "qwen3": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "gemma": ("Gemma", {"head_dim": 8}),
    "gemma2": ("Gemma2", {"head_dim": 8, "query_pre_attn_scalar": 12, "sliding_window": 7, "num_hidden_layers": 3,
                          "attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.0}),
    "gemma3": ("Gemma3Text", {"head_dim": 8, "query_pre_attn_scalar": 12, "sliding_window": 7, "num_hidden_layers": 3,
                              "sliding_window_pattern": 2}),
    "olmo2": ("Olmo2", {}),
    "phi3": ("Phi3", {}),
    "phi3, longrope": ("Phi3", {"rope_parameters": LONGROPE, "original_max_position_embeddings": 32}),
    "phi3, longer": ("Phi3", {"rope_parameters": LONGROPE, "original_max_position_embeddings": 8}),
    "phi3, partial": ("Phi3", {"partial_rotary_factor": 0.5, "hidden_size": 32}),
    "smollm3": ("SmolLM3", {"no_rope_layers": [1, 0]}),
}

MAKE = '''
import json, sys, torch, transformers
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
cases, sizes, folder = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
def model_of(name, kwargs):
    config = getattr(transformers, name + "Config")(**{**sizes, **kwargs, "initializer_range": 0.2})
    config._attn_implementation = "eager"
    return getattr(transformers, name.replace("Text", "") + "ForCausalLM")(config)
real = torch.float32
PROMPT = sys.argv[4].encode()
tokens = torch.randint(0, 61, (3, 17), generator=torch.Generator().manual_seed(5))
save_file({"tokens": tokens}, folder + "/batch.safetensors")
for i, (title, (name, kwargs)) in enumerate(cases.items()):
    torch.manual_seed(3)
    torch.float32 = torch.float = real
    torch.Tensor.float = lambda t: t.to(real)
    m = model_of(name, kwargs)
    for p in m.parameters():
        if p.ndim == 1:
            p.data += 0.3 * torch.randn_like(p)
    m.save_pretrained("%s/%d" % (folder, i), max_shard_size="20KB" if i % 2 else "5GB")
    talks = model_of(name, {**kwargs, "vocab_size": 256, "eos_token_id": None}).eval()
    talks.save_pretrained("%s/talks%d" % (folder, i))
    said = talks.generate(torch.tensor([list(PROMPT)]), max_new_tokens=24, do_sample=False)
    open("%s/talks%d/said" % (folder, i), "wb").write(bytes(said[0].tolist()))
    with torch.no_grad():
        logits = m.eval()(tokens[:, :-1]).logits.double()
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = lambda t: t.double()
    exact = model_of(name, kwargs).double()
    exact.load_state_dict(m.state_dict())
    out = exact(tokens[:, :-1]).logits
    loss = cross_entropy(out.reshape(-1, 61), tokens[:, 1:].reshape(-1))
    loss.backward()
    grads = {n: p.grad.contiguous() for n, p in exact.named_parameters()}
    save_file({**grads, "loss": loss.detach().reshape(1), "logits": logits.contiguous()}, "%s/%d.want" % (folder, i))
'''
READ = '''
import json, sys, torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
tokens = load_file(sys.argv[1] + "/batch.safetensors")["tokens"][:, :-1]
for run, out in json.loads(sys.argv[2]):
    m, info = AutoModelForCausalLM.from_pretrained(run, output_loading_info=True, dtype=torch.float32, attn_implementation="eager")
    bad = {k: v for k, v in info.items() if v}
    assert not bad, bad
    with torch.no_grad():
        save_file({"logits": m.eval()(tokens).logits.double().contiguous()}, out)
'''


def compare_gradients(title, folder, batch, want, tmp):
    path = os.path.join(tmp, "g.safetensors")
    p = dptrain("--init-from", folder, "--batch-from", batch, "--backend", "ref", "--max-steps", 1, "--opt", "sgd", "--dump-grads", path,
                "--runs-dir", os.path.join(tmp, "first"))
    if not check(p.returncode == 0, "%s: exit %d: %s" % (title, p.returncode, p.stderr)):
        return
    loss = read_run(os.path.join(tmp, "first"))["series"][("train/loss", -1)][1]
    check(abs(loss - want["loss"][1][0]) <= 1e-9 * abs(loss), "%s: loss %.15g, transformers' %.15g" % (title, loss, want["loss"][1][0]))
    got = safetensors(path)
    names = set(want) - {"loss", "logits"}
    total = norm([norm(want[n][1]) for n in names])
    check(names == set(got), "%s: gradients of %s" % (title, sorted(names ^ set(got))))
    for n in sorted(names & set(got)):
        d = distance(got[n][1], want[n][1], total)
        check(d <= 1e-9, "%s: gradient of %s is %.2e from transformers'" % (title, n, d))


def logits_of(title, weights, batch, out, *flags):
    p = dptrain("--init-from", weights, "--batch-from", batch, "--test-only", "--save-outputs", out, *flags)
    return check(p.returncode == 0, "%s: evaluation: exit %d: %s" % (title, p.returncode, p.stderr)) and safetensors(out)["logits"][1]


def same_logits(title, got, want, limit):
    if got:
        d = distance(got, want, norm(want))
        check(d <= limit, "%s: logits are %.2e from transformers'" % (title, d))


def talks(title, folder):
    with open(os.path.join(folder, "said"), "rb") as f:
        want = f.read()
    p = subprocess.run([DPTRAIN, "sample", "--init-from", folder, "--tokenizer", "bytes", "--prompt", PROMPT, "--max-tokens", "24",
                        "--temperature", "0"], env=environment(), timeout=100, capture_output=True)
    check(p.returncode == 0 and p.stdout[:-1] == want, "%s: sample: exit %d: %r, transformers' %r" % (title, p.returncode, p.stdout, want))


def change(folder, tmp, **keys):
    """A copy of the folder with other keys; None removes one."""
    shutil.rmtree(tmp, ignore_errors=True)
    shutil.copytree(folder, tmp)
    with open(os.path.join(tmp, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config.update(keys)
    with open(os.path.join(tmp, "config.json"), "w", encoding="utf-8") as f:
        json.dump({k: v for k, v in config.items() if v is not None}, f)
    return tmp


def refuses(folder, batch, *words):
    p = dptrain("--init-from", folder, "--batch-from", batch, "--backend", "ref", "--max-steps", 1, "--report-to", "none")
    lines = p.stderr.strip().split("\n")
    check(p.returncode != 0 and all(w in lines[-1] for w in words), "expected %s: exit %d: %s" % (words, p.returncode, p.stderr))


def refusals(folder, batch, tmp):
    other = os.path.join(tmp, "other")
    for keys, words in (({"architectures": ["MambaForCausalLM"]}, ["architectures", "MambaForCausalLM", "Qwen3ForCausalLM"]),
                        ({"hidden_act": "relu"}, ["hidden_act", "relu", "silu"]), ({"hidden_size": None}, ["hidden_size", "missing"]),
                        ({"quantization_config": {"bits": 4}}, ["quantization_config"]), ({"num_key_value_heads": 3}, ["num_key_value_heads"]),
                        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2}}, ["rope_type", "dynamic"]),
                        ({"intermediate_size": 48}, ["mlp", "file [40,24], model [48,24]"]), ({"attention_dropout": 0.1}, ["attention_dropout"]),
                        ({"attention_bias": True}, ["missing", "bias"]), ({"vocab_size": 60}, ["file [61,24], model [60,24]"]),
                        ({"max_position_embeddings": 8}, ["max_position_embeddings 8", "--seq-len 8"])):
        refuses(change(folder, other, **keys), batch, *words)
    with open(os.path.join(other, "config.json"), "w", encoding="utf-8") as f:
        f.write("{")
    refuses(other, batch, "config.json:1:")


def missing_shard(folder, batch, tmp):
    other = change(folder, os.path.join(tmp, "other"))
    shard = next(n for n in sorted(os.listdir(other)) if n.startswith("model-"))
    os.remove(os.path.join(other, shard))
    refuses(other, batch, shard, "is missing", "index.json")


def main():
    chosen = {k: v for k, v in CASES.items() if k in sys.argv[1:] or not sys.argv[1:]}
    install()
    with Folder() as tmp:
        batch, runs = os.path.join(tmp, "batch.safetensors"), []
        if not python(MAKE, json.dumps(chosen), json.dumps(SIZES), tmp, PROMPT):
            finish("decoders")
        for i, title in enumerate(chosen):
            folder, own = os.path.join(tmp, str(i)), os.path.join(tmp, "own%d" % i)
            want = safetensors(folder + ".want")
            os.makedirs(own)
            compare_gradients(title, folder, batch, want, own)
            same_logits(title, logits_of(title, folder, batch, os.path.join(own, "o"), "--backend", "cpu"), want["logits"][1], 1e-5)
            low = logits_of(title + ", bf16", folder, batch, os.path.join(own, "b"), "--backend", "cpu", "--precision", "bf16")
            same_logits(title + ", bf16", low, want["logits"][1], 0.03)
            if title != "phi3, longrope":  # generate() changes its frequencies where the text becomes longer
                talks(title, os.path.join(tmp, "talks%d" % i))
            p = dptrain("--init-from", folder, "--batch-from", batch, "--backend", "cpu", "--max-steps", 5, "--opt", "adamw", "--lr", 1e-2,
                        "--runs-dir", os.path.join(own, "runs"))
            if check(p.returncode == 0, "%s: training: exit %d: %s" % (title, p.returncode, p.stderr)):
                run = read_run(os.path.join(own, "runs"))
                losses = run["series"][("train/loss", -1)]
                check(losses[5] < losses[1], "%s: losses %s" % (title, losses))
                runs.append((title, run["folder"], own))
        if "llama" in chosen:  # the first of the table
            refusals(os.path.join(tmp, "0"), batch, tmp)
        if len(chosen) > 1:
            missing_shard(os.path.join(tmp, "1"), batch, tmp)
        if runs and python(READ, tmp, json.dumps([(run, os.path.join(own, "theirs")) for _, run, own in runs])):
            for title, run, own in runs:
                theirs = safetensors(os.path.join(own, "theirs"))["logits"][1]
                same_logits(title + " trained", logits_of(title, run, batch, os.path.join(own, "o2"), "--backend", "cpu"), theirs, 1e-5)
    finish("decoders")


main()
