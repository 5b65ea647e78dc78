# SPDX-License-Identifier: Apache-2.0
"""Sends journals and files of a run to a server, for the client without compiled code: one thread, which reads what it sends from the
disk, where it stays. A server that is away costs nothing but a warning."""
from __future__ import annotations

import gzip
import json
import os
import random
import threading
import time
from types import SimpleNamespace
from urllib.parse import quote

from dptrack import _query
from dptrack._run import Error
from dptrack.pure import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dptrack.pure import Active

INTERVAL_S, INTERVAL_MAX_S, BACKOFF_S, BACKOFF_MAX_S, ASKED_MAX_S = 0.5, 60.0, 0.5, 30.0, 120.0
SEND_BYTES, FIRST_BYTES, EAGER_BYTES, RECORD_BYTES = 1 << 20, 16384, 256 << 10, (16 << 20) + 16


class Sender:
    """Sends until end is called."""

    def __init__(self, url: str, token: str | None, run: Active) -> None:
        self.server, self.run = _query._Server(url, token), run
        self.journals: dict[str, Any] = {}  # their path, bytes in the file, of which the server has durable, and adopted
        self.files: list[tuple[str, str]] = []
        self.refused, self.backoff, self.failing, self.deadline, self.interval = 0, BACKOFF_S, False, 0.0, INTERVAL_S
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.work, name='dptrack-send', daemon=True)
        self.thread.start()

    def advance(self, path: str, writer_id: str, bytes: int, adopted: bool = False) -> None:
        """Sends a journal as far as it is written; adopted: of a process that has ended."""
        with self.changed:
            self.journals.setdefault(writer_id, SimpleNamespace(path=path, durable=0, adopted=adopted)).bytes = bytes

    def file(self, path: str, name: str) -> None:
        with self.changed:
            self.files.append((path, name))

    def unsent(self) -> int:
        return sum(j.bytes - j.durable for j in self.journals.values())

    def end(self, wait_s: float) -> bool:
        """Waits at most wait_s for the rest. True: the server lacks something, which is warned of."""
        with self.changed:
            self.deadline = time.monotonic() + wait_s
            self.changed.notify()
        self.thread.join(wait_s + 1)
        lacking = len(self.files) + self.refused
        if self.unsent():
            self.run._post('unsent', "the server lacks the last %d bytes of the run's journals; they remain in %s" % (self.unsent(), self.run._dir))
        if lacking:
            self.run._post('lacking', "the server lacks %d of the run's files; all remain in %s/files" % (lacking, self.run._dir))
        return bool(self.unsent() or lacking)

    def work(self) -> None:
        pause = 0.0
        while self.wait(pause):
            pause = self.step()

    def wait(self, pause: float) -> bool:
        """Returns when something is due; False: nothing more is sent."""
        begin = time.monotonic()
        with self.changed:
            while True:
                now, waiting = time.monotonic(), self.unsent()
                if self.deadline and (now >= self.deadline or not (waiting or self.files)):
                    return False
                if self.deadline:
                    pause = min(pause, BACKOFF_S if self.failing else 0.0)
                if (waiting or self.files) and (now >= begin + pause or (waiting >= EAGER_BYTES and not self.failing)):
                    return True
                self.changed.wait(0.1)

    def step(self) -> float:
        """Makes a request and returns the seconds until the next one."""
        journal = next(((w, j) for w, j in list(self.journals.items()) if j.durable < j.bytes), None)
        why, asked = self.send_journal(*journal) if journal else self.send_file()
        if why is None:
            if self.failing:
                self.run._post('server', 'the server %s accepts the journal again' % self.server.url)
            self.backoff, self.failing = BACKOFF_S, False
            return self.interval * random.uniform(0.75, 1.25) if journal else 0.0
        if not self.failing:
            self.run._post('server', why + ('; the journal stays on disk and is sent again later' if journal else '; files stay on disk and are sent again later'))
        self.failing, wait, self.backoff = True, self.backoff * random.uniform(0.75, 1.25), min(2 * self.backoff, BACKOFF_MAX_S)
        return max(wait, min(asked, ASKED_MAX_S))

    def send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes, float, str]:
        """Status (0: no answer), reply, the seconds that the server asks to wait, and the reason of a refusal."""
        try:
            return 200, b''.join(self.server.lines('runs/%s/%s' % (self.run._id, path), (), method, body, headers)), 0.0, ''
        except _query.Refused as error:
            return error.status, error.reply, error.wait_s, 'the server answered: %s' % error
        except Error as error:
            return 0, b'', 0.0, str(error)

    def send_journal(self, writer_id: str, j: Any) -> tuple[str | None, float]:
        """What failed, or None, and the least seconds to wait."""
        try:
            with open(j.path, 'rb') as f:
                f.seek(j.durable)
                data = f.read(min(j.bytes - j.durable, SEND_BYTES if j.durable else FIRST_BYTES))
                if not records.whole(data):
                    data += f.read(min(j.bytes - j.durable, RECORD_BYTES) - len(data))
                    data = data[:records.whole(data, 1)]
        except OSError as error:
            return 'cannot read the journal %s: %s' % (j.path, error.strerror), BACKOFF_MAX_S
        n = records.whole(data)
        if not n and j.adopted:
            j.bytes = j.durable
        if not n:
            return None if j.adopted else '%s has no whole record at byte %d' % (j.path, j.durable), BACKOFF_MAX_S
        status, reply, asked, why = self.send('POST', 'journal?writer=%s&offset=%d' % (writer_id, j.durable), gzip.compress(data[:n], 1),
                                              {'Content-Encoding': 'gzip'})
        try:
            found = json.loads(reply) if status in (200, 409) else {}
            durable, self.interval = int(found['durable']), min(max(float(found.get('interval_s', INTERVAL_S)), INTERVAL_S), INTERVAL_MAX_S)
        except (ValueError, KeyError, TypeError):
            return why or 'the server answered something else than an offset', asked
        moved, j.durable = durable != j.durable, durable
        return None if moved else 'the server stays at byte %d of %s' % (durable, j.path), asked

    def send_file(self) -> tuple[str | None, float]:
        path, name = self.files[0]
        try:
            with open(path, 'rb') as f:
                size = os.fstat(f.fileno()).st_size
                status, _, asked, why = self.send('PUT', 'artifacts/' + quote(name), f if size else b'', {'Content-Length': str(size)})
        except OSError as error:
            status, asked, why = 400, 0.0, 'cannot read %s: %s' % (path, error.strerror)
        with self.changed:
            del self.files[0]
            if status in (0, 401, 403, 404, 408, 429) or status >= 500:  # 404: it does not know the run yet
                self.files.append((path, name))
                return why, asked
            if status != 200:
                self.refused += 1
                self.run._post('file', 'the server refuses the file "%s": %s' % (name[:200], why))
        return None, 0.0
