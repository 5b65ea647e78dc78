# SPDX-License-Identifier: Apache-2.0
"""Records the losses of 20 steps of make_resnet20.py's network (f64, batch norm in training) with optimisers that
treat norms and biases separately from matrices, and with label smoothing, for tests/train/optimizers.py.

    pip install torch==2.13.0 numpy safetensors
    python3 make_resnet_optimizers.py   after make_resnet20.py; writes resnet_optimizers.json next to this script
"""
import json
import os

import torch
from safetensors.torch import load_file

import make_optimizers as by
import make_resnet20 as base

STEPS, LR, DECAY = by.STEPS, by.LR, by.DECAY

# name: (flags of dptrain, optimiser, largest norm, smoothing, decay of norms)
RUNS = {
    "nesterov": (["--nesterov"], lambda g: by.sgd(g, momentum=0.9, nesterov=True), None, 0, 0),
    "adamw": (["--opt", "adamw"], lambda g: torch.optim.AdamW(g, lr=LR), None, 0, 0),
    "lars, clipping": (["--opt", "lars", "--trust-coef", 0.1, "--clip-grad-norm", 0.5], lambda g: by.Lars(g, 0.1, 0.9), 0.5, 0, 0),
    "lamb": (["--opt", "lamb"], by.Lamb, None, 0, 0),
    "smoothing": (["--label-smoothing", 0.1], lambda g: by.sgd(g, momentum=0.9), None, 0.1, 0),
    "decay of norms": (["--norm-weight-decay", 0.3], lambda g: by.sgd(g, momentum=0.9), None, 0, 0.3),
}


def groups(net, of_norms):
    norms = [p for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d) for p in m.parameters()]
    return [{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": DECAY},
            {"params": norms, "weight_decay": of_norms}, {"params": [net.fc.bias], "weight_decay": 0.0}]


def losses(make, largest, smoothing, of_norms):
    batch = load_file(os.path.join(base.HERE, "batch.safetensors"))
    x, labels = batch["images"].double(), batch["labels"]
    net = base.model(load_file(os.path.join(base.HERE, "weights.safetensors")), base.relu, torch.float64)
    opt = make(groups(net, of_norms))
    values, norms = [], []
    for _ in range(STEPS):
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), labels, label_smoothing=smoothing)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), largest or float("inf")).item())
        opt.step()
        values.append(loss.item())
    return {"losses": values, "norms": norms}


def main():
    runs = {name: {"flags": [str(f) for f in flags] + ["--lr-scheduler", "constant"], **losses(*rest)}
            for name, (flags, *rest) in RUNS.items()}
    for name, run in runs.items():
        print(name, run["losses"][0], run["losses"][-1])
    with open(os.path.join(base.HERE, "resnet_optimizers.json"), "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "runs": runs}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
