# SPDX-License-Identifier: Apache-2.0
"""Finds the program dptrack. Each start of a wheel's command waits for this module, so it imports others only where it needs them."""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def find_program() -> str | None:
    """The program dptrack: $DPTRACK_PROGRAM, of this package or environment, or on PATH."""
    named = os.environ.get('DPTRACK_PROGRAM')
    if named:
        return named
    found = (path for path in _places() if os.path.isfile(path) and os.access(path, os.X_OK))
    return next(filter(None, map(_program_at, found)), None)


def _places() -> Iterator[str]:
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bin', 'dptrack')
    import sysconfig
    yield os.path.join(sysconfig.get_path('scripts'), 'dptrack')
    yield os.path.join(os.path.dirname(sys.executable or ''), 'dptrack')
    for folder in os.get_exec_path():
        yield os.path.join(folder, 'dptrack')


def _program_at(path: str) -> str | None:
    """The path; of a wheel's command the program that it would start, if it has one: the client's would search again, without end."""
    try:
        with open(path, 'rb') as f:
            head = f.read(4096)
    except OSError:  # a program need not be readable
        return path
    if not head.startswith(b'#!') or b'dptrack.__main__' not in head:
        return path
    import glob
    root = os.path.dirname(os.path.dirname(os.path.realpath(path)))
    return next(iter(glob.glob(os.path.join(glob.escape(root), 'lib*', 'python3*', 'site-packages', 'dptrack', 'bin', 'dptrack'))), None)
