# SPDX-License-Identifier: Apache-2.0
"""ctypes bindings of libdptrack. Searches $DPTRACK_LIBRARY, this folder, then the system's library path."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATUS = {'running': 0, 'finished': 1, 'failed': 2, 'killed': 3, 'preempted': 4}
LAUNCHER = 1
WARN = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Options(ctypes.Structure):
    """struct dptrack_run_opts."""
    _fields_ = [('runs_dir', c_char_p), ('experiment', c_char_p), ('run_name', c_char_p), ('run_id', c_char_p),
                ('rank', c_int), ('world_size', c_int), ('role', c_int), ('reopen', c_bool), ('segment', c_int),
                ('first_step', c_int64), ('first_epoch', c_int64), ('url', c_char_p), ('token', c_char_p),
                ('close_wait_s', c_double), ('warn', WARN), ('warn_user', c_void_p), ('reserved', c_void_p * 8)]


class Failure(ctypes.Structure):
    """struct dptrack_error."""
    _fields_ = [('code', c_int), ('text', c_char * 504)]


class Found(ctypes.Structure):
    """struct dptrack_found."""
    _fields_ = [('id', c_char * 33), ('newest_segment', c_int), ('dir', c_char * 4096)]


# Functions that may block release the GIL.
WAITING: dict[str, tuple[Any, ...]] = {
    'dptrack_run_open': (c_int, POINTER(c_void_p), POINTER(Options), POINTER(Failure)),
    'dptrack_find': (c_int, POINTER(Found), POINTER(Options), POINTER(Failure)),
    'dptrack_read': (c_int, c_char_p, c_void_p, POINTER(Failure)),
    'dptrack_run_close': (c_int, c_void_p, c_int),
    'dptrack_flush': (c_int, c_void_p, c_double),
    'dptrack_file': (c_int, c_void_p, c_char_p, c_char_p),
    'dptrack_gpu': (c_int, c_void_p, c_char_p),
    'dptrack_system': (c_int, c_void_p, c_double),
}

# Functions that only queue keep the GIL: they return sooner than it could be released.
QUEUEING: dict[str, tuple[Any, ...]] = {
    'dptrack_log': (None, c_void_p, c_int64, c_char_p, c_double),
    'dptrack_log_many': (None, c_void_p, c_int64, c_size_t, c_void_p, c_void_p),
    'dptrack_log_rank': (None, c_void_p, c_int, c_int64, c_char_p, c_double),
    'dptrack_param': (c_int, c_void_p, c_char_p, c_char_p),
    'dptrack_param_f64': (c_int, c_void_p, c_char_p, c_double),
    'dptrack_param_i64': (c_int, c_void_p, c_char_p, c_int64),
    'dptrack_param_bool': (c_int, c_void_p, c_char_p, c_bool),
    'dptrack_param_change': (c_int, c_void_p, c_char_p, c_char_p),
    'dptrack_segment_param': (c_int, c_void_p, c_char_p, c_char_p),
    'dptrack_tag': (c_int, c_void_p, c_char_p, c_char_p),
    'dptrack_note': (c_int, c_void_p, c_char_p),
    'dptrack_environment': (c_int, c_void_p, c_char_p, c_char_p),
    'dptrack_image': (c_int, c_void_p, c_int64, c_char_p, c_void_p, c_int, c_int),
    'dptrack_audio': (c_int, c_void_p, c_int64, c_char_p, c_void_p, c_char_p),
    'dptrack_histogram': (c_int, c_void_p, c_int64, c_char_p, c_void_p, c_void_p, c_size_t),
    'dptrack_text': (c_int, c_void_p, c_int64, c_char_p, c_char_p),
    'dptrack_table': (c_int, c_void_p, c_int64, c_char_p, c_void_p, c_size_t, c_size_t),
    'dptrack_console': (c_int, c_void_p, c_int, c_char_p, c_size_t),
    'dptrack_code': (c_int, c_void_p, c_char_p, c_char_p),
    'dptrack_alert': (c_int, c_void_p, c_int, c_int64, c_char_p, c_char_p),
    'dptrack_set_status': (c_int, c_void_p, c_int, c_char_p),
    'dptrack_run_id': (c_char_p, c_void_p),
    'dptrack_run_name': (c_char_p, c_void_p),
    'dptrack_run_dir': (c_char_p, c_void_p),
    'dptrack_run_segment': (c_int, c_void_p),
    'dptrack_dropped': (c_uint64, c_void_p),
}


class Library:
    """The functions as attributes without their prefix: Library().log is dptrack_log."""

    def __init__(self, path: str) -> None:
        loaders: tuple[tuple[dict[str, tuple[Any, ...]], Any], ...] = ((WAITING, ctypes.CDLL), (QUEUEING, ctypes.PyDLL))
        for table, load in loaders:
            so = load(path)
            for name, (result, *arguments) in table.items():
                function = getattr(so, name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name[len('dptrack_'):], function)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...


def places() -> list[str]:
    """Candidate paths of the library, best first."""
    named = os.environ.get('DPTRACK_LIBRARY')
    if named:
        return [named]
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'libdptrack.so')
    return [bundled] if os.path.exists(bundled) else ['libdptrack.so.0', 'libdptrack.so']


def load() -> Any:
    """Loads the library, or with DPTRACK_PURE=1, or where it cannot be loaded, what does the same in Python. Of the package's own library
    that is said; OSError if the one that DPTRACK_LIBRARY names cannot be loaded."""
    reasons, paths = [], places()
    for path in paths if os.environ.get('DPTRACK_PURE') != '1' else ():
        try:
            return Library(path)
        except (OSError, AttributeError) as error:
            reasons.append(str(error))
    if reasons and os.environ.get('DPTRACK_LIBRARY'):
        raise OSError('libdptrack cannot be loaded (%s): set DPTRACK_LIBRARY to the path of another, or omit it' % reasons[0])
    if reasons and len(paths) == 1:
        from dptrack._run import say
        say('%s: runs are recorded by Python alone, without statistics of the machine' % reasons[0])
    from dptrack import pure
    return pure.Library()
