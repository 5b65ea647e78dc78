# SPDX-License-Identifier: Apache-2.0
"""Records the event files of other programs' writers, for tests/whole/foreign.py.

    pip install torch==2.13.0 tensorboard==2.21.0 tensorboardX==2.6.5
    python3 make_foreign.py

Writes runs/<experiment>/<run>/events… with PyTorch's and tensorboardX's SummaryWriter, and expected.json with the
numbers passed to them: scalars as f32, because event files store f32.
"""
import json
import math
import os
import shutil

import numpy as np
import tensorboardX
import torch
from torch.utils.tensorboard import SummaryWriter

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = os.path.join(HERE, "runs")


def series(scale):
    return [(k, scale * math.exp(-k / 7.0)) for k in range(30)]


def f32(x):
    return float(np.float32(x))


def log(writer, points):
    for step, value in points:
        writer.add_scalar("loss", value, step, walltime=1790000000.0 + step)
    writer.add_scalar("broken", float("nan"), 3, walltime=1790000003.0)
    writer.add_text("note", "written by somebody else", 0, walltime=1790000000.0)
    writer.add_histogram("weights", np.arange(10.0), 1, walltime=1790000001.0)


def main():
    shutil.rmtree(RUNS, ignore_errors=True)
    expected = {}
    torch_dir = os.path.join(RUNS, "vision", "torch")
    writer = SummaryWriter(torch_dir)
    log(writer, series(2.0))
    writer.add_scalar("acc", 0.75, 5, walltime=1790000005.0, new_style=True)
    writer.close()
    expected["vision/torch"] = {"loss": [[s, f32(v)] for s, v in series(2.0)], "acc": [[5, 0.75]]}

    writer = tensorboardX.SummaryWriter(os.path.join(RUNS, "vision", "x", "seed1"))
    log(writer, series(3.0))
    writer.close()
    expected["vision/x/seed1"] = {"loss": [[s, f32(v)] for s, v in series(3.0)]}

    writer = SummaryWriter(os.path.join(RUNS, "sweep"))
    writer.add_hparams({"lr": 0.1, "opt": "sgd", "nesterov": True}, {"hparam/acc": 0.5}, run_name="trial")
    writer.close()
    expected["Default/sweep"] = {"hparam/acc": [[0, 0.5]], "params": {"lr": "0.1", "opt": "sgd"}}
    with open(os.path.join(HERE, "expected.json"), "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "tensorboardX": tensorboardX.__version__, "runs": expected}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
