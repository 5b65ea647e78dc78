#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tests/config/lr_table.def: learning rates of PyTorch's own schedulers, step by step, with which
tests/config/lr_schedule_test compares ours. Needs torch (2.13.0 was used)."""
import torch
from torch.optim import lr_scheduler as ls

LR = 0.4


def run(case, warmup, total, main, min_lr=0.0, every=0, gamma=0.0, power=0.0, decay=0):
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)
    parts, ends = [main(opt)], []
    if decay:
        parts, ends = [ls.ConstantLR(opt, factor=1.0), *parts], [total - decay]
    if warmup:
        parts, ends = [ls.LinearLR(opt, start_factor=1 / (warmup + 1), total_iters=warmup), *parts], [warmup, *ends]
    sched = ls.SequentialLR(opt, parts, milestones=ends) if ends else parts[0]
    for step in range(1, total + 1):
        print(f"LR_ROW({case}, {warmup}, {total}, {min_lr!r}, {every}, {gamma!r}, {power!r}, {decay}, {step}, "
              f"{opt.param_groups[0]['lr']:.17g})")
        opt.step()
        sched.step()


print("/* LR_ROW(scheduler, warm-up, total, min_lr, step_every, gamma, power, decay, step, rate at peak 0.4):")
print(" * made by lr_table.py from torch.optim.lr_scheduler. */")
for warmup, total in ((0, 12), (5, 23)):
    rest = total - warmup
    run("COSINE", warmup, total, lambda o: ls.CosineAnnealingLR(o, T_max=rest, eta_min=0.01), min_lr=0.01)
    run("COSINE", warmup, total, lambda o: ls.CosineAnnealingLR(o, T_max=rest))
    run("STEP", warmup, total, lambda o: ls.StepLR(o, step_size=4, gamma=0.3), every=4, gamma=0.3)
    run("LINEAR", warmup, total, lambda o: ls.LinearLR(o, start_factor=1.0, end_factor=0.25, total_iters=rest),
        min_lr=0.1)
    run("POLYNOMIAL", warmup, total, lambda o: ls.PolynomialLR(o, total_iters=rest, power=0.9), power=0.9)
    for decay in (1, 7, rest - 1):
        run("WSD", warmup, total, lambda o, n=decay: ls.LinearLR(o, start_factor=1.0, end_factor=0.25, total_iters=n),
            min_lr=0.1, decay=decay)
    run("CONSTANT", warmup, total, lambda o: ls.ConstantLR(o, factor=1.0, total_iters=1))
