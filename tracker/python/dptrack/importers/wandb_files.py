# SPDX-License-Identifier: Apache-2.0
"""Reads W&B's offline runs: the .wandb files, which are logs of records (wandb_internal.proto), and the files next to them. W&B's own
reader stops at the first damaged record; this one names it and reads on. It needs no package."""
from __future__ import annotations

import fnmatch
import json
import math
import os
import re
import struct
import zlib

from dptrack.importers import Files, Refused, Skipped, flat, image_content, is_number, number, run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from dptrack.importers import RunWriter

OWN_KEYS = ('_step', '_runtime', '_timestamp', '_wandb')  # W&B adds them to every row
DOCUMENT = re.compile(rb'\s*<(!doctype|html)', re.I)
HEAD = b'<!doctype html><meta charset="utf-8">'


def as_float(value: Any) -> float:
    return float(value)


# ---- values that rows, config and summary have: also those of the cloud ----

class Rows:
    """Writes the values of one run.

    Args:
        emit: Called with (time, kind of line, value) for items with a time.
        read: Returns (bytes, path) of a file that a row names; raises Skipped.
    """

    def __init__(self, out: RunWriter, emit: Callable[[float, str, Any], None], read: Callable[[str], tuple[bytes, str]]) -> None:
        self.out, self.emit, self.read = out, emit, read
        self.last: dict[str, float] = {}  # the newest number of each key of rows; NaN: it has none
        self.rules: dict[str, str] = {}   # of define_metric: name or pattern, its step metric
        self.row: dict[str, Any] = {}
        self.step, self.at = 0, 0.0

    def step_of(self, key: str) -> int:
        """The row's step, or the whole number that the key's step metric has."""
        metric = self.rules.get(key)
        if metric is None:
            metric = next((m for name, m in self.rules.items() if '*' in name and m != key and fnmatch.fnmatchcase(key, name)), '')
        at = self.row.get(metric, self.last.get(metric)) if metric else None
        return int(at) if isinstance(at, (int, float)) and at == at // 1 and abs(at) < 9e15 else self.step

    def item(self, kind: str, key: str, content: Any) -> None:
        self.emit(self.at, kind, [key, self.step_of(key), self.at, content])

    def document(self, value: dict[str, Any], kind: str) -> dict[str, Any]:
        data, _ = self.read(value['path'])
        return {'text': ((HEAD if kind == 'html-file' and not DOCUMENT.match(data) else b'') + data).decode('utf-8', 'replace')}

    def content(self, value: dict[str, Any], kind: str) -> tuple[str, dict[str, Any]]:
        """(kind of line, its content) of an object with _type."""
        if kind in ('image-file', 'audio-file', 'video-file'):
            data, path = self.read(value['path'])
            if kind == 'audio-file' or kind == 'video-file' and not data.startswith(b'GIF8'):
                return 'audio', {'file': path, 'type': 'audio/wav' if kind == 'audio-file' else 'video/mp4'}
            size = (value['width'], value['height']) if value.get('width') and value.get('height') else None
            return 'image', image_content(data, path, size)
        if kind in ('html-file', 'plotly-file'):
            return 'text', self.document(value, kind)
        if kind == 'table-file':
            table = json.loads(self.read(value['path'])[0])
            return 'table', {'columns': [str(column) for column in table['columns']], 'data': table['data']}
        if kind == 'histogram':
            packed: Any = value.get('packedBins')
            bins = value.get('bins') or [packed['min'] + packed['size'] * i for i in range(packed['count'] + 1)]
            if len(bins) == len(value['values']) + 1:
                return 'histogram', {'values': value['values'], 'bins': bins}
        raise Skipped('')

    def media(self, key: str, value: dict[str, Any], kind: str) -> None:
        try:
            line, content = self.content(value, kind)
        except (Skipped, ValueError, KeyError, TypeError) as why:
            text = str(why) if isinstance(why, Skipped) else 'it is damaged'
            self.out.left_out('%s of W&B: %s%s' % (kind, key, ': ' + text if text else ''))
            return
        self.item(line, key, content)
        if value.get('caption') and kind != 'audio-file':  # as dptrack.log records it
            self.item('text', key + '/caption', {'text': str(value['caption'])})

    def media_list(self, key: str, value: dict[str, Any], kind: str) -> bool:
        """Media of one step become KEY/0, KEY/1, …, as dptrack.log names a list of them."""
        items = value.get('filenames' if kind == 'images/separated' else kind if kind in ('audio', 'videos', 'html', 'plotly') else '')
        if not isinstance(items, list) or not items:
            return False
        captions = value.get('captions')
        for n, one in enumerate(items):
            item = dict(one) if isinstance(one, dict) else {**value, '_type': 'image-file', 'path': one}
            if isinstance(captions, list) and n < len(captions) and isinstance(captions[n], str):
                item['caption'] = captions[n]
            self.media('%s/%d' % (key, n), item, item.get('_type') or 'audio-file')
        return True

    def value(self, key: str, value: Any) -> None:
        if is_number(value):
            self.item('points', key, number(value))
            self.last[key] = as_float(value)
            return
        if isinstance(value, dict) and '_type' not in value:
            for name, inner in value.items():
                self.value('%s.%s' % (key, name), inner)
            return
        if value is None:
            return
        self.last[key] = math.nan
        if isinstance(value, dict):
            kind = str(value['_type'])
            if not self.media_list(key, value, kind):
                self.media(key, value, kind)
        elif isinstance(value, str):
            self.item('text', key, {'text': value})
        elif isinstance(value, list) and value and all(isinstance(one, dict) and '_type' in one for one in value):
            for n, one in enumerate(value):
                self.media('%s/%d' % (key, n), one, str(one['_type']))
        else:
            self.out.left_out('a list in the history: %s' % key)

    def write_row(self, row: dict[str, Any], step: int, at: float) -> None:
        self.row, self.step, self.at = row, step, at
        for key, value in row.items():
            if key not in OWN_KEYS:
                self.value(key, value)

    def config(self, config: dict[str, Any]) -> None:
        for key, value in flat({k: v for k, v in config.items() if k != '_wandb'}):
            self.out.param(key, value)

    def final(self, key: str, value: Any) -> None:
        """Writes a value of the summary: of a key without rows a point at the last step, or a tag; of a key with rows what a program
        has set, which differs from the last row."""
        if isinstance(value, dict) and '_type' not in value:
            for name, inner in value.items():
                if name not in ('min', 'max') or key not in self.last:  # which W&B keeps after define_metric
                    self.final('%s.%s' % (key, name), inner)
        elif key in self.last:
            if is_number(value) and math.isfinite(self.last[key]) and as_float(value) != self.last[key]:
                self.out.tag('summary.' + key, json.dumps(value))
        elif is_number(value):
            self.out.final(key, self.step, self.at, value)
        elif isinstance(value, str):
            self.out.tag(key, value)
        elif isinstance(value, list):
            self.out.left_out('a list in the summary: %s' % key)

    def summary(self, summary: dict[str, Any]) -> None:
        for key, value in summary.items():
            if key not in OWN_KEYS:
                self.final(key, value)


# ---- the log: blocks of 32 KiB with fragments of records ----

BLOCK = 32768
PIECE = struct.Struct('<IHB')  # CRC-32 of kind and data, bytes of data, kind
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
START = b':W&B\xe1\xbe\x00'


class Log:
    """The complete records of a .wandb file. damaged: offsets of fragments that cannot be read. torn: the end is incomplete, as a
    killed process leaves it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.torn = file, False
        self.damaged: list[int] = []
        if file.read(len(START)) != START:
            raise Skipped('not a .wandb file')
        file.seek(0)

    def intact(self, block: bytes, at: int) -> int:
        """The end of the fragment at this offset; 0: it is damaged, negative: it ends after the end of the file."""
        left = len(block) - at
        if left < PIECE.size:
            return -1 if left > 0 and BLOCK - at >= PIECE.size else 0
        crc, size, kind = PIECE.unpack_from(block, at)
        end = at + PIECE.size + size
        if end > len(block):
            return -1 if end <= BLOCK else 0
        return end if FULL <= kind <= LAST and zlib.crc32(block[at + 6:end]) == crc else 0

    def pieces(self) -> Iterator[tuple[int, int, bytes]]:
        """(offset, kind, data) of the intact fragments. After a damaged one it reads on at the next that is intact."""
        base, at = 0, len(START)
        while True:
            block = self.file.read(BLOCK)
            while at < len(block) and BLOCK - at >= PIECE.size:
                end = self.intact(block, at)
                if end > 0:
                    yield base + at, block[at + 6], block[at + PIECE.size:end]
                    at = end
                elif end < 0:
                    self.torn = True
                    return
                else:
                    self.damaged.append(base + at)
                    after = at + PIECE.size + PIECE.unpack_from(block, at)[1]  # right if its data are damaged, not its head
                    at = after if after < len(block) and self.intact(block, after) > 0 else len(block)
            if len(block) < BLOCK:
                return
            base, at = base + BLOCK, 0

    def records(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        for offset, kind, data in self.pieces():
            if kind in (FULL, FIRST):
                if parts:
                    self.damaged.append(offset)  # the record before it has no end
                parts = []
            elif not parts:
                self.damaged.append(offset)
                continue
            parts.append(data)
            if kind in (FULL, LAST):
                yield b''.join(parts)
                parts = []


# ---- protobuf ----

def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128 or shift > 63:
            return (value - (1 << 64) if value >> 63 & 1 else value), at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, integer or bytes) of a message's fields; it ends at a malformed one."""
    at, length = 0, len(data)
    try:
        while at < length:
            key, at = (data[at], at + 1) if data[at] < 128 else varint(data, at)
            kind = key & 7
            if kind == 2:
                size, at = (data[at], at + 1) if data[at] < 128 else varint(data, at)
                end = at + size
                if size < 0 or end > length:
                    return
                yield key >> 3, data[at:end]
                at = end
            elif kind == 0:
                value, at = varint(data, at)
                yield key >> 3, value
            elif kind in (1, 5):
                end = at + (8 if kind == 1 else 4)
                yield key >> 3, data[at:end]
                at = end
            else:
                return
    except IndexError:
        return


def messages(data: bytes, number: int) -> Iterator[bytes]:
    for n, value in fields(data):
        if n == number and isinstance(value, bytes):
            yield value


def text_of(value: Any) -> str:
    return value.decode('utf-8', 'replace') if isinstance(value, bytes) else ''


def seconds_of(stamp: bytes) -> float:
    """google.protobuf.Timestamp"""
    found = {n: value for n, value in fields(stamp) if isinstance(value, int)}
    return found.get(1, 0) + found.get(2, 0) / 1e9


def merge(into: dict[str, Any], item: bytes, remove: bool = False) -> None:
    """Applies an item of a history, config or summary: a key or nested keys, and JSON."""
    path, value = [], b''
    for n, found in fields(item):
        if n in (1, 2) and isinstance(found, bytes):
            path.append(text_of(found))
        elif n == 16 and isinstance(found, bytes):
            value = found
    for name in path[:-1]:
        inner = into.get(name)
        if not isinstance(inner, dict):
            inner = into[name] = {}
        into = inner
    if path and remove:
        into.pop(path[-1], None)
    elif path:
        try:
            into[path[-1]] = json.loads(text_of(value))
        except ValueError:
            pass


def merge_all(into: dict[str, Any], record: bytes) -> None:
    """Updates are field 1, removals field 2."""
    for item in messages(record, 1):
        merge(into, item)
    for item in messages(record, 2):
        merge(into, item, True)


# ---- one file: a session of a run ----

TEXTS = {1: 'id', 2: 'entity', 3: 'project', 6: 'group', 7: 'job', 8: 'name', 9: 'notes'}
ENVIRONMENT = {1: 'os', 2: 'python', 6: 'program', 12: 'host', 14: 'executable', 18: 'gpu', 25: 'cuda'}
LINE_END = re.compile(rb'(\n|\r(?=[^\n]))')


class Session:
    """known: of the runs so far, by id: [number of sessions, name]."""

    def __init__(self, out: RunWriter, path: str, files: Files, known: dict[str, list[Any]]) -> None:
        self.out, self.files, self.known, folder = out, files, known, os.path.dirname(os.path.abspath(path))
        self.called, self.saved = os.path.basename(folder), os.path.join(folder, 'files')
        self.rows = Rows(out, lambda at, kind, value: out.event(kind, value), self.read_saved)
        self.id, self.ended, self.code, self.at, self.samples = '', False, 0, 0.0, 0
        self.settings: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.rest = {1: b'', 2: b''}  # output after the last line end, by stream

    def read_saved(self, path: str) -> tuple[bytes, str]:
        if os.path.isabs(path) or '..' in path.split('/'):
            raise Skipped('%s: leads out of the files of its run' % path)
        whole = os.path.join(self.saved, path)
        return self.files.read(whole), whole

    def identify(self, record: bytes) -> None:
        """Begins the run; the record is repeated with later information."""
        out, words, tags, git, started, first_step = self.out, dict.fromkeys(TEXTS.values(), ''), [], b'', 0.0, 0
        for n, value in fields(record):
            if n in TEXTS:
                words[TEXTS[n]] = text_of(value)
            elif n == 10:
                tags.append(text_of(value))
            elif n == 14 and isinstance(value, int):
                first_step = value
            elif n == 17 and isinstance(value, bytes):
                started = seconds_of(value)
            elif n == 21 and isinstance(value, bytes):
                git = value
        if not self.id and words['id']:
            id = run_id('wandb', '%s/%s/%s' % (words['entity'], words['project'], words['id']))
            sessions = self.known.setdefault(id, [0, words['id']])
            name, part = words['name'] or sessions[1], {'part': self.called, 'segment': sessions[0]}
            out.run(id, words['project'] or 'uncategorized', name, started, **part, **({'first_step': first_step} if first_step > 0 else {}))
            self.id, self.at, self.known[id] = id, started, [sessions[0] + 1, name]
            for tag, word in (('run_id', 'id'), ('entity', 'entity'), ('group', 'group'), ('job_type', 'job')):
                if words[word]:
                    out.tag('wandb.' + tag, words[word])
            for config in messages(record, 4):
                merge_all(self.settings, config)
            self.git(git)
        elif self.id and words['name']:
            out.name(words['name'])
            self.known[self.id][1] = words['name']
        if self.id:
            for tag in tags:
                out.tag(tag)
            if words['notes']:
                out.note(words['notes'])

    def git(self, record: bytes) -> None:
        for n, value in fields(record):
            if n in (1, 2):
                self.out.code('remote' if n == 1 else 'commit', text_of(value))

    def environment(self, record: bytes) -> None:
        for n, value in fields(record):
            if n in ENVIRONMENT and isinstance(value, bytes):
                self.out.environment(ENVIRONMENT[n], text_of(value))
            elif n == 9 and isinstance(value, bytes):
                self.git(value)

    def history(self, record: bytes) -> None:
        row: dict[str, Any] = {}
        step = self.rows.step
        for n, value in fields(record):
            if n == 1:
                merge(row, value)
            elif n == 2:
                step = dict(fields(value)).get(1, 0)
        at = row.get('_timestamp')
        self.at = float(at) if isinstance(at, (int, float)) and at > 0 else self.at
        self.rows.write_row(row, step, self.at)

    def stats(self, record: bytes) -> None:
        """A sample of system statistics: W&B's names below system/, numbered by sample."""
        row: dict[str, Any] = {}
        at = next((seconds_of(stamp) for stamp in messages(record, 2)), self.at)
        for item in messages(record, 3):
            merge(row, item)
        self.samples += 1
        for name, value in row.items():
            if is_number(value):
                self.out.event('points', ['system/' + name, self.samples, at, number(value)])
        self.at = max(self.at, at)

    def line(self, stream: int, at: float, line: bytes, again: bool = False) -> None:
        self.out.event('console', [stream, at, line.replace(b'\r', b'').decode('utf-8', 'replace').replace('\0', '\ufffd'), *([True] if again else [])])

    def output(self, record: bytes) -> None:
        """Output comes in pieces. A line ends at its line feed; after a carriage return the next text overwrites it."""
        found = dict(fields(record))
        stream, at = 1 if found.get(1) == 1 else 2, seconds_of(found[2]) if 2 in found else self.at
        *pairs, rest = LINE_END.split(found.get(3, b''))
        for n in range(0, len(pairs), 2):
            self.line(stream, at, self.rest[stream] + pairs[n], pairs[n + 1] == b'\r')
            self.rest[stream] = b''
        self.rest[stream] += rest
        self.at = max(self.at, at)

    def alert(self, record: bytes) -> None:
        found = {n: text_of(value) for n, value in fields(record)}
        level = found.get(3) if found.get(3) in ('WARN', 'ERROR') else 'INFO'
        self.out.event('alert', [level, self.rows.step, self.at, found.get(1, ''), found.get(2, '')])

    def metric(self, record: bytes) -> None:
        found = {n: text_of(value) for n, value in fields(record)}
        name = found.get(1) or found.get(2)
        if name:
            self.rows.rules[name] = found.get(4, '')

    def exit(self, record: bytes) -> None:
        self.ended, self.code = True, dict(fields(record)).get(1, 0)

    def artifact(self, record: bytes) -> None:
        self.out.left_out('an artifact of W&B, whose files are in its own cache: %s' % text_of(dict(fields(record)).get(5)))

    def tensorboard(self, record: bytes) -> None:
        self.out.left_out('a folder of TensorBoard: import it separately')

    def record(self, data: bytes) -> None:
        readers = {2: self.history, 3: lambda r: merge_all(self.summary, r), 4: self.output, 5: lambda r: merge_all(self.settings, r), 7: self.stats,
                   8: self.artifact, 9: self.tensorboard, 10: self.alert, 12: self.metric, 13: self.output, 18: self.exit, 26: self.environment}
        for n, value in fields(data):
            if n == 17 and isinstance(value, bytes):
                self.identify(value)
            elif self.id and n in readers and isinstance(value, bytes):
                with self.out.part():
                    readers[n](value)

    def read(self, path: str) -> None:
        with self.files.open(path) as f:
            log = Log(f)
            for data in log.records():
                self.record(data)
        if not self.id:
            raise Skipped('the record of its run is missing or damaged')
        if log.torn:
            self.out.left_out('the last record of %s, which is incomplete' % path)
        for offset in sorted(set(log.damaged)):
            self.out.left_out('a damaged record of %s, at byte %d' % (path, offset))
        for stream, rest in self.rest.items():
            if rest:
                self.line(stream, self.at, rest)
        self.rows.config(self.settings)
        if self.ended:  # without an end, rows may be missing
            self.rows.summary(self.summary)
        if os.path.isdir(self.saved):
            self.out.file('', self.saved)
        status = 'killed' if not self.ended else 'failed' if self.code else 'finished'  # W&B calls the first crashed
        self.out.end(status, self.at, 'exit code %d' % self.code if self.code else '')


def log_files(files: Files, folder: str, depth: int = 0) -> Iterator[str]:
    """The .wandb files in a folder, and in its folders of runs; latest-run is a link to one of them."""
    for name in files.names(folder):
        path = os.path.join(folder, name)
        if name.endswith('.wandb'):
            yield path
        elif not depth and name.startswith(('offline-run-', 'run-')) and files.kind(path) == 'folder':
            yield from log_files(files, path, 1)


def write_runs(out: RunWriter, options: argparse.Namespace) -> None:
    source = options.source
    known: dict[str, list[Any]] = {}
    top = source if os.path.isdir(source) else os.path.dirname(os.path.abspath(source))
    files = Files(out, top, options.files_from)
    if top != source:
        paths = [source]
    else:
        paths = list(log_files(files, source)) or list(log_files(files, os.path.join(source, 'wandb')))
    if not paths:
        raise Refused('%s: contains no .wandb file, nor a folder of a run with one' % source)
    for path in paths:
        with out.one_run(path):
            Session(out, path, files, known).read(path)
