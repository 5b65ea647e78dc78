# SPDX-License-Identifier: Apache-2.0
"""Imports the runs of other trackers; `dptrack import SOURCE` starts it:

    python -m dptrack.importers mlflow mlruns
    python -m dptrack.importers wandb wandb/
    python -m dptrack.importers aim REPOSITORY

One module per tracker reads the runs. RunWriter writes them as the JSON lines that `dptrack import` reads
(docs/reference/json-lines.md). Run ids are the tracker's or hashes of them, and points are in the order of time or of arrival, so
that a repeated import adds only what is new. What cannot be read is named and left out."""
from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
from contextlib import contextmanager
from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import IO, Any, BinaryIO

BATCH = 1000
FILE_MAX = 64 << 20     # of a file that is read as a whole
SPOOL_BYTES = 64 << 20  # of a run's lines in memory
NUL = re.compile(r'(?<!\\)(?:\\\\)*\\u0000')  # in JSON
SUFFIXES = {b'\x89PNG': '.png', b'\xff\xd8\xff': '.jpg', b'GIF8': '.gif', b'RIFF': '.wav'}


class Refused(Exception):
    """The source cannot be read; the message is one line for the user. status: 2 wrong source, 1 damaged."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


class Skipped(Exception):
    """A part of the source cannot be read; the message names it."""


class WriteFailed(Exception):
    """The lines cannot be passed on."""


def reason_of(error: Exception) -> str:
    """In one line. Damaged data and a tracker's package may raise anything."""
    text = str(error).strip().split('\n')[0][:500]
    return text if isinstance(error, Skipped) else '%s: %s' % (type(error).__name__, text)


def run_id(*words: str) -> str:
    """Hashes a tracker's name of a run to 32 hex digits."""
    return hashlib.sha256(' '.join(words).encode('utf-8', 'replace')).hexdigest()[:32]


def number(value: Any) -> Any:
    """A float, or the strings NaN, Infinity and -Infinity, which JSON has no number for."""
    value = float(value)
    if value - value == 0:
        return value
    return 'NaN' if value != value else 'Infinity' if value > 0 else '-Infinity'


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or value in ('NaN', 'Infinity', '-Infinity')


def flat(mapping: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, Any]]:
    """Yields (key, leaf) of nested mappings; keys are joined by dots."""
    for key, value in mapping.items():
        if isinstance(value, dict) and value:
            yield from flat(value, '%s%s.' % (prefix, key))
        else:
            yield '%s%s' % (prefix, key), value


def local_path(uri: str) -> str | None:
    """Path of a file: URI or a plain path; None for any other URI."""
    from urllib.parse import unquote, urlsplit
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == 'file' else None if parts.scheme else uri


def is_below(folder: str, path: str) -> bool:
    """Whether the path leads below the folder, links resolved."""
    top = os.path.realpath(folder)
    return os.path.commonpath([top, os.path.realpath(path)]) == top


class RunWriter:
    """Writes JSON lines to the stream that open_stream opens at the first line. folder holds media files until the importer has
    read them. A run is written within `one_run`, which passes it on once it is complete."""

    def __init__(self, open_stream: Callable[[], IO[str]], folder: str, called: str = '') -> None:
        self._open, self.folder, self._called, self._made = open_stream, folder, called, 0
        self._events: list[tuple[float, str, Any]] = []
        self._points: list[Any] = []
        self._stream: IO[str] | None = None
        self._spool: Any = None
        self.runs = 0

    def begin(self) -> IO[str]:
        """Opens the stream, with the first line."""
        if self._stream is None:
            self._stream = self._open()
            self._line('dptrack_runs', 1, source=self._called)
        return self._stream

    def _line(self, kind: str, value: Any, **more: Any) -> None:
        stream = self._spool or self.begin()
        line = json.dumps({kind: value, **more}, ensure_ascii=False, allow_nan=False, separators=(',', ':'), default=str)
        if '\\u0000' in line and NUL.search(line):
            for row in value if kind == 'points' and len(value) > 1 else ():
                self._line(kind, [row])
            if kind != 'points' or len(value) == 1:
                self.left_out('a %s with a NUL character: %s' % (kind, line[:200]))
            return
        try:
            stream.write(line + '\n')
        except UnicodeEncodeError:  # names of files that are not UTF-8
            stream.write(line.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace') + '\n')
        except OSError as error:
            raise WriteFailed(str(error)) from error

    @contextmanager
    def one_run(self, called: str) -> Iterator[None]:
        """Reports a run that cannot be read to its end as left out, and continues with the next."""
        self._events, self._points = [], []
        with tempfile.SpooledTemporaryFile(SPOOL_BYTES, 'w+', encoding='utf-8') as spool:
            self._spool = spool
            try:
                yield
            except (WriteFailed, Refused):
                raise
            except Exception as error:
                self._spool = None
                self.left_out('run %s, which cannot be read: %s' % (called, reason_of(error)))
                return
            whole, self._spool = self._spool, None
            try:
                whole.seek(0)
                shutil.copyfileobj(whole, self.begin())
            except OSError as error:
                raise WriteFailed(str(error)) from error
            self.runs += 1

    @contextmanager
    def part(self) -> Iterator[None]:
        """Names a part that cannot be read as left out, and continues after it."""
        try:
            yield
        except (WriteFailed, Refused):
            raise
        except Exception as error:
            self.left_out(reason_of(error))

    # ---- what a run is ----

    def run(self, id: str, experiment: str | None, name: str | None, start: float, **session: Any) -> None:
        """session: part, segment, first_step of a run that was resumed."""
        named, within = (name or '').replace('\0', '?'), (experiment or 'default').replace('\0', '?')
        self._line('run', {'id': id, 'experiment': within, 'name': named, 'start': float(start), **session})

    def name(self, name: str) -> None:
        self._line('name', name)

    def param(self, key: str, value: Any) -> None:
        """Keeps the type of a number, a bool or a text; another value becomes its JSON."""
        if isinstance(value, float) and not math.isfinite(value):
            value = number(value)
        elif not isinstance(value, (bool, int, float, str)):
            value = json.dumps(value, separators=(',', ':'), ensure_ascii=False, default=str)
        self._line('param', [key, value])

    def tag(self, key: str, value: Any = '') -> None:
        self._line('tag', [key, str(value)])

    def environment(self, key: str, value: Any) -> None:
        self._line('environment', [key, str(value)])

    def code(self, name: str, value: Any) -> None:
        self._line('code', [name, value])

    def note(self, markdown: str) -> None:
        self._line('note', markdown)

    def final(self, key: str, step: int, at: float, value: Any) -> None:
        self._line('final', [key, step, at, number(value)])

    def file(self, path: str, source: str) -> None:
        self._line('file', [path, os.path.abspath(source)])

    def input(self, dataset: dict[str, Any]) -> None:
        self._line('input', dataset)

    def output(self, model: str, step: int) -> None:
        self._line('output', [model, step])

    def deleted(self) -> None:
        self._line('deleted', True)

    # ---- what belongs to no run; after the runs ----

    def experiment(self, name: str, tags: dict[str, str], deleted: bool = False) -> None:
        self._line('experiment', {'name': name, 'tags': tags, 'deleted': deleted})

    def logged_model(self, model: dict[str, Any]) -> None:
        self._line('logged_model', model)

    def registered_model(self, model: dict[str, Any]) -> None:
        self._line('registered_model', model)

    def left_out(self, what: str) -> None:
        self._line('left_out', what)

    # ---- items with a time, in order: event; in any order, kept until the end: later, point, media, console ----

    def event(self, kind: str, value: Any) -> None:
        """Writes a line as it comes; points are joined."""
        if kind == 'points':
            self._points.append(value)
            if len(self._points) < BATCH:
                return
        self.flush()
        if kind != 'points':
            self._line(kind, value)

    def events(self, rows: Iterable[tuple[str, Any]]) -> None:
        for kind, value in rows:
            self.event(kind, value)

    def flush(self) -> None:
        """Writes the points that `event` has joined."""
        if self._points:
            self._line('points', self._points)
            self._points = []

    def later(self, at: float, kind: str, value: Any) -> None:
        self._events.append((at, kind, value))

    def point(self, key: str, step: int, at: float, value: Any) -> None:
        self.later(at, 'points', [key, step, at, number(value)])

    def media(self, kind: str, key: str, step: int, at: float, content: Any) -> None:
        """content: as json-lines.md describes it for an image, audio, histogram, text or table."""
        self.later(at, kind, [key, step, at, content])

    def console(self, stream: int, at: float, line: str) -> None:
        self.later(at, 'console', [stream, at, line])

    def keep(self, data: bytes) -> str:
        """Writes bytes to a file that exists until the import ends, and returns its path."""
        suffix = next((s for head, s in SUFFIXES.items() if data.startswith(head)), '')
        self._made += 1
        path = os.path.join(self.folder, '%d%s' % (self._made, suffix))
        try:
            with open(path, 'wb') as f:
                f.write(data)
        except OSError as error:
            raise WriteFailed(str(error)) from error
        return path

    def image(self, key: str, step: int, at: float, data: bytes, size: tuple[int, int] | None = None) -> None:
        """data: an image file; formats that browsers cannot show are left out."""
        with self.part():
            self.media('image', key, step, at, image_content(data, self.keep(data), size))

    def end(self, status: str, at: float, reason: str = '') -> None:
        """status: 'finished', 'failed', 'killed', 'preempted', or 'running' while it has not ended."""
        self.events(event[1:] for event in sorted(self._events, key=itemgetter(0)))
        self.flush()
        self._events = []
        self._line('end', [status, float(at), reason])


def image_content(data: bytes, path: str, size: tuple[int, int] | None = None) -> dict[str, Any]:
    """The content of an image's line, of a file's bytes and path."""
    from dptrack._media import _size
    try:
        width, height = size or _size(data)
    except ValueError as error:
        raise Skipped('%s: %s' % (path, error)) from None
    return {'file': path, 'width': int(width), 'height': int(height)}


# ---- files of the source ----

LINK = "a symbolic link to a folder, or to no file below the imported folder: name the file's folder with --files-from DIR"
OUTSIDE = '%s: is outside the imported folder: name its folder with --files-from DIR'


class Files:
    """Reads files below the source and the folders that the user allows, and nothing else. A path is one of the source; what is
    left out is named."""

    def __init__(self, out: RunWriter, top: str, more: Sequence[str] = ()) -> None:
        self.out, self.tops = out, [os.path.realpath(folder) for folder in (top, *more)]
        self._folders: dict[str, str] = {}  # real paths

    def real(self, path: str) -> str | None:
        """The real path; None if it is outside."""
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        whole = os.path.join(self._folders[folder], name)
        if os.path.islink(whole) or name in ('', '.', '..'):
            whole = os.path.realpath(whole)
        return whole if any(os.path.commonpath([top, whole]) == top for top in self.tops) else None

    def kind(self, path: str) -> str | None:
        """'file' or 'folder'; None, named, for anything else. A link counts as a file if it leads to one inside."""
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            self.out.left_out('%s: %s' % (path, error.strerror))
            return None
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return 'file' if stat.S_ISREG(mode) else 'folder'
        whole = self.real(path) if stat.S_ISLNK(mode) else None
        if whole and os.path.isfile(whole):
            return 'file'
        self.out.left_out('%s: %s' % (path, LINK if stat.S_ISLNK(mode) else 'not a regular file'))
        return None

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted; none, named, if it cannot be listed. A missing folder has none."""
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            self.out.left_out('%s: %s' % (folder, error.strerror))
            return []

    def open(self, path: str) -> BinaryIO:
        """Opens a regular file."""
        whole = self.real(path)
        if whole is None:
            raise Skipped(OUTSIDE % path)
        try:
            f = open(os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), 'rb')
        except OSError as error:
            raise Skipped('%s: %s' % (path, error.strerror)) from None
        if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
            f.close()
            raise Skipped('%s: not a regular file' % path)
        return f

    def read(self, path: str) -> bytes:
        """The bytes of a regular file."""
        with self.open(path) as f:
            try:
                data = f.read(FILE_MAX + 1)
            except OSError as error:
                raise Skipped('%s: %s' % (path, error.strerror)) from None
        if len(data) > FILE_MAX:
            raise Skipped('%s: too large' % path)
        return data

    def text(self, path: str) -> str:
        """The text of a file. One with a NUL, of which a reader might see the beginning alone, is left out."""
        data = self.read(path)
        if b'\0' in data:
            raise Skipped('%s: contains a NUL byte' % path)
        return data.decode('utf-8', 'replace')


# ---- SQLite ----

class Database:
    """A SQLite file of another program, read and never written; it may be in use. All reads see one state of it."""

    def __init__(self, path: str) -> None:
        import sqlite3
        self.path, self.errors = path, (sqlite3.Error, UnicodeError)  # damaged names in a message
        try:
            try:
                self.db = self._open('?mode=ro')
            except sqlite3.OperationalError:  # its log needs a writable folder: without the log
                self.db = self._open('?mode=ro&immutable=1')
        except self.errors as error:
            raise Refused('%s: %s' % (path, error), 1) from None

    def _open(self, how: str) -> sqlite3.Connection:
        import sqlite3
        from urllib.parse import quote
        db = sqlite3.connect('file:%s%s' % (quote(os.path.abspath(self.path)), how), uri=True, timeout=5, isolation_level=None)
        db.text_factory = lambda data: data.decode('utf-8', 'replace')
        db.row_factory = sqlite3.Row
        db.execute('PRAGMA trusted_schema = OFF')
        db.execute('BEGIN')
        db.execute('SELECT count(*) FROM sqlite_master').fetchone()
        return db

    def has(self, table: str) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table))

    def columns(self, table: str) -> set[str]:
        return {row['name'] for row in self.rows('SELECT name FROM pragma_table_info(?)', table)}

    def each(self, what: str, query: str, *values: Any) -> Iterator[sqlite3.Row]:
        """Rows as they come. Damage raises Skipped after the rows before it; what: what the rows are."""
        try:
            yield from self.db.execute(query, values)
        except self.errors as error:
            raise Skipped('%s: %s: %s' % (self.path, what, error)) from None

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        return list(self.each('reading', query, *values))
