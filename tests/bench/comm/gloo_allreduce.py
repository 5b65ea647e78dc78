# SPDX-License-Identifier: Apache-2.0
"""Seconds of gloo's all-reduce of f32 in PyTorch, for tests/bench/comm/compare: gloo_allreduce.py BYTES ROUNDS, with
torchrun's variables."""
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
x = torch.zeros(int(sys.argv[1]) // 4)
dist.all_reduce(x)
dist.barrier()
start = time.perf_counter()
for _ in range(int(sys.argv[2])):
    dist.all_reduce(x)
own = torch.tensor([(time.perf_counter() - start) / int(sys.argv[2])], dtype=torch.float64)
dist.all_reduce(own, op=dist.ReduceOp.MAX)
if dist.get_rank() == 0:
    print("%.9f" % own.item())
