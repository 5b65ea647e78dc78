#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Disks that fail during a run: only what exceeds the queue may be lost, journals stay readable, and no call waits.
The faults come from failio.so, and from a real full filesystem where the test may mount one."""
import os
import re
import subprocess
import sys
import tempfile
import time

SRC = os.environ.get('srcdir', '.')
BUILD = os.environ.get('builddir', 'build')
sys.path.insert(0, os.path.join(SRC, 'tests', 'tracker'))
import journal  # noqa: E402
import parallel  # noqa: E402

RECORD = os.path.join(BUILD, 'tests', 'tracker', 'record')
SHIM = os.path.abspath(os.path.join(BUILD, 'tests', 'tracker', '.libs', 'failio.so'))


ASAN = re.findall(r'\S*/libasan\.so\S*', subprocess.run(['ldd', RECORD], capture_output=True, text=True).stdout)


class Result:
    pass


def record(runs, script, faults, *options):
    r = Result()
    env = dict(os.environ, LD_PRELOAD=':'.join(ASAN + [SHIM]), FAILIO=faults)
    start = time.monotonic()
    out = subprocess.run([RECORD, 'runs_dir=' + runs, 'run_name=f', 'url=', *options], input=script, capture_output=True,
                         text=True, env=env, timeout=120)
    r.seconds = time.monotonic() - start
    assert out.returncode == 0, (out.returncode, out.stdout, out.stderr)
    r.folder = out.stdout.split()[2]
    r.code, r.dropped = map(int, re.search(r'^closed (-?\d+) (\d+)', out.stdout, re.M).groups())
    r.flushed = [int(code) for code in re.findall(r'^flushed (-?\d+)', out.stdout, re.M)]
    r.warnings = [line for line in out.stdout.split('\n') if line.startswith('warn ')]
    r.journals = journal.journals(r.folder, check=r.dropped == 0)  # a million checksums are slow in Python
    return r


def steps(r, key):
    return [s for j in r.journals for s, _ in j.series(key)]


def short_writes(runs):
    r = record(runs, 'burst 3000 x 1\nclose 1\n', 'short=7')
    j, = r.journals
    assert r.code == 0 and not r.warnings and j.whole == len(j.data)
    assert steps(r, 'x') == list(range(1, 3001))


def full_for_a_while(runs):
    """A flush does not wait for disk space."""
    r = record(runs, 'burst 2000 x 1\nsleep 1\nflush 9\nburst 2000 x 2001\nsleep 1.5\nflush 9\nclose 1\n', 'full=5000,1.5')
    j, = r.journals
    assert r.flushed == [-5, 0], r.flushed
    assert r.code == 0 and j.whole == len(j.data) and r.dropped == 0
    assert steps(r, 'x') == list(range(1, 4001)) and j.statuses == [(1, '')]
    assert any('No space left' in w for w in r.warnings), r.warnings


def full_for_ever(runs):
    r = record(runs, 'burst 2000 x 1\nsleep 0.5\nburst 100 y 1\nclose 1\n', 'full=5000')
    j, = r.journals
    assert r.code == -6 and r.seconds < 20, (r.code, r.seconds)
    assert len(j.data) == 5000 and j.whole < 5000, 'a torn tail after complete records'
    got = steps(r, 'x')
    assert got and got == list(range(1, len(got) + 1))


def io_error_moves_on(runs):
    r = record(runs, 'burst 500 x 1\nsleep 0.5\nburst 500 x 501\nclose 1\n', 'eio=9000')
    first, second = r.journals
    assert r.code == 0 and len(first.data) == 9000 and first.whole < 9000 and second.whole == len(second.data)
    assert first.header['writer_id'] != second.header['writer_id']
    assert first.header['run_id'] == second.header['run_id'] and second.sessions == [(1, 0)]
    assert steps(r, 'x') == list(range(1, 1001)), 'each point once'


def queue_overflows(runs):
    n, room = 1100000, 1 << 20
    r = record(runs, 'burst %d x 1\nsleep 0.3\nburst %d x %d\nsleep 8.5\nlog 7 y 1\nclose 1\n' % (1000, n, 1001), 'full=2000,8')
    got = steps(r, 'x')
    assert r.code == 0 and len(got) + len(steps(r, 'y')) + r.dropped == n + 1001, (len(got), r.dropped)
    assert room - 1024 <= len(got) <= room + 20000, len(got)
    assert got == list(range(1, len(got) + 1)), 'the newest are dropped, the rest keeps its order'
    assert r.journals[0].series('dptrack/dropped')[-1][1] == r.dropped
    assert sum('points lost so far: ' in w for w in r.warnings) == 1, r.warnings


def slow_sync(runs):
    """A slow disk delays only close: a flush in the middle of a sync of 3 s returns at once."""
    r = record(runs, 'burst 10 x 1\nsleep 0.5\nburst 10 x 11\nflush 2\nclose 1\n', 'syncs=3')
    assert r.code == 0 and steps(r, 'x') == list(range(1, 21)) and r.flushed == [0], r.flushed


def failing_sync(runs):
    r = record(runs, 'burst 10 x 1\nsleep 0.5\nclose 1\n', 'syncfail')
    assert r.code == 0 and steps(r, 'x') == list(range(1, 11))
    assert sum('cannot sync' in w for w in r.warnings) >= 1, r.warnings


def a_hanging_disk_ends_too(runs):
    r = record(runs, 'burst 10 x 1\nsleep 0.5\nclose 1\n', 'syncs=100')
    assert r.code == -5 and r.seconds < 30 and steps(r, 'x') == list(range(1, 11)), (r.code, r.seconds)
    assert any('does not respond; points not written: 0 or more' in w for w in r.warnings), r.warnings


def torn_tail_is_kept(runs):
    first = record(runs, 'burst 2000 x 1\nsleep 0.4\nabort\n'.replace('abort', 'close 0'), 'full=5000')
    before = first.journals[0].data
    run_id = first.journals[0].header['run_id']
    again = record(runs, 'burst 10 x 50\nclose 1\n', '', 'run_id=' + run_id, 'reopen=1', 'first_step=50')
    assert again.folder == first.folder
    old, new = again.journals
    assert old.data == before and new.whole == len(new.data)
    assert os.path.basename(new.path) > os.path.basename(old.path)
    assert new.header['segment'] == 1 and new.header['first_step'] == 50 and new.sessions == [(1, 50)]


def real_full_disk(runs):
    if os.geteuid() or subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', runs], capture_output=True).returncode:
        return 'skipped: mounting a tmpfs is not permitted'
    try:
        r = record(runs, 'burst 5000 x 1\nsleep 0.5\nclose 1\n', '')
        got = steps(r, 'x')
        assert r.code == -6 and got == list(range(1, len(got) + 1)) and len(got) > 100
    finally:
        subprocess.run(['umount', runs], check=True)
    return ''


def no_memory(runs):
    """Whichever allocation fails, opening reports it, or the run continues; the records in the file are complete."""
    if ASAN:
        return 'skipped: the address sanitizer replaces the allocator'
    opened = 0
    for n in range(1, 120):
        folder = os.path.join(runs, str(n))
        out = subprocess.run([RECORD, 'runs_dir=' + folder, 'url='], text=True, capture_output=True, timeout=30,
                             input='f64 lr 1\nburst 3000 x 1\nparam p text\nnote n\ntag k v\nlog 1 y 2\nclose 1\n',
                             env=dict(os.environ, LD_PRELOAD=SHIM, FAILIO='alloc=%d' % n))
        assert out.returncode in (0, 1), (n, out.returncode, out.stderr)
        assert out.returncode == 0 or out.stdout.startswith('error ') or not out.stdout, (n, out.stdout)
        opened += out.returncode == 0
        for d in [os.path.join(folder, 'default', d) for d in os.listdir(folder + '/default')] if os.path.exists(folder) else []:
            for j in journal.journals(d):
                assert j.whole == len(j.data), n
    assert opened > 20, opened
    return ''


def main():
    sys.exit(parallel.run([short_writes, full_for_a_while, full_for_ever, io_error_moves_on, queue_overflows, slow_sync,
                           failing_sync, a_hanging_disk_ends_too, torn_tail_is_kept, real_full_disk, no_memory]))


if __name__ == '__main__':
    main()
