# SPDX-License-Identifier: Apache-2.0
"""Reads the journals of recorded runs with the library's reader: one run's newest step, or all runs of a folder where neither
the program dptrack nor a server is at hand."""
from __future__ import annotations

import ctypes
import math
import os

from dptrack import _library
from dptrack._run import Error, library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PARAM, TAG = 1, 2


class Journal(ctypes.Structure):
    """struct dptrack_journal."""
    _fields_ = [('run_id', ctypes.c_char_p), ('run_name', ctypes.c_char_p), ('experiment', ctypes.c_char_p), ('host', ctypes.c_char_p),
                ('rank', ctypes.c_int), ('world_size', ctypes.c_int), ('segment', ctypes.c_int), ('wall_time', ctypes.c_double)]


class Point(ctypes.Structure):
    """struct dptrack_point."""
    _fields_ = [('key', ctypes.c_char_p), ('rank', ctypes.c_int), ('segment', ctypes.c_int), ('step', ctypes.c_int64),
                ('wall_time', ctypes.c_double), ('value', ctypes.c_double)]


_JOURNAL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Journal))
_POINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Point))
_FACT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_STATUS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_double, ctypes.c_char_p)


class Reader(ctypes.Structure):
    """struct dptrack_reader."""
    _fields_ = [('user', ctypes.c_void_p), ('journal', _JOURNAL), ('point', _POINT), ('fact', _FACT), ('status', _STATUS),
                ('reserved', ctypes.c_void_p * 3)]


def _read(folder: str, reader: Reader) -> None:
    failure = _library.Failure()
    if library().read(os.fsencode(folder), ctypes.byref(reader), ctypes.byref(failure)):
        raise Error(failure.text.decode('utf-8', 'replace'))


def newest_step(folder: str) -> int:
    """Last step with a point in the run's series; -1 without points."""
    newest = [-1]

    def take(user: object, point: Any) -> None:
        if point.contents.rank < 0:
            newest[0] = max(newest[0], point.contents.step)

    _read(folder, Reader(point=_POINT(take)))
    return newest[0]


def _text(encoded: bytes) -> str:
    return encoded.decode('utf-8', 'replace')


class _Contents:
    """What the journals of one run hold."""

    def __init__(self) -> None:
        self.journals: list[tuple[int, int, str, str, str, float]] = []  # segment, rank, id, name, experiment, opened
        self.points: list[tuple[str, int, int, int, float, float]] = []  # key, rank, segment, step, wall time, value
        self.params: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.statuses: list[tuple[bool, int, float, int]] = []  # by a launcher, segment, wall time, code

    def journal(self, user: object, journal: Any) -> None:
        j = journal.contents
        self.journals.append((j.segment, j.rank, _text(j.run_id), _text(j.run_name), _text(j.experiment), j.wall_time))

    def point(self, user: object, point: Any) -> None:
        p = point.contents
        self.points.append((_text(p.key), p.rank, p.segment, p.step, p.wall_time, p.value))

    def fact(self, user: object, kind: int, key: bytes, value: bytes) -> None:
        if kind == PARAM:
            self.params.setdefault(_text(key), _text(value))
        elif kind == TAG:
            self.tags[_text(key)] = _text(value)

    def status(self, user: object, code: int, wall_time: float, reason: bytes) -> None:
        segment, rank = self.journals[-1][:2]
        self.statuses.append((rank < 0, segment, wall_time, code))

    def seen(self) -> list[tuple[str, int, int, int, float, float]]:
        """The points that no later segment replaces."""
        first: dict[int, int] = {}
        for _, rank, segment, step, _, _ in self.points:
            if segment and rank < 0:
                first[segment] = min(first.get(segment, step), step)
        return [p for p in self.points if not any(segment > p[2] and p[3] >= step for segment, step in first.items())]


def contents(folder: str) -> _Contents:
    """Reads the journals in the folder of a run."""
    found = _Contents()
    _read(folder, Reader(journal=_JOURNAL(found.journal), point=_POINT(found.point), fact=_FACT(found.fact), status=_STATUS(found.status)))
    return found


def _summaries(points: list[tuple[str, int, int, int, float, float]]) -> dict[str, dict[str, Any]]:
    """First, min, max and last of each of the run's series; NaN counts for last alone."""
    sums: dict[str, dict[str, Any]] = {}
    for key, rank, _, step, _, value in sorted((p for p in points if p[1] < 0), key=lambda p: (p[3], p[4])):
        s = sums.setdefault(key, {'first': value, 'min': math.inf, 'max': -math.inf, 'count': 0})
        s['last'], s['last_step'], s['count'] = value, step, s['count'] + 1
        if value == value:
            s['min'], s['max'] = min(value, s['min']), max(value, s['max'])
    for s in sums.values():
        if s['min'] > s['max']:
            s['min'] = s['max'] = math.nan
    return sums


def row(folder: str) -> dict[str, Any] | None:
    """A run as the server's API describes it, as far as its journals tell; None without a complete journal."""
    found = contents(folder)
    if not found.journals:
        return None
    _, _, run_id, name, experiment, _ = min(found.journals)
    names = {code: word for word, code in _library.STATUS.items()}
    newest = max(segment for segment, *_ in found.journals)
    final = max((s for s in found.statuses if s[1] == newest or s[0]), default=None)
    status = names.get(final[3], 'running') if final else 'running'
    opened = min(j[5] for j in found.journals)
    ended = int(1000 * final[2]) if final and status != 'running' else None
    return {'id': run_id, 'name': name, 'experiment': experiment, 'status': status, 'params': found.params, 'tags': found.tags,
            'start_time': int(1000 * opened), 'end_time': ended, 'metrics': _summaries(found.seen())}


def folders(runs_dir: str) -> Iterator[str]:
    """Folders of runs below a folder of experiments, of runs, or one run's."""
    for place, inner, names in os.walk(runs_dir):
        inner[:] = sorted(name for name in inner if not name.startswith('.') and name != 'dptrack.artifacts')
        if any('.tfevents.' in name for name in names):
            inner[:] = []
            yield place
