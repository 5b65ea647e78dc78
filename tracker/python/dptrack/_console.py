# SPDX-License-Identifier: Apache-2.0
"""Copies the output of the program to its runs by wrapping the write methods of sys.stdout and sys.stderr. Does not see output
of C code. Calls only printed(stream, text) of a run."""
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dptrack._run import Run

_runs: list[Run] = []
_wrapped: dict[int, tuple[Any, Any]] = {}  # stream number -> (stream, its original write)
STREAMS = {1: 'stdout', 2: 'stderr'}


def _wrap(number: int, stream: Any) -> None:
    write = stream.write

    def tee(text: str) -> Any:
        written = write(text)
        for run in _runs:
            run.printed(number, text)
        return written

    stream.write = tee
    _wrapped[number] = (stream, write)


def add(run: Run) -> None:
    """Sends output to the run. Skips a stream that cannot be wrapped (None, or read-only attributes)."""
    for number, name in STREAMS.items():
        stream = getattr(sys, name)
        if number not in _wrapped or _wrapped[number][0] is not stream:
            try:
                _wrap(number, stream)
            except AttributeError:
                continue
    _runs.append(run)


def remove(run: Run) -> None:
    if run in _runs:
        _runs.remove(run)
    if not _runs:
        for stream, write in _wrapped.values():
            try:
                del stream.write
            except AttributeError:
                stream.write = write
        _wrapped.clear()
