#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""transformers loads the folder of a run and of a
checkpoint of dptrain, and the weights and config.json written elsewhere, without a missing, unexpected or mismatched
key, and computes the same logits. dptrain loads what it writes from a small random config, with and without the names'
prefix, and computes the same. Skipped where it cannot be installed."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helper import Folder, check, distance, dptrain, finish, norm, read_run, safetensors  # noqa: E402
from transformers_venv import install, python  # noqa: E402

SIZES = ["--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 20, "--vocab-size", 61]
MODEL = ["--model", "gpt2-124m", *SIZES]

MAKE = '''
import sys, torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(3)
m = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=3, n_embd=24, n_positions=20, vocab_size=61, initializer_range=0.2))
for name, p in m.named_parameters():
    if p.ndim == 1:
        p.data += 0.3 * torch.randn_like(p)
m.save_pretrained(sys.argv[1])
m.transformer.save_pretrained(sys.argv[2])
save_file({"tokens": torch.randint(0, 61, (3, 17))}, sys.argv[3])
'''
READ = '''
import sys, torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
tokens = load_file(sys.argv[2])["tokens"][:, :-1]
out = {}
for name, dtype in (("f32", torch.float32), ("f64", torch.float64)):
    m, info = AutoModelForCausalLM.from_pretrained(sys.argv[1], output_loading_info=True, dtype=dtype)
    bad = {k: v for k, v in info.items() if v}
    assert not bad, bad
    assert m.config.n_head == 3 and m.config.activation_function == "gelu_new" and m.dtype == dtype
    assert type(m).__name__ == "GPT2LMHeadModel" and m.config.vocab_size == 61
    with torch.no_grad():
        out[name] = m.eval()(tokens).logits.double().contiguous()
save_file(out, sys.argv[3])
'''


def ours(weights, batch, backend, out):
    p = dptrain(*MODEL, "--init-from", weights, "--batch-from", batch, "--backend", backend, "--test-only", "--save-outputs", out)
    return check(p.returncode == 0, "%s: exit %d: %s" % (weights, p.returncode, p.stderr)) and safetensors(out)["logits"][1]


def compare(name, weights, theirs, tmp):
    for backend, kind, limit in (("ref", "f64", 1e-9), ("cpu", "f32", 1e-4)):
        got, want = ours(weights, os.path.join(tmp, "batch.safetensors"), backend, os.path.join(tmp, "o.safetensors")), theirs[kind][1]
        if got:
            d = distance(got, want, norm(want))
            check(d <= limit, "%s: logits of %s are %.2e from transformers' in %s" % (name, backend, d, kind))


def main():
    install()
    with Folder() as tmp:
        full, bare, own, batch, out = (os.path.join(tmp, n) for n in ("full", "bare", "own", "batch.safetensors", "t.safetensors"))
        os.makedirs(own)
        if not python(MAKE, full, bare, batch):
            finish("transformers")
        weights = os.path.join(own, "model.safetensors")
        p = dptrain(*MODEL, "--batch-from", batch, "--max-steps", 5, "--lr", 0.5, "--backend", "ref", "--runs-dir", os.path.join(tmp, "runs"),
                    "--init-from", os.path.join(bare, "model.safetensors"), "--save-weights", weights)
        check(p.returncode == 0, "training from their weights: exit %d: %s" % (p.returncode, p.stderr))
        run = read_run(os.path.join(tmp, "runs"))["folder"]
        for folder in (own, run, os.path.join(run, "checkpoints", "step-5")):
            if python(READ, folder, batch, out):
                compare("ours", os.path.join(folder, "model.safetensors"), safetensors(out), tmp)
        if python(READ, full, batch, out):
            theirs = safetensors(out)
            compare("theirs", os.path.join(full, "model.safetensors"), theirs, tmp)
            compare("theirs without a head", os.path.join(bare, "model.safetensors"), theirs, tmp)
    finish("transformers")


main()
