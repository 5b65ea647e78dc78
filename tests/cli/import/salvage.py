# SPDX-License-Identifier: Apache-2.0
"""A .wandb file as a killed process, a full disk or a bad sector leaves it, read by dptrack.importers.wandb_files: cut anywhere it has
the records that are complete, and nothing is called damaged; after a flipped byte every other record is there, and the damage is named
with its offset. What the records are was read by W&B's own classes (make_wandb.py). DPTRACK_LONG=1: every cut and more flips."""
import sys
sys.dont_write_bytecode = True
import io
import json
import os
import random
import tempfile
import zlib
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib
sys.path.insert(0, os.path.join(lib.SOURCE, "tracker", "python"))
from dptrack.importers import Files, RunWriter, Skipped
from dptrack.importers.wandb_files import Log, Session

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = bool(os.environ.get("DPTRACK_LONG"))


def records(data):
    """([record], Log); None: it is no log."""
    try:
        log = Log(io.BytesIO(data))
    except Skipped:
        return None, None
    return list(log.records()), log


def cuts(name, data, whole):
    """The first n bytes have exactly the records that end there. whole: [(end, record)]"""
    for n in range(0, len(data) + 1, 1 if LONG else 13):
        got, log = records(data[:n])
        if got is None:
            lib.check(n < 7, f"{name}: {n} bytes are no log")
        elif got != [record for end, record in whole if end <= n] or log.damaged:
            lib.check(False, f"{name} cut at {n}: {len(got)} records, damaged at {log.damaged}")
    lib.check(True, name)


def flips(name, data, whole, draw):
    """A flipped byte loses at most the records that its fragment is a part of, or to the end of the block if it was in a head."""
    for _ in range(3000 if LONG else 300):
        at = draw.randrange(7, len(data))
        torn = bytearray(data)
        torn[at] ^= 1 << draw.randrange(8)
        got, log = records(bytes(torn))
        block_end = at - at % 32768 + 32768
        before = [record for end, record in whole if end <= at]
        after = [record for end, record in whole if end > block_end]
        first = after[1:] if len(after) > 1 else []  # the record that crosses the end of the block may be lost
        lib.check(got[:len(before)] == before and (not first or got[-len(first):] == first), f"{name} flipped at {at}: {len(got)} records of {len(whole)}")
        lib.check(log.damaged or log.torn or got == [r for _, r in whole], f"{name} flipped at {at}: not named")
        middle = [r for end, r in whole if at < end <= block_end]
        kept = len(got) - len(before) - len(first)
        if log.damaged and at - log.damaged[0] >= 7 and len(middle) > 3:  # in the data of a fragment: its neighbours are kept
            lib.check(kept >= len(middle) - 2, f"{name} flipped at {at}: {kept} of {len(middle)} records of its block")


def imported(folder, data, name):
    """(lines of JSON, what the reader raised)"""
    path = os.path.join(folder, name, f"run-{name}.wandb")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    stream = io.StringIO()
    out = RunWriter(lambda: stream, folder)
    try:
        Session(out, path, Files(out, folder), {}).read(path)
    except Skipped as why:
        return [], str(why)
    return [json.loads(line) for line in stream.getvalue().splitlines()[1:]], None


def points(lines):
    return sum(len(line["points"]) for line in lines if "points" in line)


def sessions(folder, described, data):
    """The points of complete rows, at the ends of records and between them; a run exists from its own record on."""
    for n, (end, count) in enumerate(described["counts"]):
        if n % (1 if LONG else 5) and end < len(data) - 300:
            continue
        for cut, want in ((end, count), (end + 3, count)):
            lines, why = imported(folder, data[:cut], "cut")
            if cut < described["whole"]:
                lib.check(why and "record of its run" in why, f"cut at {cut}: {why}")
            else:
                lib.equal(points(lines), want, f"points of the first {cut} bytes")
                statuses = [line["end"][0] for line in lines if "end" in line]
                ended = cut >= len(data) or any(line.get("end", [""])[0] in ("finished", "failed") for line in lines)
                lib.check(statuses == ["killed"] or ended, f"status at {cut}: {statuses}")


def logged(payloads):
    """A .wandb file with these records."""
    data = bytearray(b":W&B\xe1\xbe\0")
    for payload in payloads:
        kind = 1
        while kind:
            left = 32768 - len(data) % 32768
            if left < 7:
                data += bytes(left)
                continue
            part, payload = payload[:left - 7], payload[left - 7:]
            body = bytes([(2 if payload else 1) if kind == 1 else (3 if payload else 4)]) + part
            data += zlib.crc32(body).to_bytes(4, "little") + len(part).to_bytes(2, "little") + body
            kind = 2 if payload else 0
    return bytes(data)


def mended(folder, name, payloads, draw):
    """Records with right checksums and damaged content: the run is read, or there is no run record; nothing else is raised."""
    lib.equal(records(logged(payloads))[0], payloads, f"{name}: the log of these records")
    for _ in range(400 if LONG else 40):
        odd = [bytearray(p) for p in payloads[:12] + draw.sample(payloads, min(8, len(payloads)))]
        for _ in range(draw.randrange(1, 12)):
            one = draw.choice(odd)
            at = draw.randrange(len(one)) if one else 0
            if draw.randrange(3):
                one[at:at + 1] = bytes([draw.randrange(256)])
            else:
                one[at:at + draw.randrange(9)] = draw.randbytes(draw.randrange(9))
        try:
            lines, why = imported(folder, logged(map(bytes, odd)), "odd")
            lib.check(why and "run record" in why or "record of its run" in str(why) or "end" in lines[-1], f"{name}: {why}")
        except Exception as error:
            with open(os.path.join(folder, "odd", "run-odd.wandb"), "rb") as f:
                lib.check(False, f"{name}: {error!r}: {f.read().hex()}")


def main():
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"SEED={seed}")
    draw = random.Random(seed)
    with open(os.path.join(HERE, "wandb.json"), encoding="utf-8") as f:
        files = json.load(f)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        for described in files:
            with open(os.path.join(HERE, described["file"]), "rb") as f:
                data = f.read()
            got, log = records(data)
            ends = [end for end, _ in described["counts"]]
            lib.equal((len(got), log.damaged, log.torn), (len(ends), [], False), "records of the whole file")
            whole = list(zip(ends, got))
            cuts(described["id"], data, whole)
            flips(described["id"], data, whole, draw)
            sessions(folder, described, data)
            mended(folder, described["id"], got, draw)
    lib.finish("import/salvage")


main()
