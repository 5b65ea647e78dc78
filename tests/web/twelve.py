#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twelve synthetic training runs with everything a comparison page can get wrong: a spike of one step, a run that
turns NaN, a run that fails half-way, seeds that differ in nothing else. The numbers are equal on every machine.

    twelve.py --json            prints the runs as JSON (non-finite numbers as words)
    twelve.py --events DIR      writes DIR/fashion/<name>/events.out.tfevents.*, as TensorBoard and its hparams plugin
                                would read them: scalars, params, the note as text, how the session ended
    twelve.py --record          prints the lines that twelve_record.c records through libdptrack
"""
import argparse
import json
import math
import os
import random
import struct
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tracker"))
import wire

STEPS, EPOCHS, STEPS_PER_EPOCH = 600, 10, 60
FIRST_START = 1795000000.0
SPIKE_STEP, SPIKE_VALUE = 337, 4.85
NAN_STEP, FAIL_STEPS = 400, 268

NETS = {  # best top-1, floor of the loss, seconds of an epoch, steps in which the loss falls by e
    "mlp": (.884, .33, 4.2, 38),
    "cnn": (.913, .22, 15.5, 55),
    "resnet": (.934, .15, 48., 55),
}
NOTES = {
    "spike": "One-step spike at 337: a bad shard? Same seed rerun does not show it.",
    "nan": "lr 0.8 was too much: NaN from step 400. Do not use.",
    "fail": "Rank 1 was killed (out of memory) at step 268.",
}
# name: model, strategy, ranks, precision, batch, lr, seed, what goes wrong
PLAN = """
mlp-base          mlp     single  1  fp32  128  0.05  1  -
mlp-bf16          mlp     single  1  bf16  128  0.05  1  -
cnn-base-s1       cnn     single  1  fp32  128  0.05  1  -
cnn-base-s2       cnn     single  1  fp32  128  0.05  2  -
cnn-base-s3       cnn     single  1  fp32  128  0.05  3  spike
cnn-ddp2          cnn     ddp     2  fp32  128  0.05  1  -
cnn-ddp4          cnn     ddp     4  fp32  128  0.1   1  -
cnn-ddp4-bf16     cnn     ddp     4  bf16  128  0.1   1  -
cnn-ddp4-lr0.8    cnn     ddp     4  bf16  128  0.8   1  nan
resnet-base       resnet  single  1  fp32  128  0.1   1  -
resnet-ddp4-bf16  resnet  ddp     4  bf16  256  0.2   1  -
resnet-ddp2       resnet  ddp     2  fp32  256  0.2   1  fail
"""


def train_loss(rng, floor, decay, wrong):
    """One value per step: two exponentials with correlated noise, then the failure of the run."""
    drift, count = 0, FAIL_STEPS if wrong == "fail" else STEPS
    for step in range(count):
        drift = .6 * drift + rng.gauss(0, 1) * .075
        trend = floor + (2.3 - floor) * math.exp(-step / decay) + 0.22 * math.exp(-step / 260)
        value = trend * math.exp(drift * .8) + abs(rng.gauss(0, .012))
        if wrong == "spike" and step == SPIKE_STEP:
            value = SPIKE_VALUE
        if wrong == "nan" and step > 340:
            value *= 1 + ((step - 340) / 60) ** 2 * 4
        yield math.nan if wrong == "nan" and step >= NAN_STEP else value


def epoch_values(rng, epoch, top, floor, seconds, ranks, wrong):
    step = (epoch + 1) * STEPS_PER_EPOCH
    learnt = 1 - math.exp(-(epoch + 1) / 1.9)
    top1 = top - .20 * (1 - learnt) + rng.gauss(0, .0018) - (.0 if epoch == EPOCHS - 1 else .002)
    val_loss = floor * 1.25 + (1.1 - floor) * (1 - learnt) * .6 + rng.gauss(0, .006)
    if wrong == "nan" and step > 340:
        top1 = .62 if epoch == 5 else .1
        val_loss = math.nan if step >= NAN_STEP else 3.1
    took = seconds * (1 + rng.gauss(0, .015))
    return {
        "epoch/val_loss": val_loss, "epoch/top1": top1, "epoch/seconds": took,
        "phase/data": .12 * took * (1.6 if ranks == 4 else 1), "phase/forward": .27 * took,
        "phase/backward": .44 * took, "phase/allreduce": .0 if ranks == 1 else .11 * took,
        "phase/optimizer": .06 * took, "phase/eval": .05 * took,
    }


def make_run(index, line):
    name, model, strategy, ranks, precision, batch, lr, seed, wrong = line.split()
    ranks, seed = int(ranks), int(seed)
    rng = random.Random(index * 7 + seed)
    top, floor, seconds, decay = NETS[model]
    seconds = seconds / {1: 1, 2: 1.82, 4: 3.4}[ranks] * (0.62 if precision == "bf16" else 1)
    top = top + rng.uniform(-.003, .003) - (0.0015 if precision == "bf16" else 0)
    start, step_seconds = FIRST_START + index * 1800, seconds * EPOCHS / STEPS
    points = [("train/loss", s, start + s * step_seconds, v)
              for s, v in enumerate(train_loss(rng, floor, decay, wrong))]
    steps, end = len(points), points[-1][2] + 1
    for epoch in range(EPOCHS):
        step = (epoch + 1) * STEPS_PER_EPOCH
        if step > steps:
            break
        values = epoch_values(rng, epoch, top, floor, seconds, ranks, wrong)
        points += [(key, step, start + step * step_seconds, v) for key, v in values.items()]
    return {
        "name": name, "status": "failed" if wrong == "fail" else "finished", "start": start, "end": end,
        "params": {"model": model, "strategy": strategy, "world_size": ranks, "precision": precision,
                   "batch_size": int(batch), "lr": float(lr), "seed": seed},
        "note": NOTES.get(wrong), "points": points,
    }


def make_runs():
    return [make_run(i, line) for i, line in enumerate(PLAN.strip().splitlines())]


# ---- event files: records framed with masked CRC-32C around protobuf messages (tensorboard/compat/proto) ----------

def field(number, value):
    """Encodes a field as wire.field does, also from text and from ("f", x) as float32."""
    if isinstance(value, tuple):
        return wire.varint(number << 3 | 5) + struct.pack("<f", value[1])
    return wire.field(number, value.encode() if isinstance(value, str) else value)


def event(wall, step, summary=None, version=None):
    e = field(1, wall) + (field(2, step) if step else b"")
    if version:
        e += field(3, version)
    if summary is not None:
        e += field(5, field(1, summary))
    return e


def plugin(name, content=b""):
    return field(9, field(1, field(1, name) + (field(2, content) if content else b"")))


def hparam_value(v):
    """google.protobuf.Value: number_value 2, string_value 3."""
    return field(3, v) if isinstance(v, str) else field(2, float(v))


def hparams_start(run):
    entries = b"".join(field(1, field(1, k) + field(2, hparam_value(v))) for k, v in run["params"].items())
    session = entries + field(5, run["start"])
    return field(1, "_hparams_/session_start_info") + plugin("hparams", field(3, session))


def hparams_end(run):
    session = field(1, 2 if run["status"] == "failed" else 1) + field(2, run["end"])
    return field(1, "_hparams_/session_end_info") + plugin("hparams", field(4, session))


def text_value(tag, text):
    """A string tensor: dtype 7, shape [1]."""
    tensor = field(1, 7) + field(2, field(2, field(1, 1))) + field(8, text)
    return field(1, tag + "/text_summary") + field(8, tensor) + plugin("text")


def write_events(run, folder):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "events.out.tfevents.%d.fixture.1.0" % run["start"])
    with open(path, "wb") as out:
        out.write(wire.record(event(run["start"], 0, version="brain.Event:2")))
        out.write(wire.record(event(run["start"], 0, hparams_start(run))))
        for key, step, wall, value in sorted(run["points"], key=lambda p: p[2]):
            out.write(wire.record(event(wall, step, field(1, key) + field(2, ("f", value)))))
        if run["note"]:
            out.write(wire.record(event(run["end"], 0, text_value("note", run["note"]))))
        out.write(wire.record(event(run["end"], 0, hparams_end(run))))


def record_lines(run):
    """Yields the lines that describe the run to twelve_record.c."""
    yield f"run {run['name']}"
    for key, value in run["params"].items():
        yield f"param {key} {value}" if isinstance(value, str) else f"number {key} {value!r}"
    for key, step, wall, value in sorted(run["points"], key=lambda p: p[2]):
        yield f"point {key} {step} {wall!r} {value!r}"
    if run["note"]:
        yield f"note {run['note']}"
    yield f"end {run['status']}"


def words(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--json", action="store_true")
    args.add_argument("--events", metavar="DIR")
    args.add_argument("--record", action="store_true")
    args = args.parse_args()
    runs = make_runs()
    if args.events:
        for run in runs:
            write_events(run, os.path.join(args.events, "fashion", run["name"]))
    if args.record:
        for run in runs:
            print("\n".join(record_lines(run)))
    if args.json:
        for run in runs:
            run["points"] = [[k, s, w, words(v)] for k, s, w, v in run["points"]]
        json.dump(runs, sys.stdout, allow_nan=False)


if __name__ == "__main__":
    main()
