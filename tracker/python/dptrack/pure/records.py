# SPDX-License-Identifier: Apache-2.0
"""The records of a journal for the client without compiled code: TFRecord frames of TensorFlow Event messages, whose numbers are in
TensorFlow's event.proto and summary.proto and, for what those cannot hold, in schema/event/fields.def. tracker/event writes the same."""
from __future__ import annotations

import math
import struct
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_F64, _F32, _U64, _U32 = struct.Struct('<d'), struct.Struct('<f'), struct.Struct('<Q'), struct.Struct('<I')

_AFTER = [list(range(256))]  # the CRC32C of a byte, without its inversions; then with 1, 2 and 3 zero bytes after it
for _ in range(8):
    _AFTER[0] = [n >> 1 ^ (0x82f63b78 if n & 1 else 0) for n in _AFTER[0]]
for _ in range(3):
    _AFTER.append([n >> 8 ^ _AFTER[0][n & 255] for n in _AFTER[-1]])
_FAR, _NEAR = (array('I', [a ^ b for a in high for b in low]) for high, low in (_AFTER[2:], _AFTER[:2]))  # of 2 bytes: 0.5 MB
_LONG = 2048
_powers = [2]  # x**(2**n) modulo the polynomial
_heads: dict[int, bytes] = {}  # of frames, by length


def _shorter(data: bytes) -> bytes:
    """At most _LONG bytes that, begun with 0, have the CRC of these: arithmetic of long integers is faster than a loop over bytes. The
    first bits, which have the highest powers, are the low ones; each turn replaces the first m - 32 by their product with x**m."""
    bits, left = int.from_bytes(data, 'little') ^ 0xffffffff, 8 * len(data)
    while left > 8 * _LONG:
        n = left.bit_length() - 2
        while len(_powers) <= n:
            power = int(bin(_powers[-1])[2:], 4)  # its square
            while power >> 32:
                power ^= 0x11edc6f41 << power.bit_length() - 33
            _powers.append(power)
        cut = (1 << n) - 32
        first, bits, left = bits & (1 << cut) - 1, bits >> cut, left - cut
        for term in [term for term in range(32) if _powers[n] >> term & 1]:
            bits ^= first << 32 - term
    return bits.to_bytes(left // 8, 'little')


def _masked_crc(data: bytes) -> int:
    crc, far, near = 0xffffffff, _FAR, _NEAR
    if len(data) > _LONG:
        crc, data = 0, _shorter(data)
    for word in struct.unpack_from('<%dI' % (len(data) >> 2), data):
        crc ^= word
        crc = far[crc & 65535] ^ near[crc >> 16]
    for byte in data[len(data) & -4:]:
        crc = _AFTER[0][(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def frame(payload: bytes) -> bytes:
    n = len(payload)
    if n not in _heads:
        if len(_heads) == 4096:
            _heads.clear()
        _heads[n] = _U64.pack(n) + _U32.pack(_masked_crc(_U64.pack(n)))
    return _heads[n] + payload + _U32.pack(_masked_crc(payload))


def whole(data: bytes, most: int | None = None) -> int:
    """How many of the bytes are whole records, by their lengths; most: of at most this number of records."""
    at = 0
    while at + 12 <= len(data) and most != 0:
        end = at + 16 + int(_U64.unpack_from(data, at)[0])
        if end > len(data):
            break
        at, most = end, most and most - 1
    return at


def varint(n: int) -> bytes:
    n &= 0xffffffffffffffff
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def uint(number: int, n: int) -> bytes:
    return varint(number << 3) + varint(n)


def sint(number: int, n: int) -> bytes:
    return uint(number, n << 1 ^ n >> 63)


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + _F64.pack(value)


def text(number: int, data: bytes) -> bytes:
    """A string, or a message made of its fields."""
    n = len(data)
    return (bytes((number << 3 | 2, n)) if number < 16 and n < 128 else varint(number << 3 | 2) + varint(n)) + data


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field: an int, 8 or 4 bytes, or a string's or message's bytes. IndexError or KeyError if malformed."""
    at = 0

    def take() -> int:
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at, n, shift = at + 1, n | (byte & 127) << shift, shift + 7
            if byte < 128:
                return n

    while at < len(data):
        tag = take()
        if tag & 7 == 0:
            yield tag >> 3, take()
            continue
        n = take() if tag & 7 == 2 else {1: 8, 5: 4}[tag & 7]
        if at + n > len(data):
            raise IndexError
        yield tag >> 3, data[at:at + n]
        at += n


def event(wall_time: float, *parts: bytes, step: int = 0) -> bytes:
    """A record."""
    return frame(head(wall_time, step) + b''.join(parts))


def head(wall_time: float, step: int = 0) -> bytes:
    """The beginning of an event."""
    return b'\x09' + _F64.pack(wall_time) + (b'\x10' + varint(step) if step else b'')


def scalar(key: bytes, first: bytes, value: float, rank: int | None) -> bytes:
    """A record of a point. key: text(1, KEY); first: head(...); rank: None where it is the journal's own."""
    try:
        single = _F32.pack(value)
    except OverflowError:
        single = _F32.pack(math.copysign(math.inf, value))
    exact = _F64.pack(value)
    body = key + b'\x15' + single + (b'' if _F64.pack(_F32.unpack(single)[0]) == exact else b'\xc9\x3e' + exact) + (b'' if rank is None else sint(1002, rank))
    return frame(first + text(5, text(1, body)))


def typed(value: Any, of_text: int, of_double: int, of_int: int, of_bool: int) -> bytes:
    """A bool, int, float or bytes in the field of its type; integers are doubles where both have one field."""
    if isinstance(value, bytes):
        return text(of_text, value)
    if isinstance(value, bool):
        return uint(of_bool, value)
    return sint(of_int, value) if isinstance(value, int) and of_int != of_double else double(of_double, float(value))


def plugin(name: bytes, content: bytes = b'') -> bytes:
    """The metadata of a value."""
    return text(9, text(1, text(1, name) + (text(2, content) if content else b'')))


def tensor(kind: int, dims: tuple[int, ...], content: bytes) -> bytes:
    return text(8, uint(1, kind) + text(2, b''.join(text(2, uint(1, n)) for n in dims)) + content)


def strings(texts: list[bytes], *dims: int) -> bytes:
    """A tensor of texts, with the metadata of TensorBoard's plugin."""
    return tensor(7, dims, b''.join(text(8, t) for t in texts)) + plugin(b'text')


def hparams(wall_time: float, tag: bytes, content: bytes) -> bytes:
    """A record of TensorBoard's HParams tab."""
    return event(wall_time, text(5, text(1, text(1, b'_hparams_/' + tag) + plugin(b'hparams', content))), uint(1008, 1))
