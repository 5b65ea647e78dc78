# SPDX-License-Identifier: Apache-2.0
"""The functions of libdptrack without compiled code, for machines for which no wheel was built (DPTRACK_PURE=1 chooses it elsewhere).
Writes the same journals. What log has recorded is in the file when it returns, so that a kill loses nothing of it; while the disk is
full it waits in memory. Statistics of the machine (system/...) are not recorded."""
from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import hashlib
import math
import os
import re
import socket
import struct
import threading
import time
from collections import deque
from functools import partialmethod

from dptrack.pure import records as r

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from dptrack.pure.send import Sender

USAGE, NOENT, CONFLICT, IO, LIMIT, UNSENT, FORKED = -1, -2, -3, -5, -8, -10, -12
LAUNCHER, ENDED = -2, (1, 2, 3)  # the rank of a launcher; finished, failed, killed
VALUE_BYTES, MEDIA_BYTES, LINE_BYTES, PARAMS, KEYS = 8000, 8 << 20, 16384, 10000, 100000
PENDING_BYTES = 64 << 20  # while the disk refuses
HEARTBEAT_S, SYNC_S, ROUND_S, REPEAT_S, GIVE_UP_S, CLOSE_S = 10.0, 1.0, 0.2, 60.0, 5.0, 10.0
_CONTROL = re.compile('[\x00-\x1f\x7f-\x9f]')
_ADJECTIVES = ('amber bold brisk calm clear crisp deep eager early fair fresh gentle keen light lively lucid mellow merry mild nimble plain '
               'proud quick quiet rapid silent solid steady sunny swift warm wise').split()
_NOUNS = ('alder badger beech birch brook cedar comet crane dune falcon fern finch fjord grove heron iris lake larch lynx maple marsh meadow '
          'otter pine plover raven ridge river robin spruce swan willow').split()
_HEADER = {2: 'run_id', 3: 'writer_id', 6: 'experiment', 7: 'run_name', 8: 'segment'}


class Failed(Exception):
    """A code of dptrack.h with its line."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def clean(text: bytes | None) -> bytes:
    return (text or b'').decode('utf-8', 'replace').encode()


def shown(key: bytes) -> str:
    return _CONTROL.sub('?', key.decode('utf-8', 'replace'))[:95]


def wrong_key(key: bytes) -> str | None:
    """What is wrong with the name of a series, param, tag or entry."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return 'is not valid UTF-8'
    if not 0 < len(text) <= 250:
        return 'is longer than 250 characters' if text else 'is empty'
    return 'contains a control character' if _CONTROL.search(text) else None


def file_name(text: bytes) -> str:
    """The name of an experiment's or run's folder."""
    name = re.sub('[^A-Za-z0-9._-]', '_', text[:100].decode('latin-1')) or '_'
    return re.sub('^(?:[.-]|dptrack[.])', lambda found: found[0][:-1] + '_', name)


def host_name() -> str:
    return file_name(socket.gethostname().encode() or b'localhost')


def journals(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, header) of each journal in a run's folder."""
    for path in [path for path in inner(folder) if re.search('tfevents|[.]journal$', os.path.basename(path))]:
        with contextlib.suppress(OSError, IndexError, KeyError):
            with open(path, 'rb') as f:
                data = f.read(16384)
            event = dict(r.fields(data[12:r.whole(data, 1) - 4]))
            h: dict[str, Any] = dict(segment=0, experiment=b'', run_name=b'', wall_time=struct.unpack('<d', event[1])[0])
            h.update((_HEADER[n], value) for n, value in r.fields(event[1001]) if n in _HEADER)
            yield path, h


def inner(folder: str) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(folder), '*')))


def folders(runs_dir: str, pattern: str, depth: int = 1) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(path, headers) of runs' folders in runs_dir and, by depth, below it, whose names match."""
    for path in inner(runs_dir):
        heads = [head for _, head in journals(path)] if re.fullmatch(pattern, os.path.basename(path)) else []
        if heads:
            yield path, heads
        elif depth:
            yield from folders(path, pattern, depth - 1)


def locate(runs_dir: str, run_id: str) -> tuple[str, list[dict[str, Any]]]:
    found = next((f for f in folders(runs_dir, '.*-' + run_id[:8]) if f[1][0]['run_id'].decode() == run_id), None)
    if found is None:
        raise Failed(NOENT, 'no run %s below %s' % (run_id, runs_dir))
    return found


class Journal:
    """The file of this process. Any thread appends, and a signal handler within a call of its own thread."""

    def __init__(self, folder: str, rank: int, head: Callable[[bytes], bytes]) -> None:
        """head: makes the opening records with the id of this file."""
        self._queue: deque[bytes] = deque()
        self.done = 0, b''  # bytes in the file, and the record that ends there
        self._lock, self._busy, self.writer_id = threading.RLock(), False, os.urandom(16).hex()
        self.queued, self.error = 0, ''  # bytes that the disk refused
        prefix = {0: 'events.out.tfevents.', LAUNCHER: 'launcher.'}.get(rank, 'rank-%d.' % rank)
        times = [int(found[1]) for name in os.listdir(folder) for found in [re.match(re.escape(prefix) + '([0-9]{1,10})', name)] if found]
        at = max([int(time.time()), *(t + 1 for t in times)])  # readers read files in the order of their names
        for n in range(1000):
            self.path = os.path.join(folder, '%s%010d.%s.%d.%d%s' % (prefix, at, host_name(), os.getpid(), n, '' if rank == 0 else '.journal'))
            with contextlib.suppress(FileExistsError):
                self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                break
        with contextlib.suppress(ImportError, OSError):
            import fcntl
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the compiled library warns of two processes that record one run
        if not self.append(head(self.writer_id.encode())) or self.error:
            raise Failed(IO, self.error)

    def append(self, record: bytes) -> bool:
        """Writes it, or keeps it for the next call. False: there is no more room for that."""
        if self.queued + len(record) > PENDING_BYTES:
            return False
        self._queue.append(record)
        self.write()
        return True

    def write(self) -> bool:
        """Writes what is queued; False if the disk refuses."""
        with self._lock:
            if self._busy:  # in a signal handler: the interrupted call writes its records, too
                return True
            self._busy = True
            try:
                while self._queue:  # KeyboardInterrupt may end each line: what is written again is at the same place
                    record, at = self._queue[0], 0
                    while at < len(record) and record is not self.done[1]:
                        at += os.pwrite(self.fd, record[at:] if at else record, self.done[0] + at)
                    self.done = self.done[0] + at, record
                    self._queue.popleft()
                self.queued, self.error = 0, ''
            except OSError as error:
                self.queued = sum(map(len, self._queue))
                self.error = 'cannot write the journal %s: %s' % (self.path, os.strerror(error.errno or errno.EIO))
            finally:
                self._busy = False
            return not self.error

    def sync(self) -> str | None:
        """What is wrong with the file."""
        with contextlib.suppress(OSError):
            getattr(os, 'fdatasync', os.fsync)(self.fd)
            return None if os.fstat(self.fd).st_nlink else 'the journal was removed while it was being written'
        return None


class Console:
    """The line of a stream that is not complete; of one that is overwritten, a state a second is kept."""

    def __init__(self) -> None:
        self.text, self.returned, self.kept = b'', False, 0.0

    def add(self, piece: bytes, keep: Callable[[bytes, bool], None]) -> None:
        for part in re.findall(b'[^\r\n]+|\r|\n', piece):
            if part == b'\r':
                self.returned = True
                continue
            if part == b'\n':
                keep(self.text, False)
            elif self.returned and self.text and time.monotonic() - self.kept >= 1:
                keep(self.text, True)
                self.kept = time.monotonic()
            if part == b'\n' or self.returned:
                self.text, self.returned = b'', False
            self.text += part.strip(b'\n')
            while len(self.text) >= LINE_BYTES:
                cut = next(n for n in range(LINE_BYTES, 0, -1) if self.text[n:n + 1] == b'' or self.text[n] & 0xc0 != 0x80)
                keep(self.text[:cut], False)
                self.text = self.text[cut:]


class Active:
    """A run that this process records. Its methods without _ are functions of dptrack.h."""

    def __init__(self, o: Any) -> None:
        self._pid, self._rank, self._warn, self._warn_user = os.getpid(), LAUNCHER if o.role else o.rank, o.warn, o.warn_user
        self._own = self._rank if self._rank > 0 else -1
        self._keys: dict[bytes, bytes] = {}
        self._params: dict[bytes, Any] = {}
        self._hparams, self._session, self._lost, self._said_lost, self._step = self._rank == 0, False, 0, 0, o.first_step - 1
        self._lines: list[bytes] = []
        self._lines_lock, self._first_line, self._lines_at, self._streams = threading.RLock(), 0.0, 0.0, {1: Console(), 2: Console()}
        self._warnings: dict[str, tuple[str | None, bool, float]] = {}  # the text to deliver, whether it replaced another, the time of the last
        self._stop = threading.Event()
        self._sender: Sender | None = None
        runs_dir = os.fsdecode(o.runs_dir or os.environ.get('DPTRACK_RUNS_DIR') or 'runs')
        self._id, self._segment = (o.run_id or os.urandom(16).hex().encode()).decode(), o.segment
        if o.reopen or (o.run_id and o.segment):
            self._dir, heads = locate(runs_dir, self._id)
            experiment, self._name = heads[-1]['experiment'], heads[-1]['run_name']
            if o.reopen and not o.segment:
                self._segment = max(h['segment'] for h in heads) + 1
        else:
            bits = int(self._id[:8], 16)
            made = '%s-%s-%d' % (_ADJECTIVES[bits & 31], _NOUNS[bits >> 5 & 31], (bits >> 10) % 100)
            experiment, self._name = o.experiment or b'default', o.run_name or made.encode()
            self._dir = os.path.join(runs_dir, file_name(experiment), '%s-%s' % (file_name(self._name), self._id[:8]))
            os.makedirs(self._dir, exist_ok=True)

        def head(writer_id: bytes) -> bytes:
            now = time.time()
            message = b''.join((
                r.uint(1, 1), r.text(2, self._id.encode()), r.text(3, writer_id), r.sint(4, self._rank), r.uint(5, o.world_size or 1),
                r.text(6, experiment), r.text(7, self._name), r.uint(8, self._segment), r.sint(9, o.first_step), r.sint(10, o.first_epoch),
                r.text(11, host_name().encode()), r.uint(12, os.getpid()), r.text(13, b'dptrack (pure Python)')))
            start = b'' if self._rank == LAUNCHER else r.event(now, r.text(7, r.uint(1, 1)), step=o.first_step)
            return r.event(now, r.text(3, b'brain.Event:2'), r.text(1001, message)) + start

        self._journal = Journal(self._dir, self._rank, head)
        url = (os.environ.get('DPTRACK_URL') or '') if o.url is None else o.url.decode()
        if url:
            from dptrack.pure.send import Sender
            self._sender = Sender(url, o.token and o.token.decode(), self)
        if o.reopen:
            self._adopt()
        self._thread = threading.Thread(target=self._rounds, name='dptrack-write', daemon=True)
        self._thread.start()

    def _adopt(self) -> None:
        """Sends what ended processes could not."""
        for path, head in journals(self._dir):
            if self._sender and path != self._journal.path and head['run_id'].decode() == self._id:
                self._sender.advance(path, head['writer_id'].decode(), os.path.getsize(path), True)

    def _post(self, kind: str, text: str | None) -> None:
        """Keeps a warning, if there is one; of each kind one a minute is delivered."""
        if not text:
            return
        pending, others, last = self._warnings.get(kind, (None, False, -math.inf))
        of_item = kind in ('key', 'param', 'cut', 'media', 'file')
        self._warnings[kind] = text, others or (of_item and pending not in (None, text)), last

    def _deliver(self, every: bool) -> None:
        for kind, (text, others, last) in list(self._warnings.items()):
            if text is not None and (every or time.monotonic() - last >= REPEAT_S):
                self._warnings[kind] = None, False, time.monotonic()
                if self._warn:
                    self._warn(self._warn_user, (text + (' (and others)' if others else '')).encode('utf-8', 'replace'))

    def _rounds(self) -> None:
        beat = sync = time.monotonic()
        beats = synced = 0
        while not self._stop.wait(ROUND_S):
            now = time.monotonic()
            if now - beat >= HEARTBEAT_S:
                beat, beats = now, beats + 1
                self._journal.append(r.event(time.time(), r.uint(1007, beats)))
            self._settle(False)
            if now >= sync and self._journal.done[0] > synced:
                synced = self._journal.done[0]
                self._post('sync', self._journal.sync())
                sync = max(now + SYNC_S, now + 10 * (time.monotonic() - now))  # at most a tenth of the time of a slow disk
            self._deliver(False)

    def _settle(self, end: bool) -> bool:
        """Writes what is queued, and tells the sender. end: also lines that are not complete."""
        with self._lines_lock:
            for stream, partial in self._streams.items():
                if end and partial.text:
                    self._keep_line(stream, partial.text, False)
                    partial.text = b''
            self._write_lines()
        if self._lost != self._said_lost:
            self._said_lost = self._lost
            self._post('queue', 'points lost so far: %d: the queue was full or keys were refused' % self._lost)
            self._journal.append(r.scalar(r.text(1, b'dptrack/dropped'), r.head(time.time(), self._step), float(self._lost), None))
        written = self._journal.write()
        if not written:
            self._post('disk', '%s; points stay in memory until it works again' % self._journal.error)
        if self._sender:
            self._sender.advance(self._journal.path, self._journal.writer_id, self._journal.done[0])
        return written

    def _write_lines(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._lines_at = time.monotonic()
            self._journal.append(r.event(self._first_line, r.text(1009, b''.join(lines))))

    def _keep_line(self, stream: int, line: bytes, again: bool) -> None:
        ms = int(time.time() * 1000)
        if not self._lines:
            self._first_line = ms / 1000
        ms -= int(self._first_line * 1000 + 0.5)
        self._lines.append(r.text(1, r.uint(1, stream) + (r.uint(2, ms) if ms > 0 else b'') + r.text(3, clean(line)) + (r.uint(4, 1) if again else b'')))

    def _close(self, status: int) -> int:
        self._stop.set()
        self._thread.join(20)
        self._start_hparams()
        end = time.monotonic() + GIVE_UP_S
        self._settle(True)
        if status:
            self._journal.append(r.event(time.time(), r.text(1006, r.uint(1, status))))
            if self._session and status in ENDED:
                now = time.time()
                self._journal.append(r.hparams(now, b'session_end_info', r.text(4, r.uint(1, 1 if status == 1 else 2) + r.double(2, now))))
        while not self._settle(False) and time.monotonic() < end:
            time.sleep(ROUND_S)
        if self._journal.queued:
            self._post('disk', '%s; bytes not written: %d' % (self._journal.error, self._journal.queued))
        removed = self._journal.sync()
        self._post('sync', removed)
        if self._rank == LAUNCHER:
            self._adopt()
        unsent = self._sender is not None and self._sender.end(CLOSE_S)
        code = IO if self._journal.queued or removed else UNSENT if unsent else 0
        self._deliver(True)
        os.close(self._journal.fd)
        return code

    def log(self, step: int, key: bytes, value: float) -> int:
        return self._log(step, ((key, value),), None)

    def log_many(self, step: int, n: int, keys: int, values: int) -> int:
        return self._log(step, zip((ctypes.c_char_p * n).from_address(keys), (ctypes.c_double * n).from_address(values)), None)

    def log_rank(self, rank: int, step: int, key: bytes, value: float) -> int:
        return self._log(step, ((key, value),), None if rank == self._own else rank)

    def _log(self, step: int, pairs: Any, rank: int | None) -> int:
        self._start_hparams()
        self._step, head, out = step, r.head(time.time(), step), []
        for key, value in pairs:
            if key not in self._keys:
                why = wrong_key(key)
                if why or len(self._keys) >= KEYS:
                    self._lost += 1
                    self._post('key', 'points of series "%s" are lost: the %s' % (shown(key), 'key ' + why if why else 'run already has %d series' % KEYS))
                    continue
                self._keys[key] = r.text(1, key)
            out.append(r.scalar(self._keys[key], head, value, rank))
        if out and not self._journal.append(b''.join(out)):
            self._lost += len(out)
        return 0

    def _start_hparams(self) -> None:
        """TensorBoard's HParams tab shows what is set before the first point."""
        if self._hparams and self._params:
            self._hparams, self._session, now = False, True, time.time()
            entries = [r.text(1, r.text(1, key) + r.text(2, r.typed(value, 3, 2, 2, 4))) for key, value in list(self._params.items())]
            self._journal.append(r.hparams(now, b'session_start_info', r.text(3, b''.join(entries) + r.double(5, now))))

    def _add(self, what: str, key: bytes, number: int, message: bytes, step: int = 0) -> int:
        """Appends a record that is not a point."""
        why = wrong_key(key)
        if why is None and self._journal.append(r.event(time.time(), r.text(number, message), step=step)):
            return 0
        self._post('param', '%s "%s" is lost: %s' % (what, shown(key), 'the key ' + why if why else 'too many are set or queued'))
        return USAGE if why else LIMIT

    def _pair(self, what: str, number: int, key: bytes, value: bytes, most: int = VALUE_BYTES) -> int:
        return self._add(what, key, number, r.text(1, key) + r.text(2, self._cut('the value of a tag' if most == VALUE_BYTES else what, value, most)))

    def _cut(self, what: str, value: bytes | None, most: int) -> bytes:
        whole = clean(value)
        if len(whole) > most:
            self._post('cut', '%s is longer than %d bytes and was truncated' % (what, most))
        return whole if len(whole) <= most else whole[:most].decode('utf-8', 'ignore').encode()

    def param(self, key: bytes, value: Any, of_segment: bool = False) -> int:
        value = self._cut('the value of a param', value, VALUE_BYTES) if isinstance(value, bytes) else value
        old = self._params.get(key)
        if old is not None:
            same = type(old) is type(value) and (old == value or (old != old and value != value))
            if not same:
                self._post('param', 'param "%s" already has another value; the first one is kept' % shown(key))
            return 0 if same else CONFLICT
        if len(self._params) >= PARAMS:
            self._post('param', 'param "%s" is lost: too many are set or queued' % shown(key))
            return LIMIT
        code = self._add('param', key, 1002, r.text(1, key) + r.typed(value, 2, 3, 4, 5) + (r.uint(6, 1) if of_segment else b''))
        if not code:
            self._params.setdefault(key, value)
        return code

    param_f64 = param_i64 = param_bool = param
    segment_param = partialmethod(param, of_segment=True)
    tag = partialmethod(_pair, 'tag', 1003)
    environment = partialmethod(_pair, 'environment entry', 1004)
    code = partialmethod(_pair, 'a part of the code', 1010, most=1 << 20)

    def note(self, markdown: bytes) -> int:
        text = self._cut('the note', markdown, 65536)
        return 0 if self._journal.append(r.event(time.time(), r.text(5, r.text(1, r.text(1, b'notes') + r.strings([text], 1))), r.text(1005, text))) else LIMIT

    def alert(self, level: int, step: int, title: bytes, text: bytes) -> int:
        parts = r.uint(1, level) + r.text(2, self._cut('the title of an alert', title, 250)) + r.text(3, self._cut('the text of an alert', text, VALUE_BYTES))
        return self._add('alert', b'alert', 1011, parts, step)

    def set_status(self, status: int, reason: bytes) -> int:
        cut = self._cut('the reason of a status', reason, 1000)
        return self._add('status', b'status', 1006, r.uint(1, status) + (r.text(2, cut) if cut else b''))

    def _media(self, step: int, key: bytes, content: bytes, wrong: str | None = None) -> int:
        why = wrong_key(key)
        why = 'the key ' + why if why else wrong or ('larger than 8 MiB' if len(content) > MEDIA_BYTES else None)
        if why is None and self._journal.append(r.event(time.time(), r.text(5, r.text(1, r.text(1, key) + content)), step=step)):
            return 0
        self._post('media', '"%s" is lost: %s' % (shown(key), why or 'the write queue is full'))
        return LIMIT

    def image(self, step: int, key: bytes, data: Any, width: int, height: int) -> int:
        content = r.text(4, r.uint(1, height) + r.uint(2, width) + r.uint(3, 3) + r.text(4, _bytes(data)))
        return self._media(step, key, content, None if width > 0 and height > 0 else 'an image needs pixels')

    def audio(self, step: int, key: bytes, data: Any, kind: bytes) -> int:
        return self._media(step, key, r.text(6, r.text(4, _bytes(data)) + r.text(5, kind)))

    def histogram(self, step: int, key: bytes, edges: Any, counts: Any, bins: int) -> int:
        rows = list(zip(edges, list(edges)[1:], counts))
        good = all(math.isfinite(a) and math.isfinite(b) and a <= b and n >= 0 for a, b, n in rows)
        content = r.tensor(2, (bins, 3), r.text(4, b''.join(struct.pack('<3d', *row) for row in rows))) + r.plugin(b'histograms')
        wrong = 'a histogram needs ' + ('finite ascending edges and counts of 0 or more' if bins else 'bins')
        return self._media(step, key, content, None if good and bins else wrong)

    def text(self, step: int, key: bytes, markdown: bytes) -> int:
        return self._media(step, key, r.strings([clean(markdown)], 1))

    def table(self, step: int, key: bytes, cells: Any, rows: int, columns: int) -> int:
        wrong = None if rows and columns else 'a table needs rows and columns, at most 8 MiB'
        return self._media(step, key, r.strings([clean(cell) for cell in cells], rows, columns), wrong)

    def console(self, stream: int, data: bytes, n: int) -> int:
        with self._lines_lock:
            self._streams[stream].add(data, lambda line, again: self._keep_line(stream, line, again))
            if self._lines and time.monotonic() - self._lines_at >= ROUND_S:
                self._write_lines()
        return 0

    def file(self, name: bytes, path: bytes) -> int:
        """Copies it below files/, complete or not at all."""
        to = os.path.join(self._dir, 'files', name.decode())
        part = os.path.join(os.path.dirname(to), '.%s-%d.part' % (self._journal.writer_id[:8], threading.get_ident()))
        try:
            os.makedirs(os.path.dirname(to), exist_ok=True)
            digest, size = hashlib.sha256(), 0
            with open(path, 'rb') as f, open(part, 'wb') as out:
                for piece in iter(lambda: f.read(1 << 20), b''):
                    digest.update(piece)
                    size += out.write(piece)
                out.flush()
                os.fsync(out.fileno())
            os.replace(part, to)
        except OSError as error:
            self._post('file', 'file "%s" is not stored: %s' % (shown(name), error))
            with contextlib.suppress(OSError):
                os.unlink(part)
            return IO
        if self._sender:
            self._sender.file(to, name.decode())
        return self._add('file', b'file', 1013, r.text(1, name) + r.uint(2, size) + r.text(3, digest.hexdigest().encode()))

    def flush(self, wait_s: float) -> int:
        self._start_hparams()
        return 0 if self._settle(False) else IO

    def system(self, interval_s: float) -> int:
        self._post('system', None if interval_s == 5 else 'statistics of the machine (system/...) are not recorded without compiled code')
        return 0


PROPERTIES: dict[str, Callable[..., Any]] = {
    'run_id': lambda run: run._id.encode(), 'run_name': lambda run: run._name, 'run_dir': lambda run: os.fsencode(run._dir),
    'run_segment': lambda run: run._segment, 'dropped': lambda run: run._lost, 'gpu': lambda run, uuid: 0}


def _bytes(data: Any) -> bytes:
    """Of struct dptrack_bytes, which may contain NUL."""
    return ctypes.string_at(ctypes.c_void_p.from_buffer(data._obj).value or 0, data._obj.n)


def _guarded(function: Callable[..., int]) -> Callable[..., int]:
    """Turns what it raises into a code and the failure, the last argument."""
    def call(self: Library, one: Any, two: Any, failure: Any) -> int:
        try:
            return function(self, one, two._obj)
        except (Failed, OSError) as error:
            code = error.code if isinstance(error, Failed) else IO
            if failure is not None:
                failure._obj.code, failure._obj.text = code, str(error).encode('utf-8', 'replace')[:500]
            return code
    return call


class Library:
    """The functions with the arguments of ctypes, as the compiled library takes them."""

    _runs: dict[int, Active] = {}

    def __getattr__(self, name: str) -> Any:
        """A function of a run. In a child of fork() it does nothing."""
        method = PROPERTIES.get(name) or getattr(Active, name)

        def call(handle: Any, *arguments: Any) -> Any:
            run = self._runs[handle.value]
            return method(run, *arguments) if run._pid == os.getpid() else FORKED

        setattr(self, name, call)
        return call

    @_guarded
    def run_open(self, handle: Any, o: Any) -> int:
        _check(o)
        run = Active(o)
        handle._obj.value = id(run)
        self._runs[id(run)] = run
        return 0

    def run_close(self, handle: Any, status: int) -> int:
        run = self._runs.pop(handle.value)
        return run._close(status) if run._pid == os.getpid() else FORKED

    @_guarded
    def find(self, found: Any, o: Any) -> int:
        _check(o)
        runs_dir, experiment = os.fsdecode(o.runs_dir or b'runs'), o.experiment or b'default'
        if o.run_id:
            path, heads = locate(runs_dir, o.run_id.decode())
        else:
            place = os.path.join(runs_dir, file_name(experiment))
            every = [f for f in folders(place, re.escape(file_name(o.run_name)) + '-.{8}', 0)
                     if (f[1][-1]['run_name'], f[1][-1]['experiment']) == (o.run_name, experiment)]
            if not every:
                raise Failed(NOENT, 'no run named %s in %s' % (o.run_name.decode(), place))
            path, heads = max(every, key=lambda f: min(h['wall_time'] for h in f[1]))
        found._obj.id, found._obj.newest_segment, found._obj.dir = heads[-1]['run_id'], max(h['segment'] for h in heads), os.fsencode(path)
        return 0

    @_guarded
    def read(self, folder: bytes, reader: Any) -> int:
        raise Failed(USAGE, 'without compiled code runs are read from a server: set DPTRACK_URL or url=, or DPTRACK_PROGRAM to the program dptrack')


def _check(o: Any) -> None:
    """Refuses options that are out of range."""
    for what, name in (("the experiment's name", o.experiment), ("the run's name", o.run_name)):
        text = 'x' if name is None else name.decode('utf-8', 'replace')
        if re.search('[\x00-\x1f\x7f]', text):
            raise Failed(USAGE, '%s contains a control character' % what)
        if not 1 <= len(text) <= 500:
            raise Failed(USAGE, '%s has %d characters; 1 to 500 are allowed' % (what, len(text)))
    if o.run_id is not None and not re.fullmatch(b'[0-9a-f]{32}', o.run_id):
        raise Failed(USAGE, 'run id "%s" is not 32 lower-case hex digits' % o.run_id[:64].decode('utf-8', 'replace'))
