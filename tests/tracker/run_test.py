#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libdptrack writes: folders, journals of several processes, segments, statuses, saved files, refusals."""
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import time

SRC = os.environ.get('srcdir', '.')
BUILD = os.environ.get('builddir', 'build')
sys.path.insert(0, os.path.join(SRC, 'tests', 'tracker'))
import journal  # noqa: E402
import parallel  # noqa: E402


def start(runs, *options):
    return subprocess.Popen([os.path.join(BUILD, 'tests', 'tracker', 'record'), 'runs_dir=' + runs, 'url=', *options],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def record(runs, script, *options):
    process = start(runs, *options)
    out, _ = process.communicate(script, timeout=120)
    first = out.split('\n')[0]
    if first.startswith('error'):
        return first
    word = re.fullmatch(r'run (\S+) (.*) (\d+)', first)
    return word[1], word[2], int(word[3]), out


def everything_reads_back(runs):
    before = time.time()
    run_id, folder, segment, out = record(
        runs, 'f64 lr 0.1\ni64 n -5\nbool amp 1\nparam text with blanks\nsegparam host h1\nparam lr 7\ntag k v\nenv cpu EPYC 9\n'
        'note one\nnote two\nlog 1 a/b 0.1\nlog -2 a/b nan\nlog 3 a/b inf\nrank 0 4 p 1e300\nrank 9 4 p 2\nmany 6 m/one 0.1 m/two inf\nat -1 5 old 1.5 12.25\n'
        'status 4 why not\nclose 1\n', 'experiment=E x', 'run_name=Name/../ö', 'world_size=3')
    assert segment == 0 and folder == '%s/E_x/Name_..___-%s' % (runs, run_id[:8]), folder
    j, = journal.journals(folder)
    assert re.fullmatch(r'events\.out\.tfevents\.\d{10}\.[A-Za-z0-9._-]+\.\d+\.0', os.path.basename(j.path)), j.path
    assert j.versions == ['brain.Event:2'] and j.sessions == [(1, 0)]
    h = j.header
    assert (h['run_id'], h['rank'], h['world_size'], h['segment']) == (run_id, 0, 3, 0)
    assert h['experiment'] == 'E x' and h['run_name'] == 'Name/../ö'
    assert j.params == {'lr': 0.1, 'n': -5, 'amp': True, 'text': 'with blanks'} and j.segment_params == {'host': 'h1'}
    assert j.tags == {'k': 'v'} and j.env == {'cpu': 'EPYC 9'} and j.notes == ['one', 'two']
    assert j.statuses == [(4, 'why not'), (1, '')]
    got = j.series('a/b')
    assert got[0] == (1, 0.1) and got[1][0] == -2 and math.isnan(got[1][1]) and got[2] == (3, math.inf), got
    assert j.series('p', 0) == [(4, 1e300)] and j.series('p', 9) == [(4, 2.0)]
    assert j.series('m/one') == [(6, 0.1)] and j.series('m/two') == [(6, math.inf)]
    assert len({p[3] for p in j.points if p[0] in ('m/one', 'm/two')}) == 1, 'one wall time'
    assert [p[3] for p in j.points if p[0] == 'old'] == [12.25]
    assert all(before - 1 < p[3] < time.time() + 1 for p in j.points if p[0] != 'old')
    assert [t for t, _ in j.hparams] == ['_hparams_/session_start_info', '_hparams_/session_end_info']
    assert 'warn param "lr" already has another value' in out


def two_ranks_and_a_launcher(runs):
    run_id = '0123456789abcdef' * 2
    options = ['run_id=' + run_id, 'run_name=r', 'world_size=2']
    processes = [start(runs, 'rank=1', *options), start(runs, 'rank=0', *options)]
    for p, script in zip(processes, ('log 1 x 1\nlog 2 x 2\nclose 0\n', 'log 1 x 10\nclose 1\n')):
        p.communicate(script, timeout=120)
    record(runs, 'close 2\n', 'launcher=1', *options)
    folder, = [os.path.join(runs, 'default', d) for d in os.listdir(os.path.join(runs, 'default'))]
    by_rank = {j.header['rank']: j for j in journal.journals(folder)}
    assert sorted(by_rank) == [-2, 0, 1] and len({j.header['writer_id'] for j in by_rank.values()}) == 3
    assert os.path.basename(by_rank[1].path).startswith('rank-1.') and by_rank[1].path.endswith('.journal')
    assert os.path.basename(by_rank[-2].path).startswith('launcher.') and by_rank[-2].statuses == [(2, '')]
    assert by_rank[1].series('x', 1) == [(1, 1.0), (2, 2.0)] and by_rank[0].series('x', -1) == [(1, 10.0)]
    assert by_rank[1].statuses == [] and by_rank[-2].sessions == [] and by_rank[1].sessions == [(1, 0)]


def segments(runs):
    run_id, folder, _, _ = record(runs, 'f64 lr 1\nlog 1 x 1\nclose 4\n', 'experiment=e', 'run_name=keeps its name')
    assert [t for t, _ in journal.journals(folder)[0].hparams] == ['_hparams_/session_start_info'], 'preempted: not ended'
    for expected in (1, 2):
        again = record(runs, 'log 5 x 1\nclose 1\n', 'run_id=' + run_id, 'reopen=1', 'first_step=5', 'first_epoch=2')
        assert again[1:3] == (folder, expected), again
    joined = record(runs, 'close 0\n', 'run_id=' + run_id, 'rank=1', 'segment=2', 'first_step=5', 'first_epoch=2')
    assert joined[1:3] == (folder, 2), joined
    js = journal.journals(folder)
    assert [j.header['segment'] for j in js] == [0, 1, 2, 2] and [j.header['first_step'] for j in js] == [0, 5, 5, 5]
    assert {j.header['run_name'] for j in js} == {'keeps its name'} and {j.header['experiment'] for j in js} == {'e'}
    assert [j.sessions[0] for j in js] == [(1, 0), (1, 5), (1, 5), (1, 5)] and js[1].header['first_epoch'] == 2
    names = [os.path.basename(j.path) for j in js if j.header['rank'] == 0]
    assert names == sorted(names) and len({n.split('.')[3] for n in names}) == 3, 'a later file sorts after the others'


def two_writers(runs):
    """A process that opens a run which another one still records warns; after the end or the death of that one, and as
    another rank, it does not."""
    run_id = 'ab' * 16
    living = [start(runs, 'run_id=' + run_id, 'run_name=shared')]
    first = living[0].stdout.readline()
    assert first.startswith('run '), first
    folder = first.split(' ')[2]
    want = 'process %d on ' % living[0].pid
    for options in (['reopen=1', 'first_step=5'], ['run_name=shared']):
        out = record(runs, 'log 5 x 1\nclose 1\n', 'run_id=' + run_id, *options)[3]
        assert out.count('warn ') == 1 and want in out and 'a run of its own, or a rank' in out, (options, out)
    assert sum(b'Two processes record this run' in j.data for j in journal.journals(folder)) == 2, 'an alert on the run'
    out = record(runs, 'close 1\n', 'run_id=' + run_id, 'rank=1', 'segment=1', 'world_size=2')[3]
    assert 'warn' not in out, out
    living[0].kill()
    living[0].wait()
    for _ in range(2):
        out = record(runs, 'log 9 x 1\nclose 1\n', 'run_id=' + run_id, 'reopen=1', 'first_step=9')[3]
        assert 'warn' not in out, out


def refusals(runs):
    for options, said in ((['run_id=XYZ'], '32 lower-case hex'), (['reopen=1'], 'run_id is required'),
                          (['reopen=1', 'run_id=' + '0' * 32], 'no run 0000'), (['rank=-1'], 'out of range'),
                          (['run_name=' + 'x' * 501], '501 characters'), (['experiment=a\tb'], 'control character')):
        error = record(runs, '', *options)
        assert isinstance(error, str) and said in error, (options, error)
    with open(os.path.join(runs, 'file'), 'w'):
        pass
    assert 'Not a directory' in record(os.path.join(runs, 'file'), '')
    assert os.listdir(runs) == ['file'], 'a failed start creates nothing'


def odd_names(runs):
    for name, folder in (('..', '_.'), ('.hidden', '_hidden'), ('dptrack.db', 'dptrack_db'), ('a/b\\c', 'a_b_c'),
                         ('x' * 500, 'x' * 100), ('-rf', '_rf')):
        run_id, path, _, _ = record(runs, 'close 1\n', 'experiment=' + name, 'run_name=' + name)
        assert path == '%s/%s/%s-%s' % (runs, folder, folder, run_id[:8]), path
        assert journal.journals(path)[0].header['experiment'] == name
    names = {os.path.basename(record(runs, 'close 1\n')[1]) for _ in range(4)}
    assert all(re.fullmatch(r'[a-z]+-[a-z]+-\d\d?-[0-9a-f]{8}', n) for n in names) and len(names) == 4, names


def bad_keys_and_long_values(runs):
    _, folder, _, out = record(runs, 'log 1 %s 1\nlog 1 a\tb 1\nlog 1 ok 1\nparam p %s\nlog 1 %s 2\nclose 1\n' %
                               ('k' * 251, 'ä' * 5000, 'ü' * 250))
    j, = journal.journals(folder)
    assert [p[0] for p in j.points] == ['ok', 'ü' * 250, 'dptrack/dropped'] and j.points[-1][4] == 2.0
    assert j.params['p'] == 'ä' * 4000 and 'was truncated' in out and 'closed 0 2' in out
    assert all(line.startswith(('warn', 'run', 'closed')) for line in out.strip().split('\n')), 'one line per warning'
    assert 'points lost so far: 2' in out, out


def points_are_seen_soon(runs):
    process = start(runs)
    folder = process.stdout.readline().split()[2]
    for n in (1, 2, 3):
        process.stdin.write('log %d x 1\n' % n)
        process.stdin.flush()
        written = time.time()
        while len(journal.journals(folder)[0].points) < n:
            assert time.time() - written < 30
            time.sleep(0.02)
    process.kill()
    process.wait()
    assert len(journal.journals(folder)[0].points) == 3, 'the visible points survive the process'


def a_forked_child_is_harmless(runs):
    _, folder, _, out = record(runs, 'log 1 x 1\nfork\nlog 2 x 2\nclose 1\n')
    j, = journal.journals(folder)
    assert 'forked 0' in out and [p[0] for p in j.points] == ['x', 'x'] and j.statuses == [(1, '')], out


def a_folder_that_is_removed(runs):
    """If the journal is deleted the points are lost: a warning is printed, and close returns an error."""
    p = start(runs)
    folder = p.stdout.readline().split(' ', 2)[2].rsplit(' ', 1)[0]
    shutil.rmtree(folder)
    out, _ = p.communicate('log 1 x 1\nclose 1\n', timeout=120)
    assert 'warn the journal was removed' in out and 'closed -5' in out, out


def kept_files(runs):
    """A copy in files/, its size and digest in the journal; a refused file leaves nothing."""
    os.makedirs(runs, exist_ok=True)
    large, empty, pipe = (os.path.join(runs, name) for name in ('large', 'empty', 'pipe'))
    content = bytes(range(256)) * 10000 + b'end'
    for path, data in ((large, content), (empty, b'')):
        with open(path, 'wb') as f:
            f.write(data)
    os.mkfifo(pipe)
    wrong = ['../out', '/abs', 'a//b', 'a/', '.', 'a/..', 'back\\slash', 'x' * 256, 'd/' * 500 + 'x', 'bell\x07']
    script = ''.join('file %s %s\n' % (name, large) for name in wrong)
    _, folder, _, out = record(runs, 'file a.bin %s\nfile deep/er/ö.bin %s\nfile a.bin %s\n' % (empty, large, large) + script +
                               'file none %s\nfile none %s\nfile none %s/absent\nfile a.bin/below %s\nclose 1\n' % (pipe, runs, runs, large))
    said = [int(line.split()[1]) for line in out.split('\n') if line.startswith('file ')]
    assert said == [0, 0, 0] + [-1] * (len(wrong) + 3) + [-5], (said, out)
    j, = journal.journals(folder)
    want = (len(content), hashlib.sha256(content).hexdigest())
    assert j.files == {'a.bin': want, 'deep/er/ö.bin': want}, j.files
    found = {os.path.relpath(os.path.join(at, name), folder + '/files') for at, _, names in os.walk(folder + '/files') for name in names}
    assert found == set(j.files), found
    for name in found:
        with open(os.path.join(folder, 'files', name), 'rb') as f:
            assert f.read() == content, name
    assert os.stat(folder + '/files/a.bin').st_mode & 0o400 and 'is not stored' in out, out


def heartbeats(runs):
    _, folder, _, _ = record(runs, 'sleep 13\nclose 1\n')
    assert journal.journals(folder)[0].heartbeats >= 1


def main():
    sys.exit(parallel.run([everything_reads_back, two_ranks_and_a_launcher, segments, two_writers, refusals, odd_names,
                           bad_keys_and_long_values, points_are_seen_soon, a_forked_child_is_harmless, a_folder_that_is_removed, kept_files, heartbeats]))


if __name__ == '__main__':
    main()
