# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch computes for a small GPT (pre-norm blocks, learned positions, GELU in its tanh form), for tests/train.

    pip install torch==2.13.0 numpy safetensors
    python3 make_gpt.py                 writes the files next to this script

Weights are drawn here in f32 (so that both programs start from the same numbers), norm gains and biases random.
Everything is computed in f64. The model is written with plain tensor operations, so that dropout masks can be
injected: they follow dptrain's definition (Philox-4x32-10 keyed by seed, step, place and the element's number in the
global batch), computed here with numpy. One sample ends in padding (-1), which is excluded from the loss and from
means.

    gpt-tied.safetensors      initial state in Hugging Face's layout
    gpt-untied.safetensors    the same with a separate lm_head
    gpt-batch.safetensors     tokens [4,17] i64
    gpt-grads.safetensors     <run>.<name>: gradients of step 1 (f64), Hugging Face's layout, of marked runs
    gpt-logits.safetensors    logits of the initial tied model (f64)
    gpt.json                  per run: flags of dptrain, losses, distances of PyTorch's own bf16 gradients from f64; versions
"""
import json
import os

import numpy as np
import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES, SEQ, CONTEXT, VOCAB, WIDTH, HEADS, LAYERS, SEED = 4, 16, 19, 61, 24, 3, 2, 7
STEPS = 20
MODEL = ["--n-layer", LAYERS, "--n-head", HEADS, "--n-embd", WIDTH, "--block-size", CONTEXT, "--vocab-size", VOCAB,
         "--seed", SEED, "--lr", 0.01, "--lr-scheduler", "constant", "--wd", 0.1]

# name: flags of dptrain, their meaning here, steps, whether gradients are stored
RUNS = {
    "tied": {"flags": [], "steps": 100, "grads": True},
    "untied": {"flags": ["--no-tie-weights"], "tied": False, "grads": True},
    "dropout": {"flags": ["--dropout", 0.1], "dropout": 0.1, "grads": True},
}


def initial_state():
    torch.manual_seed(20261120)
    state = {"transformer.wte.weight": torch.randn(VOCAB, WIDTH) * 0.3,
             "transformer.wpe.weight": torch.randn(CONTEXT, WIDTH) * 0.2}

    def linear(name, inner, outer):
        state[name + ".weight"] = torch.randn(inner, outer) * 0.25
        state[name + ".bias"] = torch.randn(outer) * 0.2

    def norm(name):
        state[name + ".weight"] = 0.5 + torch.rand(WIDTH)
        state[name + ".bias"] = torch.randn(WIDTH) * 0.2

    for i in range(LAYERS):
        h = "transformer.h.%d." % i
        norm(h + "ln_1")
        linear(h + "attn.c_attn", WIDTH, 3 * WIDTH)
        linear(h + "attn.c_proj", WIDTH, WIDTH)
        norm(h + "ln_2")
        linear(h + "mlp.c_fc", WIDTH, 4 * WIDTH)
        linear(h + "mlp.c_proj", 4 * WIDTH, WIDTH)
    norm("transformer.ln_f")
    state["lm_head.weight"] = torch.randn(VOCAB, WIDTH) * 0.3
    return state


def fnv(name):
    h = 14695981039346656037
    for c in name.encode():
        h = ((h ^ c) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return h


def philox(key, c0, c1, c2, c3):
    """Four words for each counter (numpy arrays of uint64 that hold 32 bits)."""
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1), p0 & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1)


def mask(place, step, shape, p):
    """Kept elements of a tensor whose first dimension is the sample, divided by 1 - p."""
    stream = fnv(place) ^ (step * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    count = int(np.prod(shape))
    block = np.arange((count + 3) // 4, dtype=np.uint64)
    words = philox(SEED, block & np.uint64(0xFFFFFFFF), block >> np.uint64(32),
                   np.full_like(block, stream & 0xFFFFFFFF), np.full_like(block, stream >> 32)).reshape(-1)[:count]
    return torch.from_numpy((words >= int(p * 2 ** 32)).astype(np.float64) / (1 - p)).reshape(shape)


class Gpt:
    def __init__(self, state, run, dtype=torch.float64):
        self.p = {k: v.to(dtype).requires_grad_() for k, v in state.items() if k != "lm_head.weight" or not run.get("tied", True)}
        self.drop_p = run.get("dropout", 0)

    def drop(self, x, place, step):
        return x * mask(place, step, tuple(x.shape), self.drop_p) if self.drop_p and step else x

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, (WIDTH,), self.p[name + ".weight"], self.p[name + ".bias"], 1e-5)

    def linear(self, x, name):
        return x @ self.p[name + ".weight"] + self.p[name + ".bias"]

    def attention(self, x, h, step):
        n, t, _ = x.shape
        q, k, v = (y.reshape(n, t, HEADS, -1).transpose(1, 2) for y in self.linear(x, h + "attn.c_attn").split(WIDTH, dim=2))
        s = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
        s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        y = self.drop(torch.softmax(s, dim=3), h + "attn", step) @ v
        return self.linear(y.transpose(1, 2).reshape(n, t, WIDTH), h + "attn.c_proj")

    def logits(self, tokens, step):
        x = self.p["transformer.wte.weight"][tokens] + self.p["transformer.wpe.weight"][:tokens.shape[1]]
        x = self.drop(x, "transformer.drop", step)
        for i in range(LAYERS):
            h = "transformer.h.%d." % i
            x = x + self.drop(self.attention(self.norm(x, h + "ln_1"), h, step), h + "attn.drop", step)
            y = torch.nn.functional.gelu(self.linear(self.norm(x, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh")
            x = x + self.drop(self.linear(y, h + "mlp.c_proj"), h + "mlp.drop", step)
        return self.norm(x, "transformer.ln_f") @ self.p.get("lm_head.weight", self.p["transformer.wte.weight"]).T

    def loss(self, tokens, step):
        inputs, targets = tokens[:, :-1], tokens[:, 1:].clone()
        targets[inputs < 0] = -1
        return torch.nn.functional.cross_entropy(self.logits(inputs.clamp(min=0), step).reshape(-1, VOCAB), targets.reshape(-1),
                                                 ignore_index=-1)


def optimizer(run, net):
    decay = [p for p in net.p.values() if p.ndim > 1]
    plain = [p for p in net.p.values() if p.ndim <= 1]
    return torch.optim.SGD([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=0.01, momentum=0.9)


def train(run, state, tokens):
    net = Gpt(state, run)
    opt = optimizer(run, net)
    losses, grads = [], None
    for step in range(1, run.get("steps", STEPS) + 1):
        opt.zero_grad()
        loss = net.loss(tokens, step)
        loss.backward()
        if step == 1:
            grads = {k: v.grad.clone().contiguous() for k, v in net.p.items()}
        opt.step()
        losses.append(loss.item())
    return losses, grads


def bf16_distances(state, tokens, grads):
    """Distance of autocast's gradients from f64, per tensor: the unavoidable error of bf16."""
    net = Gpt({k: v.clone() for k, v in state.items()}, {}, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = net.loss(tokens, 1)
    loss.backward()
    return {k: float((net.p[k].grad.double() - v).norm() / v.norm()) for k, v in grads.items()}


def main():
    state = initial_state()
    tokens = torch.randint(0, VOCAB, (SAMPLES, SEQ + 1))
    tokens[3, 11:] = -1
    save_file(state, os.path.join(HERE, "gpt-untied.safetensors"))
    save_file({k: v for k, v in state.items() if k != "lm_head.weight"}, os.path.join(HERE, "gpt-tied.safetensors"))
    save_file({"tokens": tokens}, os.path.join(HERE, "gpt-batch.safetensors"))
    kept, recorded = {}, {}
    for name, run in RUNS.items():
        losses, grads = train(run, state, tokens)
        recorded[name] = {"tied": run.get("tied", True), "flags": [str(f) for f in MODEL + run["flags"]], "losses": losses}
        if name == "tied":
            recorded[name]["torch_bf16_distance"] = bf16_distances(state, tokens, grads)
        if run.get("grads"):
            kept.update({name + "." + k: v for k, v in grads.items()})
    save_file(kept, os.path.join(HERE, "gpt-grads.safetensors"))
    with torch.no_grad():
        logits = Gpt(state, RUNS["tied"]).logits(tokens[:, :-1].clamp(min=0), 0)
    save_file({"logits": logits.contiguous()}, os.path.join(HERE, "gpt-logits.safetensors"))
    with open(os.path.join(HERE, "gpt.json"), "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "numpy": np.__version__, "runs": recorded}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
