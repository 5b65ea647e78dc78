# SPDX-License-Identifier: Apache-2.0
"""Writes JPEG files of any size, without a library: noise, each block a mean and a few waves. Huffman codes of fixed
length (4 bits for means, 8 for waves) give a baseline file that every decoder reads; sizes and content depend only on
the arguments."""
import os
import random
import struct

DC = bytes(range(12))                                         # categories of a difference
AC = bytes([0x00, 0xF0] + [run << 4 | size for run in range(16) for size in range(1, 11)])


def segment(marker, body):
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def huffman(where, symbols, bits):
    """All codes have this many bits; none is all ones."""
    counts = [0] * 16
    counts[bits - 1] = len(symbols)
    return segment(0xC4, bytes([where] + counts) + symbols)


def amplitude(value, size):
    return format(value if value > 0 else value + (1 << size) - 1, "0%db" % size) if size else ""


def coefficient(codes, run, value):
    size = abs(value).bit_length()
    return format(codes.index(run << 4 | size), "08b") + amplitude(value, size)


def block(draw, mean, waves):
    size = abs(mean).bit_length()
    text = format(size, "04b") + amplitude(mean, size)
    for _ in range(waves):
        text += coefficient(AC, draw.randrange(3), draw.choice((-9, -5, -2, -1, 1, 2, 5, 9)))
    return text + format(AC.index(0), "08b")


def write(path, width, height, seed, waves=12):
    """Three components without subsampling; width a multiple of 8, height of 16. waves: at most 20."""
    draw = random.Random(seed)
    means = [draw.randrange(-40, 41) for _ in range(width // 8)]
    row = ""
    for sign in (1, -1):                                      # after two rows of blocks the means are back at their start
        for mean in means:
            row += "".join(block(draw, sign * (mean >> c), waves) for c in range(3))
    bits = row * (height // 16)
    bits += "1" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")
    with open(path, "wb") as f:
        f.write(b"\xff\xd8" + segment(0xDB, bytes([0] + [12] * 64)))
        f.write(segment(0xC0, struct.pack(">BHHB", 8, height, width, 3) + b"\x01\x11\x00\x02\x11\x00\x03\x11\x00"))
        f.write(huffman(0x00, DC, 4) + huffman(0x10, AC, 8))
        f.write(segment(0xDA, b"\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00") + data + b"\xff\xd9")


def folder(path, classes, each, size, val=10, seed=1):
    """<path>/train/<class>/ and val/ with `each` files per class, in torchvision's layout: a few are drawn, and linked
    under many names."""
    for part, n in (("train", each), ("val", val)):
        for c in range(classes):
            where = os.path.join(path, part, "c%02d" % c)
            os.makedirs(where)
            first = os.path.join(where, "0000.jpg")
            write(first, size, size, seed + c)
            for i in range(1, n):
                os.link(first, os.path.join(where, "%04d.jpg" % i))
    return path
