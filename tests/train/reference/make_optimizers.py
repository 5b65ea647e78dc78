# SPDX-License-Identifier: Apache-2.0
"""Records the losses of 20 steps of make_gpt.py's small GPT (f64) with every optimiser and schedule, for tests/train:
PyTorch's own where it has them; LARS and LAMB are implemented here from the papers' algorithms.

    pip install torch==2.13.0 numpy safetensors
    python3 make_optimizers.py          after make_gpt.py; writes optimizers.json next to this script
"""
import json
import os

import torch
from safetensors.torch import load_file
from torch.optim import lr_scheduler

import make_gpt

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, LR, DECAY = 20, 0.01, 0.1


class Lars(torch.optim.Optimizer):
    """You, Gitman and Ginsburg 2017, algorithm 1; the ratio is 1 when a norm is 0 and for parameters without decay."""

    def __init__(self, groups, trust, momentum):
        super().__init__(groups, {"lr": LR, "weight_decay": 0.0, "trust": trust, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                ratio, decay, norm, slope = 1.0, group["weight_decay"], p.norm().item(), p.grad.norm().item()
                if p.ndim > 1 and norm > 0 and slope > 0:
                    ratio = group["trust"] * norm / (slope + decay * norm)
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                v.copy_(group["momentum"] * v + group["lr"] * ratio * (p.grad + decay * p))
                p.sub_(v)


class Lamb(torch.optim.Optimizer):
    """You et al. 2019, algorithm 2 with phi(x) = x; the ratio is 1 when a norm is 0 and for parameters without decay."""

    def __init__(self, groups, beta1=0.9, beta2=0.999, eps=1e-6):
        super().__init__(groups, {"lr": LR, "weight_decay": 0.0, "betas": (beta1, beta2), "eps": eps})
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                m.copy_(beta1 * m + (1 - beta1) * p.grad)
                v.copy_(beta2 * v + (1 - beta2) * p.grad ** 2)
                r = m / (1 - beta1 ** self.t) / ((v / (1 - beta2 ** self.t)).sqrt() + group["eps"])
                u = r + group["weight_decay"] * p
                ratio = p.norm().item() / u.norm().item() if p.ndim > 1 and p.norm() > 0 and u.norm() > 0 else 1.0
                p.sub_(group["lr"] * ratio * u)


def sgd(groups, **more):
    return torch.optim.SGD(groups, lr=LR, **more)


def constant(opt):
    return lr_scheduler.ConstantLR(opt, factor=1.0, total_iters=1)


# name: (flags of dptrain, optimiser, scheduler, largest norm)
RUNS = {
    "sgd": ([], lambda g: sgd(g, momentum=0.9), constant, None),
    "sgd without momentum": (["--momentum", 0], sgd, constant, None),
    "nesterov": (["--nesterov"], lambda g: sgd(g, momentum=0.9, nesterov=True), constant, None),
    "adamw": (["--opt", "adamw"], lambda g: torch.optim.AdamW(g, lr=LR), constant, None),
    "adamw, other constants": (["--opt", "adamw", "--beta1", 0.8, "--beta2", 0.95, "--eps", 1e-4],
                               lambda g: torch.optim.AdamW(g, lr=LR, betas=(0.8, 0.95), eps=1e-4), constant, None),
    "adam": (["--opt", "adam"], lambda g: torch.optim.Adam(g, lr=LR), constant, None),
    "lars": (["--opt", "lars", "--trust-coef", 1], lambda g: Lars(g, 1.0, 0.9), constant, None),
    "lamb": (["--opt", "lamb"], Lamb, constant, None),
    "clipping": (["--clip-grad-norm", 0.5], lambda g: sgd(g, momentum=0.9), constant, 0.5),
    "adamw, clipping": (["--opt", "adamw", "--clip-grad-norm", 0.1], lambda g: torch.optim.AdamW(g, lr=LR), constant, 0.1),
    "lars, clipping": (["--opt", "lars", "--trust-coef", 1, "--clip-grad-norm", 0.1], lambda g: Lars(g, 1.0, 0.9), constant, 0.1),
    "lamb, clipping": (["--opt", "lamb", "--clip-grad-norm", 0.1], Lamb, constant, 0.1),
    "cosine": (["--lr-scheduler", "cosine", "--min-lr", 0.001], lambda g: sgd(g, momentum=0.9),
               lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=STEPS, eta_min=0.001), None),
    "linear": (["--lr-scheduler", "linear", "--min-lr", 0.002], lambda g: sgd(g, momentum=0.9),
               lambda o: lr_scheduler.LinearLR(o, start_factor=1.0, end_factor=0.2, total_iters=STEPS), None),
    "polynomial": (["--lr-scheduler", "polynomial", "--lr-power", 2], lambda g: sgd(g, momentum=0.9),
                   lambda o: lr_scheduler.PolynomialLR(o, total_iters=STEPS, power=2), None),
    "warm-up": (["--lr-scheduler", "cosine", "--min-lr", 0.001, "--warmup-steps", 5], lambda g: sgd(g, momentum=0.9),
                lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, start_factor=1 / 6, total_iters=5),
                                                        lr_scheduler.CosineAnnealingLR(o, T_max=STEPS - 5, eta_min=0.001)], [5]), None),
    "decay of norms and biases": (["--opt", "adamw", "--norm-weight-decay", 0.3, "--bias-weight-decay", 0.2],
                                  lambda g: torch.optim.AdamW(g, lr=LR), constant, None),
    "adamw, cosine": (["--opt", "adamw", "--lr-scheduler", "cosine"], lambda g: torch.optim.AdamW(g, lr=LR),
                      lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=STEPS), None),
}


def groups(net, flags):
    """Groups of matrices, of gains and biases of norms, and of other biases."""
    def given(flag):
        return flags[flags.index(flag) + 1] if flag in flags else 0.0

    def is_norm(name):
        return ".ln_" in name

    vectors = {k: p for k, p in net.p.items() if p.ndim <= 1}
    return [{"params": [p for p in net.p.values() if p.ndim > 1], "weight_decay": DECAY},
            {"params": [p for k, p in vectors.items() if is_norm(k)], "weight_decay": given("--norm-weight-decay")},
            {"params": [p for k, p in vectors.items() if not is_norm(k)], "weight_decay": given("--bias-weight-decay")}]


def losses(state, tokens, flags, make, schedule, largest):
    net = make_gpt.Gpt(state, {})
    params = list(net.p.values())
    opt = make(groups(net, flags))
    scheduler = schedule(opt)
    values, norms = [], []
    for step in range(1, STEPS + 1):
        opt.zero_grad()
        loss = net.loss(tokens, step)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(params, largest or float("inf")).item())
        opt.step()
        scheduler.step()
        values.append(loss.item())
    return {"losses": values, "norms": norms}


def main():
    state = load_file(os.path.join(HERE, "gpt-tied.safetensors"))
    tokens = load_file(os.path.join(HERE, "gpt-batch.safetensors"))["tokens"]
    runs = {}
    for name, (flags, make, schedule, largest) in RUNS.items():
        if "--lr-scheduler" not in flags:
            flags = flags + ["--lr-scheduler", "constant"]
        runs[name] = {"flags": [str(f) for f in flags], **losses(state, tokens, flags, make, schedule, largest)}
        print(name, runs[name]["losses"][0], runs[name]["losses"][-1], runs[name]["norms"][0])
    with open(os.path.join(HERE, "optimizers.json"), "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "runs": runs}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
