# SPDX-License-Identifier: Apache-2.0
"""Imports the runs of trackers that only a Python package can read:

    python -m dptrack.importers aim REPOSITORY
    python -m dptrack.importers neptune DATA --files FILES
    python -m dptrack.importers wandb ENTITY/PROJECT

One module per tracker reads the runs. RunWriter writes them as the JSON lines that `dptrack import` reads
(web/cli/import/json_lines.h defines them). Run ids are hashes of the tracker's ids and points are sorted by time, so that a
repeated import adds nothing."""
from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

BATCH = 1000
_WORDS = {math.inf: 'Infinity', -math.inf: '-Infinity'}
SPOOL_BYTES = 64 << 20  # of a run's lines in memory
SUFFIXES = {b'\x89PNG': '.png', b'\xff\xd8\xff': '.jpg', b'GIF8': '.gif', b'RIFF': '.wav'}


class Refused(Exception):
    """The source cannot be read; the message is one line for the user."""


def run_id(*words: str) -> Any:
    """Hashes a tracker's name of a run to 32 hex digits."""
    return hashlib.sha256(' '.join(words).encode()).hexdigest()[:32]


def number(value: Any) -> Any:
    """A float, or the strings NaN, Infinity and -Infinity, which JSON has no number for."""
    value = float(value)
    return 'NaN' if math.isnan(value) else _WORDS.get(value, value)


def text(value: Any) -> Any:
    """A param as text, in the form that `dptrack import` uses."""
    return value if isinstance(value, str) else json.dumps(value, separators=(',', ':'), ensure_ascii=False, default=str)


def flat(mapping: Mapping[str, Any], prefix : str= '') -> Iterator[Any]:
    """Yields (key, leaf) of nested mappings; keys are joined by dots."""
    for key, value in mapping.items():
        if isinstance(value, dict) and value:
            yield from flat(value, '%s%s.' % (prefix, key))
        else:
            yield '%s%s' % (prefix, key), value


def local_path(uri: str) -> Any:
    """Path of a file: URI or a plain path; None for any other URI."""
    from urllib.parse import unquote, urlsplit
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == 'file' else None if parts.scheme else uri


def is_below(folder: str, path: str) -> bool:
    """Whether the path leads below the folder, links resolved."""
    top = os.path.realpath(folder)
    return os.path.commonpath([top, os.path.realpath(path)]) == top


def neptune_files(source: str) -> str:
    """Where neptune-exporter puts the files of its DATA."""
    return os.path.join(os.path.dirname(os.path.abspath(source)), 'files')


class RunWriter:
    """Writes JSON lines to a stream. folder holds media files until the importer has read them. A run is written within
    `one_run`, which sends it on once it is complete."""

    def __init__(self, stream: Any, folder: str) -> None:
        self._stream, self.folder, self._made = stream, folder, 0
        self._events: list[tuple[Any, int, str, Any]] = []
        self._spool: Any = None
        self._line('dptrack_runs', 1)

    def _line(self, kind: str, value: Any) -> None:
        (self._spool or self._stream).write(json.dumps({kind: value}, ensure_ascii=False, allow_nan=False, separators=(',', ':')) + '\n')

    @contextmanager
    def one_run(self, called: str) -> Iterator[Any]:
        """Reports a run that cannot be read to its end as left out, and continues with the next."""
        self._events = []
        with tempfile.SpooledTemporaryFile(SPOOL_BYTES, 'w+', encoding='utf-8') as spool:
            self._spool = spool
            try:
                yield
            except Exception as error:  # the tracker's package may raise anything
                self._spool = None
                self.left_out('run %s, which cannot be read: %s: %s' % (called, type(error).__name__, str(error).split('\n')[0][:200]))
                return
            whole, self._spool = self._spool, None
            whole.seek(0)
            shutil.copyfileobj(whole, self._stream)

    def run(self, id: str, experiment: str | None, name: str, start: float) -> None:
        self._line('run', {'id': id, 'experiment': experiment or 'default', 'name': name or '', 'start': float(start)})

    def param(self, key: str, value: Any) -> None:
        self._line('param', [key, text(value)])

    def tag(self, key: str, value : Any= '') -> None:
        self._line('tag', [key, str(value)])

    def environment(self, key: str, value: Any) -> None:
        self._line('environment', [key, str(value)])

    def code(self, name: str, value: Any) -> None:
        self._line('code', [name, value])

    def note(self, markdown: str) -> None:
        self._line('note', markdown)

    def final(self, key: str, step: int, at: Any, value: Any) -> None:
        self._line('final', [key, step, at, number(value)])

    def file(self, path: str, source: str) -> None:
        self._line('file', [path, os.path.abspath(source)])

    def left_out(self, what: str) -> None:
        self._line('left_out', what)

    # ---- items with a time ----

    def point(self, key: str, step: int, at: Any, value: Any) -> None:
        self._events.append((at, len(self._events), 'points', [key, step, at, number(value)]))

    def media(self, kind: str, key: str, step: int, at: Any, content: Any) -> None:
        """content: as json_lines.h defines it for an image, audio, histogram, text or table."""
        self._events.append((at, len(self._events), kind, [key, step, at, content]))

    def console(self, stream: Any, at: Any, line: Any) -> None:
        self._events.append((at, len(self._events), 'console', [stream, at, line]))

    def keep(self, data: bytes) -> Any:
        """Writes bytes to a file that exists until the import ends, and returns its path."""
        suffix = next((s for head, s in SUFFIXES.items() if data.startswith(head)), '')
        self._made += 1
        path = os.path.join(self.folder, '%d%s' % (self._made, suffix))
        with open(path, 'wb') as f:
            f.write(data)
        return path

    def image(self, key: str, step: int, at: Any, data: bytes, size : Any= None) -> None:
        """data: an image file; formats that browsers cannot show are left out."""
        from dptrack._media import _size
        try:
            width, height = size or _size(data)
        except ValueError as error:
            self.left_out('%s: %s' % (key, error))
            return
        self.media('image', key, step, at, {'file': self.keep(data), 'width': int(width), 'height': int(height)})

    def end(self, status: str, at: Any) -> None:
        """status: 'finished', 'failed', 'killed', 'preempted', or 'running' while it has not ended."""
        points = []
        for _, _, kind, value in sorted(self._events, key=lambda event: event[:2]):
            if kind == 'points':
                points.append(value)
            if points and (kind != 'points' or len(points) == BATCH):
                self._line('points', points)
                points = []
            if kind != 'points':
                self._line(kind, value)
        if points:
            self._line('points', points)
        self._events = []
        self._line('end', [status, float(at)])

