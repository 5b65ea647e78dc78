# SPDX-License-Identifier: Apache-2.0
"""Reads journals by the format's description alone: the independent reference of the tracker's tests."""
import glob
import os
import struct

_TABLE = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
    _TABLE.append(_c)


def masked_crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c = (c >> 8) ^ _TABLE[(c ^ b) & 0xFF]
    c ^= 0xFFFFFFFF
    return (((c >> 15) | (c << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data, check=True):
    """Returns the payloads of the complete records in data, and the offset after the last one."""
    at, out = 0, []
    while len(data) - at >= 12:
        n, crc = struct.unpack_from('<QI', data, at)
        if masked_crc(data[at:at + 8]) != crc:
            raise ValueError('bad length checksum at %d' % at)
        if len(data) - at < n + 16:
            break
        payload = data[at + 12:at + 12 + n]
        if check and masked_crc(payload) != struct.unpack_from('<I', data, at + 12 + n)[0]:
            raise ValueError('bad payload checksum at %d' % at)
        out.append(payload)
        at += n + 16
    return out, at


def varint(data, at):
    v = shift = 0
    while True:
        b = data[at]
        v |= (b & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if b < 0x80:
            return v, at


def fields(data):
    """Returns [(number, value)]: varint and fixed as int, messages and strings as bytes."""
    at, out = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            v, at = varint(data, at)
        elif wire == 1:
            v, at = struct.unpack_from('<Q', data, at)[0], at + 8
        elif wire == 5:
            v, at = struct.unpack_from('<I', data, at)[0], at + 4
        elif wire == 2:
            n, at = varint(data, at)
            v, at = data[at:at + n], at + n
            assert len(v) == n
        else:
            raise ValueError('wire type %d' % wire)
        out.append((number, v))
    return out


def f64(bits):
    return struct.unpack('<d', struct.pack('<Q', bits))[0]


def f32(bits):
    return struct.unpack('<f', struct.pack('<I', bits))[0]


def zigzag(v):
    return (v >> 1) ^ -(v & 1)


def signed(v):
    return v - (1 << 64) if v >> 63 else v


class Journal:
    """header: dict; points: [(key, rank, step, wall, value)]; params, tags, env, files ({name: (bytes, SHA-256)}): dicts; notes,
    statuses: lists."""

    def __init__(self, path, check=True):
        with open(path, 'rb') as f:
            self.data = f.read()
        self.path = path
        self.payloads, self.whole = records(self.data, check)
        self.header, self.points, self.notes, self.statuses = {}, [], [], []
        self.params, self.segment_params, self.tags, self.env = {}, {}, {}, {}
        self.heartbeats, self.sessions, self.hparams, self.versions, self.files = 0, [], [], [], {}
        for payload in self.payloads:
            self._event(dict((n, v) for n, v in fields(payload)))

    def _event(self, e):
        wall, step = f64(e[1]), signed(e.get(2, 0))
        if 1001 in e:
            h = dict(fields(e[1001]))
            self.header = dict(run_id=h[2].decode(), writer_id=h[3].decode(), rank=zigzag(h[4]), world_size=h[5],
                               experiment=h[6].decode(), run_name=h[7].decode(), segment=h[8],
                               first_step=zigzag(h[9]), first_epoch=zigzag(h[10]))
        if 1002 in e:
            p = dict(fields(e[1002]))
            v = p[2].decode() if 2 in p else f64(p[3]) if 3 in p else zigzag(p[4]) if 4 in p else bool(p[5])
            (self.segment_params if p.get(6) else self.params)[p[1].decode()] = v
        for number, to in ((1003, self.tags), (1004, self.env)):
            if number in e:
                p = dict(fields(e[number]))
                to[p[1].decode()] = p[2].decode()
        if 1005 in e:
            self.notes.append(e[1005].decode())
        if 1006 in e:
            s = dict(fields(e[1006]))
            self.statuses.append((s.get(1, 0), s.get(2, b'').decode()))
        if 1007 in e:
            self.heartbeats += 1
        if 1013 in e:
            f = dict(fields(e[1013]))
            self.files[f[1].decode()] = (f[2], f[3].decode())
        if 3 in e:
            self.versions.append(e[3].decode())
        if 7 in e:
            self.sessions.append((dict(fields(e[7])).get(1), step))
        if 5 in e:
            for number, value in fields(e[5]):
                self._value(dict(fields(value)), wall, step)

    def _value(self, v, wall, step):
        tag = v[1].decode()
        if 2 in v:
            default = -1 if self.header['rank'] <= 0 else self.header['rank']
            value = f64(v[1001]) if 1001 in v else f32(v[2])
            self.points.append((tag, zigzag(v[1002]) if 1002 in v else default, step, wall, value))
        elif tag.startswith('_hparams_/'):
            self.hparams.append((tag, v[9]))

    def series(self, key, rank=-1):
        return [(p[2], p[4]) for p in self.points if p[0] == key and p[1] == rank]


def journals(folder, check=True):
    paths = glob.glob(os.path.join(folder, '*tfevents*')) + glob.glob(os.path.join(folder, '*.journal'))
    return [Journal(p, check) for p in sorted(paths)]
