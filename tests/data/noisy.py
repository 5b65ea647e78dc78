# SPDX-License-Identifier: Apache-2.0
"""Makes folders of noisy PNGs in three classes, which need no library and are incompressible."""
import os
import random
import struct
import zlib

SIDE = 90


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def folder(path, counts):
    """counts: pictures per part; always the same ones."""
    draw = random.Random(1)
    for part, n in counts.items():
        for i in range(n):
            rows = b"".join(b"\0" + draw.randbytes(3 * SIDE) for _ in range(SIDE))
            file = f"{path}/{part}/{'abc'[i % 3]}/{i:03d}.png"
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "wb") as f:
                f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
                        + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))
