# SPDX-License-Identifier: Apache-2.0
"""Reduces a run's journals to what a diagnosis reads, in a small archive, and restores them."""
import os
import sys
import tarfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tracker"))
import journal
from wire import field, record

STEP, SUMMARY, VALUE, TAG, EXACT = 2, 5, 1, 1, 1001  # field numbers of an event, a summary, its value
KEPT = ("phase/", "data/load", "data/ready", "data/workers", "checkpoint/", "val/seconds", "epoch/eval_seconds", "system/cpu_", "system/loop_us",
        "system/memory_wait", "system/major_faults")
STEPS = 300  # the first ones
FACTS = {1, 3, 1001, 1002, 1004, 1006}  # time, version, header, param, environment, status


def parts(data):
    """Returns [(number, the field's bytes with its tag, its value's bytes)]."""
    at, out = 0, []
    while at < len(data):
        start = at
        tag, at = journal.varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = at, journal.varint(data, at)[1]
        elif wire == 2:
            n, value = journal.varint(data, at)
            at = value + n
        else:
            value, at = at, at + (8 if wire == 1 else 4)
        out.append((tag >> 3, data[start:at], data[value:at]))
    return out


def less_value(body):
    """A point of a relevant series, rounded to f32; b"" for another series."""
    fields = parts(body)
    tag = next(v for n, _, v in fields if n == TAG).decode()
    if not tag.startswith(KEPT):
        return b""
    return field(VALUE, b"".join(raw for n, raw, _ in fields if n != EXACT))


def less_event(payload):
    """The event without unused fields; b"" if nothing remains."""
    fields = parts(payload)
    numbers = {n for n, _, _ in fields}
    if SUMMARY not in numbers:
        return payload if numbers & (FACTS - {1}) else b""
    out = b""
    for number, raw, value in fields:
        if number == STEP and journal.varint(value, 0)[0] > STEPS:
            return b""
        if number == SUMMARY:
            body = b"".join(less_value(v) for n, _, v in parts(value) if n == VALUE)
            if not body:
                return b""
            raw = field(SUMMARY, body)
        out += raw
    return out


def pack(run, path):
    """Writes the journals in the folder `run` as an archive."""
    with tarfile.open(path, "w:xz", preset=9) as tar:
        for name in sorted(os.listdir(run)):
            if "tfevents" not in name and not name.endswith(".journal"):
                continue
            with open(os.path.join(run, name), "rb") as f:
                payloads, _ = journal.records(f.read(), check=False)
            less = os.path.join(run, name + ".less")
            with open(less, "wb") as f:
                f.write(b"".join(record(p) for p in map(less_event, payloads) if p))
            tar.add(less, arcname=name, filter=lambda i: i.replace(uid=0, gid=0, uname="", gname="", mtime=0, deep=False))
            os.remove(less)


def unpack(path, run):
    with tarfile.open(path) as tar:
        tar.extractall(run)
