# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of training: starts dptrain, makes small data sets, and reads journals and safetensors files
independently (plain Python, none of the project's code)."""
import array
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

BUILD = os.environ.get("builddir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build"))
SOURCE = os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
DPTRAIN = os.path.join(BUILD, "dptrain")
HOOKED = os.path.join(BUILD, "tests", "dptrain")
FASHION = "/usr/share/datasets/fashion-mnist"
SKIP = 77

failures = []


def check(ok, text):
    if not ok:
        failures.append(text)
        print("FAILED: " + text)
    return ok


def finish(name):
    if failures:
        print("%s: %d checks failed" % (name, len(failures)))
        sys.exit(1)
    print("%s: passed" % name)


def skip(reason):
    print("skipped: " + reason)
    sys.exit(SKIP)


class Folder:
    """A temporary folder that is removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="dptrain-test-")
        return self.path

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)


def registered(path, macro):
    """The entries of a registry's list: the arguments of each as texts."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return [[a.strip() for a in line.split(")")[0].split(",")]
                for line in re.findall(r"^%s\((.*)" % macro, f.read(), re.M)]


def strategies(ranks):
    """Names of all strategies that support this number of ranks."""
    return [name for name, most, _ in registered("trainer/strategies/strategies.def", "STRATEGY")
            if int(most) == 0 or int(most) >= ranks]


def environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DPTRACK_", "DPTRAIN_", "SLURM_", "OMPI_", "PMI"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        env.pop(name, None)
    env.update(extra or {})
    return env


def program(env=None):
    """The program that heeds the DPTRAIN_TEST_ variables of hooks.c if there are any, else dptrain."""
    return HOOKED if any(name.startswith("DPTRAIN_TEST_") for name in env or ()) else DPTRAIN


def dptrain(*flags, env=None, timeout=100):
    """Runs dptrain to its end; returns the completed process, with stdout and stderr as text."""
    return subprocess.run([program(env), *map(str, flags)], env=environment(env), timeout=timeout, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, stdin=subprocess.DEVNULL)


def start(*flags, env=None, **more):
    return subprocess.Popen([program(env), *map(str, flags)], env=environment(env), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, universal_newlines=True, stdin=subprocess.DEVNULL, **more)


def write_idx(path, shape, data):
    with open(path, "wb") as out:
        out.write(struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(">%dI" % len(shape), *shape) + bytes(data))


def make_set(folder, train=120, val=30, size=28, classes=10, seed=5):
    """Makes a small IDX set with separable classes: a bright bar at a position given by the label."""
    draw = random.Random(seed)
    for prefix, n in (("train", train), ("t10k", val)):
        labels = [draw.randrange(classes) for _ in range(n)]
        pixels = bytearray()
        for label in labels:
            for y in range(size):
                row = bytearray(draw.randrange(60) for _ in range(size))
                if y * classes // size == label:
                    row = bytearray(min(255, v + 150) for v in row)
                pixels += row
        write_idx(os.path.join(folder, prefix + "-images-idx3-ubyte"), (n, size, size), pixels)
        write_idx(os.path.join(folder, prefix + "-labels-idx1-ubyte"), (n,), labels)
    return folder


def png(rows):
    """Encodes rows of RGB bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">2I5B", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows))) +
            chunk(b"IEND", b""))


def make_pictures(folder, classes="abc", train=8, val=5, size=16):
    """Makes class folders of noise; a class is brighter in the channel of its letter."""
    for seed, (split, n) in enumerate((("train", train), ("val", val))):
        draw = random.Random(seed)
        for name in classes:
            os.makedirs(os.path.join(folder, split, name))
            for i in range(n):
                rows = [[draw.randrange(120) + 100 * (x % 3 == ord(name) % 3) for x in range(3 * size)] for _ in range(size)]
                with open(os.path.join(folder, split, name, "%03d.png" % i), "wb") as f:
                    f.write(png(rows))
    return folder


def varint(b, at):
    shift = value = 0
    while True:
        byte = b[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def message(b):
    """Fields of a protobuf message: {number: [values]}."""
    fields, at = {}, 0
    while at < len(b):
        tag, at = varint(b, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = varint(b, at)
        elif kind == 1:
            value, at = b[at:at + 8], at + 8
        elif kind == 5:
            value, at = b[at:at + 4], at + 4
        else:
            n, at = varint(b, at)
            value, at = b[at:at + n], at + n
        fields.setdefault(number, []).append(value)
    return fields


def records(path):
    with open(path, "rb") as f:
        b = f.read()
    at = 0
    while at + 12 <= len(b):
        n, = struct.unpack("<Q", b[at:at + 8])
        if at + 16 + n > len(b):
            return
        yield b[at + 12:at + 12 + n]
        at += 16 + n


def zigzag(v):
    return (v >> 1) ^ -(v & 1)


def read_journal(path, run):
    own_rank = None
    for r in records(path):
        event = message(r)
        if 1001 in event:
            header = message(event[1001][0])
            own_rank = zigzag(header[4][0]) if 4 in header else 0
            run["id"] = header[2][0].decode()
        for p in event.get(1002, []):
            param = message(p)
            value = None
            if 2 in param:
                value = param[2][0].decode()
            elif 3 in param:
                value = struct.unpack("<d", param[3][0])[0]
            elif 4 in param:
                value = zigzag(param[4][0])
            elif 5 in param:
                value = bool(param[5][0])
            run["params"][param[1][0].decode()] = value
        for p in event.get(1004, []):
            pair = message(p)
            run["env"][pair[1][0].decode()] = pair[2][0].decode()
        for s in event.get(1006, []):
            status = message(s)
            run["status"][own_rank] = status.get(1, [0])[0]
            if 2 in status:
                run["reason"] = status[2][0].decode()
        for s in event.get(5, []):
            for v in message(s).get(1, []):
                value = message(v)
                if 8 in value and 8 in message(value[8][0]):
                    run["texts"][value[1][0].decode(), event.get(2, [0])[0]] = message(value[8][0])[8][0].decode()
                if 1 not in value or (2 not in value and 1001 not in value):
                    continue
                number = struct.unpack("<d", value[1001][0])[0] if 1001 in value else struct.unpack("<f", value[2][0])[0]
                rank = zigzag(value[1002][0]) if 1002 in value else (-1 if own_rank == 0 else own_rank)
                step = event.get(2, [0])[0]
                run["series"].setdefault((value[1][0].decode(), rank), {})[step] = number


FINISHED, FAILED, KILLED, PREEMPTED = 1, 2, 3, 4
LAUNCHER = -2


def digest(folder):
    """Digest of the numeric results of the runs in a folder: losses, gradient norms and tensors."""
    h = hashlib.sha256()
    series = read_run(folder)["series"]
    for key in ("train/loss", "train/grad_norm"):
        for step, v in sorted((series.get((key, -1)) or series[key, 0]).items()):
            h.update(struct.pack("<qd", step, v))
    for where, _, names in sorted(os.walk(folder)):
        for name in sorted(n for n in names if n.endswith(".safetensors")):
            with open(os.path.join(where, name), "rb") as f:
                h.update(name.encode() + f.read())
    return h.hexdigest()


def read_run(runs_dir):
    """Reads the only run below a folder: series {(key, rank): {step: value}}, texts {(key, step): text}, params, status by writer."""
    run = {"series": {}, "texts": {}, "params": {}, "env": {}, "status": {}, "reason": "", "folder": None}
    for folder, _, names in os.walk(runs_dir):
        for name in sorted(names):
            if name.startswith("events.") or name.endswith(".journal"):
                run["folder"] = folder
                read_journal(os.path.join(folder, name), run)
    return run


def safetensors(path):
    """Returns {name: (shape, values)}."""
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(n))
        body = f.read()
    kinds = {"F64": "d", "F32": "f", "I64": "q", "I32": "i"}
    out = {}
    for name, t in head.items():
        if name == "__metadata__":
            continue
        data = body[t["data_offsets"][0]:t["data_offsets"][1]]
        values = array.array(kinds.get(t["dtype"], "d"))
        if t["dtype"] == "F16":
            values.extend(struct.unpack("<%de" % (len(data) // 2), data))
        else:
            values.frombytes(data)
        out[name] = (t["shape"], values)
    return out


def write_safetensors(path, tensors):
    """tensors: [(name, type, shape, bytes)]"""
    head, at = {}, 0
    for name, kind, shape, data in tensors:
        head[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            f.write(tensor[3])


def norm(values):
    return sum(v * v for v in values) ** 0.5


def distance(got, want, total):
    """Relative L2 distance, relative to max(norm, 1e-12 of the global norm)."""
    return norm([a - b for a, b in zip(got, want)]) / max(norm(want), 1e-12 * total)


def fast():
    """Flags of the fastest available backend."""
    for line in dptrain("backends").stdout.splitlines():
        if line.startswith("cpu") and "fp32" in line:
            return ["--backend", "cpu", "--threads", 1]
    return ["--backend", "ref"]


INSTRUCTION_SETS = ["avx2", "avx512", "avx512_bf16"]  # as DPTRAIN_CPU_ISA limits them


def kernel_choices():
    """Flags and environment of each choice of kernels that the clock has on this machine: instruction sets from avx2 up to the
    machine's, with all kinds of convolutions and the direct ones alone."""
    for line in dptrain("backends").stdout.splitlines():
        found = re.match(r"cpu .*?\b(avx[0-9a-z_]*);", line)
        if found and found.group(1) in INSTRUCTION_SETS:
            sets = INSTRUCTION_SETS[:INSTRUCTION_SETS.index(found.group(1)) + 1]
            return [(["--conv-algo", algo], {"DPTRAIN_CPU_ISA": isa}) for isa in sets for algo in ("auto", "direct")]
    return [([], {})]


def children(pid):
    """Direct children, in the order in which they were started."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def shared_objects(wait_s=3):
    """Shared-memory objects of dptrain that remain (concurrent tests have some for a moment)."""
    deadline = time.monotonic() + wait_s
    stay = None
    while stay is None or (stay and time.monotonic() < deadline):
        now = {n for n in os.listdir("/dev/shm") if "dptrain" in n} if os.path.isdir("/dev/shm") else set()
        stay = now if stay is None else stay & now
        time.sleep(0.02)
    return sorted(stay)


def sanitized():
    """Whether dptrain was built with the address sanitizer, which replaces the allocator."""
    with open(DPTRAIN, "rb") as f:
        return b"__asan_init" in f.read()
