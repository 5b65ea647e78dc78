# SPDX-License-Identifier: Apache-2.0
"""Reads the journals in a run's folder with the library's reader."""
import ctypes
import os

from dptrack import _library
from dptrack._run import Error, library


class Point(ctypes.Structure):
    """struct dptrack_point."""
    _fields_ = [('key', ctypes.c_char_p), ('rank', ctypes.c_int), ('segment', ctypes.c_int), ('step', ctypes.c_int64),
                ('wall_time', ctypes.c_double), ('value', ctypes.c_double)]


_POINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Point))


class Reader(ctypes.Structure):
    """struct dptrack_reader."""
    _fields_ = [('user', ctypes.c_void_p), ('journal', ctypes.c_void_p), ('point', _POINT), ('fact', ctypes.c_void_p),
                ('reserved', ctypes.c_void_p * 4)]


def newest_step(folder):
    """Last step with a point in the run's series; -1 without points."""
    newest = [-1]

    def take(user, point):
        if point.contents.rank < 0:
            newest[0] = max(newest[0], point.contents.step)

    failure = _library.Failure()
    if library().read(os.fsencode(folder), ctypes.byref(Reader(point=_POINT(take))), ctypes.byref(failure)):
        raise Error(failure.text.decode('utf-8', 'replace'))
    return newest[0]
