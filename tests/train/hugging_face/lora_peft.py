#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LoRA as PEFT has it, on folders with random weights: dptrain continues PEFT's adapters with its loss and all their
gradients in f64 to 1e-9 and its logits; PEFT loads dptrain's adapters unedited, and transformers its merged folders, with
equal logits. Several classes, targets, tied and untied, with and without rslora. Skipped where PEFT cannot be
installed. `lora_peft.py NAME...` runs some of the table."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helper import Folder, check, distance, dptrain, finish, norm, read_run, safetensors  # noqa: E402
from transformers_venv import install, python  # noqa: E402

SIZES = {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
ALL = "all-linear"
CASES = {  # class, what differs from SIZES, LoraConfig, flags that say the same
    "llama": ("Llama", {}, {"r": 4, "lora_alpha": 8, "target_modules": ALL}, ["--lora", "4"]),
    "llama, q and v": ("Llama", {"tie_word_embeddings": True, "attention_bias": True}, {"r": 3, "lora_alpha": 5, "target_modules": ["q_proj", "v_proj"]},
                       ["--lora", "3,5", "--lora-targets", "q,v"]),
    "qwen3": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}, {"r": 8, "lora_alpha": 16, "target_modules": ALL, "use_rslora": True},
              ["--lora", "8", "--rslora"]),
    "qwen2": ("Qwen2", {}, {"r": 64, "lora_alpha": 1, "target_modules": ["down_proj", "o_proj"]}, ["--lora", "64,1", "--lora-targets", "o_proj,down"]),
    "gemma3": ("Gemma3Text", {"head_dim": 8, "query_pre_attn_scalar": 12, "sliding_window": 32, "num_hidden_layers": 3, "sliding_window_pattern": 2},
               {"r": 4, "lora_alpha": 8, "target_modules": ALL}, ["--lora", "4,8", "--lora-targets", ALL]),
    "phi3": ("Phi3", {}, {"r": 4, "lora_alpha": 8, "target_modules": ALL}, ["--lora", "4"]),
    "phi3, qkv": ("Phi3", {}, {"r": 1, "lora_alpha": 2.5, "target_modules": ["qkv_proj"]}, ["--lora", "1,2.5", "--lora-targets", "qkv"]),
}

MAKE = '''
import json, sys, torch, transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
cases, sizes, folder = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
real = torch.float32
tokens = torch.randint(0, 61, (3, 17), generator=torch.Generator().manual_seed(5))
save_file({"tokens": tokens}, folder + "/batch.safetensors")
for i, (title, (name, kwargs, lora, _)) in enumerate(cases.items()):
    torch.manual_seed(3)
    torch.float32 = torch.float = real
    torch.Tensor.float = lambda t: t.to(real)
    config = getattr(transformers, name + "Config")(**{**sizes, **kwargs, "initializer_range": 0.2})
    config._attn_implementation = "eager"
    cls = getattr(transformers, name.replace("Text", "") + "ForCausalLM")
    base = "%s/%d" % (folder, i)
    cls(config).save_pretrained(base)
    m = get_peft_model(cls.from_pretrained(base, attn_implementation="eager"), LoraConfig(**lora, init_lora_weights=False, task_type="CAUSAL_LM"))
    m.save_pretrained(base + ".adapter")
    with torch.no_grad():
        logits = m.eval()(tokens[:, :-1]).logits.double()
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = lambda t: t.double()
    exact = get_peft_model(cls(config).double(), LoraConfig(**lora, init_lora_weights=False, task_type="CAUSAL_LM")).double()
    exact.load_state_dict(m.state_dict())
    out = exact(tokens[:, :-1]).logits
    loss = cross_entropy(out.reshape(-1, 61), tokens[:, 1:].reshape(-1))
    loss.backward()
    grads = {n.replace(".default", ""): p.grad.contiguous() for n, p in exact.named_parameters() if p.grad is not None}
    save_file({**grads, "loss": loss.detach().reshape(1), "logits": logits.contiguous()}, base + ".want")
'''
READ = '''
import json, sys, torch, warnings
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
warnings.simplefilter("error", UserWarning)
tokens = load_file(sys.argv[1] + "/batch.safetensors")["tokens"][:, :-1]
def logits(m):
    with torch.no_grad():
        return m.eval()(tokens).logits.double().contiguous()
for base, run, merged, out in json.loads(sys.argv[2]):
    def whole(folder):
        m, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32, attn_implementation="eager")
        assert not {k: v for k, v in info.items() if v}, info
        return m
    m = PeftModel.from_pretrained(whole(base), run + "/adapter")
    assert m.peft_config["default"].base_model_name_or_path == base
    save_file({"adapter": logits(m), "merged": logits(whole(merged))}, out)
'''


def run(title, *args):
    p = dptrain(*args)
    return check(p.returncode == 0, "%s: exit %d: %s" % (title, p.returncode, p.stderr[-2000:]))


def compare_gradients(title, adapter, batch, want, tmp):
    path = os.path.join(tmp, "g.safetensors")
    if not run(title, "--init-from", adapter, "--batch-from", batch, "--backend", "ref", "--max-steps", 1, "--opt", "sgd", "--dump-grads", path,
               "--runs-dir", os.path.join(tmp, "first")):
        return
    loss = read_run(os.path.join(tmp, "first"))["series"][("train/loss", -1)][1]
    check(abs(loss - want["loss"][1][0]) <= 1e-9 * abs(loss), "%s: loss %.15g, PEFT's %.15g" % (title, loss, want["loss"][1][0]))
    got, names = safetensors(path), set(want) - {"loss", "logits"}
    total = norm([norm(want[n][1]) for n in names])
    check(names and names == set(got), "%s: gradients of %s" % (title, sorted(names ^ set(got))))
    for n in sorted(names & set(got)):
        d = distance(got[n][1], want[n][1], total)
        check(d <= 1e-9, "%s: gradient of %s is %.2e from PEFT's" % (title, n, d))


def logits_of(title, weights, batch, out):
    return run(title, "--init-from", weights, "--batch-from", batch, "--test-only", "--save-outputs", out, "--backend", "cpu") and safetensors(out)["logits"][1]


def same_logits(title, got, want, limit):
    if got:
        d = distance(got, want, norm(want))
        check(d <= limit, "%s: logits are %.2e apart" % (title, d))


def train_and_merge(title, folder, batch, flags, own):
    """Returns the folders of the run and of the merged model; None: failed."""
    merged = os.path.join(own, "merged")
    if not run(title, "--init-from", folder, "--batch-from", batch, "--backend", "cpu", "--max-steps", 5, "--lr", 1e-2, "--runs-dir", os.path.join(own, "runs"),
               *flags):
        return None
    made = read_run(os.path.join(own, "runs"))
    losses = made["series"][("train/loss", -1)]
    check(losses[5] < losses[1], "%s: losses %s" % (title, losses))
    if not run(title, "merge", "--init-from", folder, "--adapter", os.path.join(made["folder"], "adapter"), "--out", merged):
        return None
    return made["folder"], merged


def main():
    chosen = {k: v for k, v in CASES.items() if k in sys.argv[1:] or not sys.argv[1:]}
    install()
    with Folder() as tmp:
        batch, runs = os.path.join(tmp, "batch.safetensors"), []
        if not python(MAKE, json.dumps(chosen), json.dumps(SIZES), tmp):
            finish("LoRA and PEFT")
        for i, (title, case) in enumerate(chosen.items()):
            folder, own = os.path.join(tmp, str(i)), os.path.join(tmp, "own%d" % i)
            want = safetensors(folder + ".want")
            os.makedirs(own)
            compare_gradients(title, folder + ".adapter", batch, want, own)
            same_logits(title, logits_of(title, folder + ".adapter", batch, os.path.join(own, "o")), want["logits"][1], 1e-5)
            made = train_and_merge(title, folder, batch, case[3], own)
            if made:
                runs.append((title, folder, *made, own))
        if runs and python(READ, tmp, json.dumps([(folder, run, merged, os.path.join(own, "theirs")) for _, folder, run, merged, own in runs])):
            for title, _, made, merged, own in runs:
                theirs = safetensors(os.path.join(own, "theirs"))
                same_logits(title + ", adapter in PEFT", logits_of(title, made, batch, os.path.join(own, "o2")), theirs["adapter"][1], 1e-5)
                same_logits(title + ", merged", theirs["merged"][1], theirs["adapter"][1], 1e-5)
    finish("LoRA and PEFT")


main()
