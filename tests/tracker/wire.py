# SPDX-License-Identifier: Apache-2.0
"""Writes protobuf messages and framed records by their descriptions alone; journal.py reads them."""
import struct

import journal


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    """Encodes a field of a message: bytes, a double or an integer."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3) + varint(value)


def record(payload):
    """Frames a record as TFRecord and event files do."""
    head = struct.pack("<Q", len(payload))
    return head + struct.pack("<I", journal.masked_crc(head)) + payload + struct.pack("<I", journal.masked_crc(payload))
