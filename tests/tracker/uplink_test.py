#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The journal's upload to a small server on loopback that is down, slow, failing, forgetful or restarted. At the end
the server must have the journal, byte for byte, and logging must never wait for it."""
import gzip
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

SRC = os.environ.get('srcdir', '.')
BUILD = os.environ.get('builddir', 'build')
sys.path[:0] = [os.path.join(SRC, 'tests', 'tracker'), os.path.join(SRC, 'tests')]
import journal  # noqa: E402
import parallel  # noqa: E402
from ports import free_port  # noqa: E402


class Store:
    """What a server keeps over restarts: bytes of each (run, writer)."""

    def __init__(self):
        self.data, self.lock = {}, threading.Lock()
        self.requests, self.repeats, self.tokens = 0, 0, set()
        self.files, self.puts = {}, 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def reply(self, status, body, **headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        server, store = self.server, self.server.store
        body = self.rfile.read(int(self.headers['Content-Length']))
        assert self.headers['Content-Encoding'] == 'gzip', self.headers
        body = gzip.decompress(body)
        m = re.fullmatch(r'/prefix/api/v1/runs/([0-9a-f]{32})/journal\?writer=([0-9a-f]{32})&offset=(\d+)', self.path)
        assert m, self.path
        payloads, whole = journal.records(body)
        assert payloads and whole == len(body), 'a request must contain complete records'
        key, offset = (m[1], m[2]), int(m[3])
        with store.lock:
            store.requests += 1
            n = store.requests
            store.tokens.add(self.headers.get('Authorization'))
            fault = server.fault(n) if server.fault else None
            if isinstance(fault, int):
                return self.reply(fault, {'error': {'code': 'x', 'message': 'try "later"'}})
            have = store.data.get(key, b'')
            if fault == 'forget':
                have = store.data[key] = b''
            if offset > len(have):
                return self.reply(409, {'durable': len(have)})
            store.repeats += offset < len(have)
            store.data[key] = have[:offset] + body if offset + len(body) > len(have) else have
            durable = len(store.data[key])
        if fault == 'hang up':
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        if fault == 'slow':
            time.sleep(4)
        interval = {'interval_s': server.interval_s} if server.interval_s else {}
        return self.reply(200, {'durable': durable, **interval})

    def do_PUT(self):
        """A run's artifact: accepted once its journal has arrived, as the server does."""
        server, store = self.server, self.server.store
        body = self.rfile.read(int(self.headers['Content-Length']))
        m = re.fullmatch(r'/prefix/api/v1/runs/([0-9a-f]{32})/artifacts/(.+)', self.path)
        assert m and self.headers['Authorization'] == 'Bearer s3cret', (self.path, self.headers)
        with store.lock:
            store.puts += 1
            fault = server.put_fault(m[2], store.puts) if server.put_fault else None
            if not any(run == m[1] for run, _ in store.data):
                fault = 404
            if not fault:
                store.files[urllib.parse.unquote(m[2])] = body
        self.reply(fault or 201, {'error': {'code': 'x', 'message': 'not this one'}} if fault else {})

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, store, port=0, fault=None, put_fault=None, interval_s=None):
        super().__init__(('127.0.0.1', port), Handler, bind_and_activate=False)
        self.listen()
        self.store, self.fault, self.put_fault, self.interval_s = store, fault, put_fault, interval_s
        self.thread = threading.Thread(target=self.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True)
        self.thread.start()

    def listen(self):
        """A process that another case starts inherits all sockets until its exec, so a port may be in use for a
        moment."""
        until = time.monotonic() + 10
        while True:
            try:
                self.server_bind()
                self.server_activate()
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def handle_error(self, *_):
        if sys.exc_info()[0] is AssertionError:
            self.store.data['error'] = repr(sys.exc_info()[1])

    def stop(self):
        self.shutdown()
        self.server_close()


class Recorder:
    def __init__(self, runs, port, *options):
        env = dict(os.environ, DPTRACK_TOKEN='s3cret', DPTRACK_URL='http://127.0.0.1:%d/prefix/' % port)
        env.pop('http_proxy', None)
        self.process = subprocess.Popen([os.path.join(BUILD, 'tests', 'tracker', 'record'), 'runs_dir=' + runs, 'run_name=u', *options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.word, self.warnings = self.process.stdout.readline().split(), []

    def do(self, *lines):
        self.process.stdin.write('\n'.join(lines) + '\n')
        self.process.stdin.flush()

    def end(self, *lines):
        start = time.monotonic()
        self.do(*lines)
        out, _ = self.process.communicate(timeout=120)
        self.seconds = time.monotonic() - start
        self.warnings += [line for line in out.split('\n') if line.startswith('warn ')]
        self.code = int(re.search(r'^closed (-?\d+)', out, re.M)[1])
        return self.code


def check(store, recorder, code=0, complete=True):
    assert recorder.code == code, (recorder.code, recorder.warnings)
    assert 'error' not in store.data, store.data['error']
    for j in journal.journals(recorder.word[2]):
        assert j.whole == len(j.data)
        have = store.data.get((j.header['run_id'], j.header['writer_id']), b'')
        assert (have == j.data) if complete else j.data.startswith(have), (len(have), len(j.data))


def asked_to_wait(runs):
    """Small data wait as long as the server asked for, whatever the locale's decimal point; the end does not wait."""
    store = Store()
    server = Server(store, interval_s=45.25)
    r = Recorder(runs, server.server_port, 'close_wait_s=60')
    for i in range(4):
        r.do('burst 100 train/loss %d' % (1 + 100 * i), 'sleep 0.8')
    r.end('close 1')
    server.stop()
    check(store, r)
    assert store.requests <= 3, store.requests


def plain(runs):
    store = Store()
    server = Server(store)
    r = Recorder(runs, server.server_port, 'close_wait_s=60')
    r.do('f64 lr 0.1', 'burst 30000 train/loss 1', 'sleep 0.6', 'burst 30000 train/loss 30001')
    r.end('close 1')
    server.stop()
    check(store, r)
    assert store.tokens == {'Bearer s3cret'} and store.requests < 20 and not r.warnings, (store.requests, r.warnings)


def down_at_first(runs):
    store, port = Store(), free_port()
    r = Recorder(runs, port)
    r.do('burst 1000 x 1', 'sleep 1.2')
    time.sleep(1)
    server = Server(store, port)
    r.end('burst 1000 x 1001', 'close 1')
    server.stop()
    check(store, r)
    assert any('stays on disk and is sent again' in w for w in r.warnings), r.warnings


def server_never_up(runs):
    r = Recorder(runs, free_port(), 'close_wait_s=1')
    r.end('burst 1000 x 1', 'close 1')
    check(Store(), r, code=-10, complete=False)
    assert r.seconds < 20 and any('the server lacks' in w for w in r.warnings), (r.seconds, r.warnings)
    r = Recorder(runs, free_port(), 'close_wait_s=-1')
    r.end('burst 1000 x 1', 'close 1')
    assert r.code == -10 and r.seconds < 10, r.seconds


def failing(runs):
    for status in (500, 503, 429):
        store = Store()
        server = Server(store, fault=lambda n: status if n in (1, 3) else None)
        r = Recorder(runs, server.server_port)
        r.do('burst 1000 x 1', 'sleep 1.5')
        r.end('burst 1000 x 1001', 'close 1')
        server.stop()
        check(store, r)


def refusing(runs):
    store = Store()
    server = Server(store, fault=lambda n: 401)
    r = Recorder(runs, server.server_port, 'close_wait_s=1')
    r.end('burst 10 x 1', 'sleep 0.6', 'close 1')
    server.stop()
    check(store, r, code=-10, complete=False)
    assert any('try "later"' in w for w in r.warnings), r.warnings


def forgetful(runs):
    store = Store()
    server = Server(store, fault=lambda n: 'forget' if n == 3 else None)
    r = Recorder(runs, server.server_port)
    for i in range(4):
        r.do('burst 5000 x %d' % (5000 * i), 'sleep 0.7')
    r.end('close 1')
    server.stop()
    check(store, r)
    assert store.requests > 4


def lost_replies(runs):
    store = Store()
    server = Server(store, fault=lambda n: 'hang up' if n in (1, 2, 4) else None)
    r = Recorder(runs, server.server_port)
    r.do('burst 1000 x 1', 'sleep 2')
    r.end('burst 1000 x 1001', 'close 1')
    server.stop()
    check(store, r)
    assert store.repeats, 'no bytes were repeated'


def slow(runs):
    store = Store()
    server = Server(store, fault=lambda n: 'slow')
    r = Recorder(runs, server.server_port, 'close_wait_s=60')
    start = time.monotonic()
    r.do('burst 10000 x 1', 'flush 5')
    assert r.process.stdout.readline() == 'flushed 0\n'
    assert time.monotonic() - start < 3.8, 'logging and flushing do not wait for the server'
    r.end('close 1')
    server.stop()
    check(store, r)


def restarted(runs):
    store = Store()
    server = Server(store, free_port())
    r = Recorder(runs, server.server_port, 'close_wait_s=60')
    for i in range(3):
        r.do('burst 20000 x %d' % (20000 * i), 'sleep 0.7')
        time.sleep(0.3)
        server.stop()
        server = Server(store, server.server_port)
    r.end('close 1')
    server.stop()
    check(store, r)


def addresses(runs):
    """A bad address gives a warning, and the run continues; a password is not printed; url= overrides DPTRACK_URL."""
    for url, said in (('ftp://127.0.0.1/x', 'not an http'), ('127.0.0.1:80', 'not an http'),
                      ('http://user:hunter2@127.0.0.1:%d/' % free_port(), 'with a password')):
        r = Recorder(runs, free_port(), 'url=' + url, 'close_wait_s=1')
        r.end('burst 10 x 1', 'close 1')
        assert any(said in w for w in r.warnings) and not any('hunter2' in w for w in r.warnings), r.warnings
        assert r.code == (-10 if 'user' in url else 0)


def larger_than_a_request(runs):
    store = Store()
    server = Server(store)
    r = Recorder(runs, server.server_port, 'close_wait_s=60')
    r.do('note ' + 'x' * 60000)
    r.end('burst 100000 x 1', 'close 1')
    server.stop()
    check(store, r)
    assert store.requests >= 4, store.requests


def ranks(runs):
    store = Store()
    server = Server(store)
    first = Recorder(runs, server.server_port, 'world_size=2')
    second = Recorder(runs, server.server_port, 'world_size=2', 'rank=1', 'run_id=' + first.word[1])
    assert first.word[2] == second.word[2]
    second.end('burst 1000 x 1', 'close 0')
    first.end('burst 1000 x 1', 'close 1')
    last = Recorder(runs, server.server_port, 'launcher=1', 'run_id=' + first.word[1])
    last.end('close 2')
    server.stop()
    check(store, last)
    assert len(store.data) == 3


def uploads_left_journals(runs):
    """The launcher and the restart upload what a killed rank and a crashed first segment could not."""
    store = Store()
    server = Server(store, fault=lambda n: 500 if n <= 2 else None)
    first = Recorder(runs, server.server_port, 'world_size=2')
    second = Recorder(runs, server.server_port, 'world_size=2', 'rank=1', 'run_id=' + first.word[1])
    for r in (first, second):
        r.do('burst 5000 x 1', 'flush 5')
        assert r.process.stdout.readline().startswith(('flushed', 'warn'))
        r.process.kill()
        r.process.communicate()
    with open(journal.journals(second.word[2])[0].path, 'ab') as f:
        f.write(b'torn')
    last = Recorder(runs, server.server_port, 'launcher=1', 'run_id=' + first.word[1])
    last.end('close 2')
    again = Recorder(runs, server.server_port, 'reopen=1', 'run_id=' + first.word[1], 'first_step=100')
    again.end('burst 10 x 100', 'close 1')
    server.stop()
    assert (last.code, again.code) == (0, 0), (last.warnings, again.warnings)
    for j in journal.journals(first.word[2]):
        assert store.data[j.header['run_id'], j.header['writer_id']] == j.data[:j.whole], j.path
    assert len(store.data) == 4


def file_of(runs, name, content):
    path = os.path.join(runs, name)
    with open(path, 'wb') as f:
        f.write(content)
    return path


def said_of_file(recorder):
    """The return value of dptrack_file; warnings may come at any time."""
    line = recorder.process.stdout.readline()
    while line.startswith('warn '):
        recorder.warnings.append(line.rstrip('\n'))
        line = recorder.process.stdout.readline()
    return int(re.fullmatch(r'file (-?\d+)\n', line)[1])


def kept_files(runs):
    """Saved files arrive as they were when they were saved; a refused one does not delay others."""
    store = Store()
    server = Server(store, put_fault=lambda name, n: 400 if name == 'refused' else 503 if n in (1, 3) else None)
    r = Recorder(runs, server.server_port, 'close_wait_s=60')
    os.makedirs(runs, exist_ok=True)
    content = os.urandom(3 << 20)
    path, empty = file_of(runs, 'w', content), file_of(runs, 'none', b'')
    for name in ('w%1/ü+#?.bin', 'plain.bin', 'refused'):
        r.do('file %s %s' % (name, path))
        assert said_of_file(r) == 0, name
    os.unlink(path)
    r.do('file empty %s' % empty)
    r.end('close 1')
    server.stop()
    check(store, r, code=-10)
    assert store.files == {'w%1/ü+#?.bin': content, 'plain.bin': content, 'empty': b''}, set(store.files)
    assert any('refuses the file "refused": ' in w and 'not this one' in w for w in r.warnings), r.warnings
    assert any("the server lacks 1 of the run's files;" in w for w in r.warnings), r.warnings


def files_without_a_server(runs):
    """A server that is down: close waits no longer than its limit; a server that comes up later: all files arrive."""
    os.makedirs(runs, exist_ok=True)
    r = Recorder(runs, free_port(), 'close_wait_s=1')
    r.end('file a %s' % file_of(runs, 'a', b'a'), 'close 1')
    assert r.code == -10 and r.seconds < 30 and any("the server lacks 1 of the run's files;" in w for w in r.warnings), (r.code, r.seconds, r.warnings)
    store, port = Store(), free_port()
    r = Recorder(runs, port, 'close_wait_s=60')
    r.do('file a %s' % file_of(runs, 'a', b'a'), 'log 1 x 1')
    assert said_of_file(r) == 0
    server = Server(store, port)
    r.end('close 1')
    server.stop()
    check(store, r)
    assert store.files == {'a': b'a'}, store.files


def main():
    sys.exit(parallel.run([plain, asked_to_wait, down_at_first, server_never_up, failing, refusing, forgetful, lost_replies, slow, restarted,
                           larger_than_a_request, ranks, uploads_left_journals, addresses, kept_files, files_without_a_server]))


if __name__ == '__main__':
    main()
